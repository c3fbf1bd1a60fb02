package hint

import (
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // zones named in answers and rules must be known in an empty container too
)

// An epoch number is taken for seconds from here on, and for milliseconds from epochMS on; below both it is a length.
const (
	epochS  = 1_000_000_000
	epochMS = 100_000_000_000
)

// value reads a header or field whose form is not known beforehand: a length, a plain number of unit, an epoch number,
// or a date. relative says that it was no point in time.
func value(s string, unit time.Duration, now time.Time) (d time.Duration, relative, ok bool) {
	s = strings.TrimSpace(s)
	if whole, frac, n := number(s); n > 0 && n == len(s) {
		switch {
		case whole >= epochMS && unit >= time.Second:
			return time.UnixMilli(clampEpoch(whole)).Sub(now), false, true
		case whole >= epochS && unit >= time.Second:
			at := time.Unix(whole, int64(frac*1e9))
			return at.Sub(now), false, true
		}
		return times(whole, frac, unit), true, true
	}
	if d, ok := lengthOnly(s); ok {
		return d, true, true
	}
	if at, ok := date(s); ok {
		return at.Sub(now), false, true
	}
	return 0, false, false
}

// clampEpoch keeps a number of milliseconds within what time can hold.
func clampEpoch(ms int64) int64 { return min(ms, 1<<53) }

// zoned are the layouts of a point in time that say their zone.
var zoned = []string{
	time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04Z07:00",
	"2006-01-02 15:04:05 MST", "2006-01-02 15:04 MST", "2006-01-02T15:04:05 MST", "2006-01-02 15:04:05 -0700",
	time.RFC1123, time.RFC1123Z, time.RFC850, time.ANSIC,
}

// date reads a point in time that names its zone; a zone by letters must be UTC or GMT, since others are ambiguous.
func date(s string) (time.Time, bool) {
	if len(s) < len("2006-01-02T15:04Z") || strings.IndexByte(s, ':') < 0 {
		return time.Time{}, false // no layout is shorter, and each has a time of day
	}
	for _, layout := range zoned {
		at, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		if name, offset := at.Zone(); strings.Contains(layout, "MST") && (offset != 0 || name != "UTC" && name != "GMT") {
			continue
		}
		return at, true
	}
	return time.Time{}, false
}

// bare are the layouts of a point in time that does not say its zone.
var bare = []string{"2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", "2006-01-02 15:04", "2006-01-02T15:04", "2006/01/02 15:04:05"}

// dateIn reads a point in time without zone as one of zone.
func dateIn(s string, zone *time.Location) (time.Time, bool) {
	for _, layout := range bare {
		if at, err := time.ParseInLocation(layout, s, zone); err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}

// midnight is the first midnight in zone after now.
func midnight(now time.Time, zone *time.Location) time.Time {
	y, m, d := now.In(zone).Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, zone)
}

// zones are the short names that mean one place only.
var zones = map[string]string{
	"utc": "UTC", "gmt": "UTC", "z": "UTC", "pt": "America/Los_Angeles", "pst": "America/Los_Angeles",
	"pdt": "America/Los_Angeles", "pacific": "America/Los_Angeles", "et": "America/New_York", "est": "America/New_York",
	"edt": "America/New_York", "jst": "Asia/Tokyo", "cet": "Europe/Paris", "cest": "Europe/Paris", "beijing": "Asia/Shanghai",
}

// zone finds a zone by short or full name, or as an offset from UTC: UTC+8, GMT-05:30, and the other way round Etc/GMT-8.
func zone(name string) (*time.Location, bool) {
	if at := strings.IndexAny(name, "+-"); at > 0 && isDigit(name[len(name)-1]) {
		return offsetZone(name[:at], name[at:])
	}
	if long, ok := zones[strings.ToLower(name)]; ok {
		name = long
	} else if !strings.Contains(name, "/") {
		return nil, false
	}
	l, err := time.LoadLocation(name)
	return l, err == nil
}

// offsetZone is the zone of an offset, which no other name than that of UTC may stand before.
func offsetZone(name, offset string) (*time.Location, bool) {
	sign := 1
	switch strings.ToLower(name) {
	case "utc", "gmt":
	case "etc/gmt": // POSIX counts to the west
		sign = -1
	default:
		return nil, false
	}
	if offset[0] == '-' {
		sign = -sign
	}
	digits := strings.ReplaceAll(offset[1:], ":", "")
	minutes := 0
	if len(digits) > 2 {
		minutes, _ = strconv.Atoi(digits[2:])
		digits = digits[:2]
	}
	hours, err := strconv.Atoi(digits)
	if err != nil || hours > 14 || minutes > 59 {
		return nil, false
	}
	return time.FixedZone(name+offset, sign*(hours*60+minutes)*60), true
}
