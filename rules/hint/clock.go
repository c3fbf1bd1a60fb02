package hint

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

const (
	isoDate = `(\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)?)( ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})\b)?`
	before  = `(?i:\b(?:again|retry|try|wait|resets?|reset time|refresh(?:es)?|renews?|available(?: again)?|access|unlocks?|until)\b(?: again)?(?: is)?:? ?(?:at|on|after|until|by)? )`
)

var (
	spokenISO   = regexp.MustCompile(before + isoDate)
	spokenEpoch = regexp.MustCompile(before + `(1\d{9}|1\d{12})\b`)
	// 在 2026-08-25 07:41:44 重置: Chinese text, so the one zone of China.
	chinese = regexp.MustCompile(`(?:在|于|於|至|到) ?(\d{4}-\d{2}-\d{2} \d{2}:\d{2}(?::\d{2})?) ?[^。\n]{0,6}?(?:重置|恢复|恢復|刷新|重试|重試|解除|后|後)`)
	// "resets 12pm (America/Los_Angeles)", "resets at 10:00 UTC", "resets Oct 7 at 3pm (Europe/London)".
	spokenClock = regexp.MustCompile(before + `(?:(?i:(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? (\d{1,2}),?(?: at)? ))?(?i:(midnight|noon|\d{1,2}(?::\d{2})?(?::\d{2})? ?(?:am|pm)?)),? ?\(?([A-Za-z]+(?:/[A-Za-z_]+){0,2})\b`)
)

// spokenMoment is the wait until the first point in time in s that names its zone, or lies in a text whose language has
// one. "Today" and clock times without zone are no hint.
func spokenMoment(s string, now time.Time) (time.Duration, bool) {
	low := strings.ToLower(s)
	kept := func(start int) bool { return start > len(low) || !refused(low, start) }
	for _, m := range spokenISO.FindAllStringSubmatchIndex(s, 8) {
		if at, ok := isoMoment(group(s, m, 1), strings.TrimSpace(group(s, m, 2))); ok && kept(m[0]) {
			return at.Sub(now), true
		}
	}
	for _, m := range chinese.FindAllStringSubmatchIndex(s, 8) {
		if at, ok := dateIn(group(s, m, 1), time.FixedZone("UTC+8", 8*3600)); ok {
			return at.Sub(now), true
		}
	}
	for _, m := range spokenEpoch.FindAllStringSubmatchIndex(s, 8) {
		if d, relative, ok := value(group(s, m, 1), time.Second, now); ok && !relative && kept(m[0]) {
			return d, true
		}
	}
	for _, m := range spokenClock.FindAllStringSubmatchIndex(s, 8) {
		place, ok := zone(group(s, m, 4))
		if !ok || !kept(m[0]) {
			continue
		}
		if at, ok := clock(group(s, m, 1), group(s, m, 2), group(s, m, 3), now.In(place)); ok {
			return at.Sub(now), true
		}
	}
	return 0, false
}

func group(s string, m []int, n int) string {
	if m[2*n] < 0 {
		return ""
	}
	return s[m[2*n]:m[2*n+1]]
}

// isoMoment reads a date with a zone; a date alone is its first moment in UTC, a time without zone is nothing.
func isoMoment(when, offset string) (time.Time, bool) {
	if len(when) == len("2006-01-02") {
		at, err := time.Parse("2006-01-02", when)
		return at, err == nil
	}
	if offset == "" {
		return time.Time{}, false
	}
	if offset == "UTC" || offset == "GMT" {
		offset = "Z"
	}
	if len(offset) == 5 {
		offset = offset[:3] + ":" + offset[3:]
	}
	when = strings.Replace(when, " ", "T", 1)
	if len(when) == len("2006-01-02T15:04") {
		when += ":00"
	}
	at, err := time.Parse(time.RFC3339Nano, when+offset)
	return at, err == nil
}

// clock is the next moment after now, in now's zone, at a time of day, of the given day of the year if one is named.
func clock(month, dayOfMonth, word string, now time.Time) (time.Time, bool) {
	hour, minute, ok := timeOfDay(strings.ToLower(strings.ReplaceAll(word, " ", "")))
	if !ok {
		return time.Time{}, false
	}
	y, m, d := now.Date()
	if month == "" {
		at := time.Date(y, m, d, hour, minute, 0, 0, now.Location())
		if !at.After(now) {
			at = time.Date(y, m, d+1, hour, minute, 0, 0, now.Location())
		}
		return at, true
	}
	named, err := time.Parse("Jan 2", strings.ToUpper(month[:1])+strings.ToLower(month[1:])+" "+dayOfMonth)
	if err != nil {
		return time.Time{}, false
	}
	at := time.Date(y, named.Month(), named.Day(), hour, minute, 0, 0, now.Location())
	if now.Sub(at) > 180*day { // the turn of the year lies between
		at = at.AddDate(1, 0, 0)
	}
	return at, true
}

// timeOfDay reads 12pm, 7:58pm, 10:00, midnight, noon; an hour alone says nothing.
func timeOfDay(s string) (hour, minute int, ok bool) {
	switch s {
	case "midnight":
		return 0, 0, true
	case "noon":
		return 12, 0, true
	}
	digits := strings.TrimRight(s, "apm")
	half := s[len(digits):]
	h, rest, minutes := strings.Cut(digits, ":")
	hour, err := strconv.Atoi(h)
	if err != nil || half == "" && !minutes {
		return 0, 0, false
	}
	if minutes {
		if minute, err = strconv.Atoi(rest[:min(2, len(rest))]); err != nil {
			return 0, 0, false
		}
	}
	if half != "" && (hour < 1 || hour > 12) {
		return 0, 0, false
	}
	switch {
	case half == "am" && hour == 12:
		hour = 0
	case half == "pm" && hour < 12:
		hour += 12
	}
	return hour, minute, hour < 24 && minute < 60
}
