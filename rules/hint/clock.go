package hint

import (
	"strconv"
	"strings"
	"time"
)

// clock reads a time of day with its zone: "12pm (America/Los_Angeles)", "10:00 UTC", "Oct 7 at 3pm (Europe/London)".
func (r *momentReader) clock(start, at int) {
	month, dayOfMonth, at := monthAndDay(r.low, at)
	end, ok := timeEnd(r.low, at)
	if !ok {
		return
	}
	word := r.low[at:end]
	at = pass(r.low, pass(r.low, pass(r.low, end, ','), ' '), '(')
	end = placeEnd(r.low, at)
	if end == at || !r.take(formClock, start, end) {
		return
	}
	place, ok := zone(r.s[at:end])
	if !ok || refused(r.low, start) {
		return
	}
	if moment, ok := clock(month, dayOfMonth, word, r.now.In(place)); ok {
		r.keep(formClock, moment.Sub(r.now))
	}
}

var months = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}

// monthAndDay reads a month and its day before a time of day, and returns where that begins.
func monthAndDay(low string, i int) (month, dayOfMonth string, at int) {
	n := oneOf(low[i:], months)
	if n == 0 {
		return "", "", i
	}
	at = i + n
	for at < len(low) && 'a' <= low[at] && low[at] <= 'z' {
		at++
	}
	day := pass(low, pass(low, at, '.'), ' ')
	if at = digits(low, day); at == day || at-day > 2 || low[day-1] != ' ' {
		return "", "", i
	}
	dayOfMonth = low[day:at]
	at = pass(low, at, ',')
	if strings.HasPrefix(low[at:], " at ") {
		at += len(" at")
	}
	if at == len(low) || low[at] != ' ' {
		return "", "", i
	}
	return low[i : i+n], dayOfMonth, at + 1
}

// timeEnd returns where the time of day at i ends.
func timeEnd(low string, i int) (int, bool) {
	if n := oneOf(low[i:], []string{"midnight", "noon"}); n > 0 {
		return i + n, true
	}
	at := digits(low, i)
	if at == i || at-i > 2 {
		return i, false
	}
	for range 2 {
		at, _ = pattern(low, at, ":dd")
	}
	at = pass(low, at, ' ')
	return at + oneOf(low[at:], []string{"am", "pm"}), true
}

// placeEnd returns where the name of a zone ends: UTC, UTC+8, Etc/GMT+5, Europe/Paris, America/Argentina/Ushuaia.
func placeEnd(low string, i int) int {
	best, at := i, i
	for part := range 3 {
		if part > 0 {
			if at == len(low) || low[at] != '/' {
				break
			}
			at++
		}
		from := at
		for at < len(low) && ('a' <= low[at] && low[at] <= 'z' || part > 0 && low[at] == '_') {
			at++
		}
		if at == from {
			break
		}
		if at == len(low) || !wordByte(low[at]) {
			best = at
		}
	}
	if best == at {
		return offsetEnd(low, at)
	}
	return best
}

// offsetEnd returns where the offset behind the name of a zone ends: +8, -05, +0530 or +05:30.
func offsetEnd(low string, i int) int {
	if i == len(low) || low[i] != '+' && low[i] != '-' {
		return i
	}
	for _, form := range []string{"dd:dd", "dddd", "dd", "d"} {
		if end, ok := pattern(low, i+1, form); ok && (end == len(low) || !wordByte(low[end])) {
			return end
		}
	}
	return i
}

// pass returns the place behind c when c stands at i, else i.
func pass(s string, i int, c byte) int {
	if i < len(s) && s[i] == c {
		i++
	}
	return i
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
