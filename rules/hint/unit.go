package hint

import (
	"strings"
	"time"
)

// ValidUnit says whether unit is one that Unit reads: s, ms, m, h, unix_s, unix_ms, rfc3339, http_date, duration,
// countdown, next_midnight:ZONE, or local:ZONE, a point in time without zone read in that zone (ABI-2).
func ValidUnit(unit string) bool {
	switch unit {
	case "s", "ms", "m", "h", "unix_s", "unix_ms", "rfc3339", "http_date", "duration", "countdown":
		return true
	}
	_, _, ok := placed(unit)
	return ok
}

// placed splits a unit that names a zone.
func placed(unit string) (kind string, place *time.Location, ok bool) {
	kind, name, found := strings.Cut(unit, ":")
	if !found || kind != "next_midnight" && kind != "local" || name == "" {
		return "", nil, false
	}
	place, ok = zone(name)
	return kind, place, ok
}

// Unit reads text as a rule's author said it is written (ABI-2) and returns the wait from now, rounded up to whole
// milliseconds. False: the text is not of that form, or the wait lies outside 1 ms to 30 days; the rule then matches
// without a time. next_midnight:ZONE needs no text.
func Unit(text, unit string, now time.Time) (time.Duration, bool) {
	d, ok := inUnit(strings.TrimSpace(text), unit, now)
	if !ok || d <= 0 || d > MaxWait {
		return 0, false
	}
	return clip(d), true
}

func inUnit(text, unit string, now time.Time) (time.Duration, bool) {
	switch unit {
	case "s":
		return plain(text, time.Second)
	case "ms":
		return plain(text, time.Millisecond)
	case "m":
		return plain(text, time.Minute)
	case "h":
		return plain(text, time.Hour)
	case "unix_s":
		whole, frac, n := number(text)
		return time.Unix(whole, int64(frac*1e9)).Sub(now), n > 0 && n == len(text) && whole < 1<<40
	case "unix_ms":
		whole, _, n := number(text)
		return time.UnixMilli(whole).Sub(now), n > 0 && n == len(text) && whole < 1<<50
	case "rfc3339":
		at, err := time.Parse(time.RFC3339Nano, text)
		return at.Sub(now), err == nil
	case "http_date":
		return httpDate(text, now)
	case "duration":
		return lengthOnly(text)
	case "countdown":
		return countdown(text)
	}
	kind, place, ok := placed(unit)
	if !ok {
		return 0, false
	}
	if kind == "next_midnight" {
		return midnight(now, place).Sub(now), true
	}
	at, ok := dateIn(text, place)
	return at.Sub(now), ok
}

// plain reads a number of unit.
func plain(text string, unit time.Duration) (time.Duration, bool) {
	whole, frac, n := number(text)
	return times(whole, frac, unit), n > 0 && n == len(text)
}

// httpDate reads the three forms of RFC 9110.
func httpDate(text string, now time.Time) (time.Duration, bool) {
	for _, layout := range []string{"Mon, 02 Jan 2006 15:04:05 GMT", time.RFC850, time.ANSIC} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.Sub(now), true
		}
	}
	return 0, false
}

// countdown reads the first length of time in text: "in 2 days 3 hours".
func countdown(text string) (time.Duration, bool) {
	low := lower(western(text))
	for at := range len(low) {
		if low[at] < '0' || low[at] > '9' || at > 0 && (low[at-1] >= '0' && low[at-1] <= '9' || low[at-1] == '-') {
			continue
		}
		if d, _, ok := length(low[at:]); ok {
			return d, true
		}
	}
	return 0, false
}
