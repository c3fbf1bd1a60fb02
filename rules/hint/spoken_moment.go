package hint

import (
	"strings"
	"time"
)

// moments are the words before a point in time, in Chinese the last: 在 2026-08-25 07:41:44 重置.
var moments = []phrase{
	{whole: true, steps: []step{
		{edge: true, words: []string{
			"again", "retry", "try", "wait", "reset time", "resets", "reset", "refreshes", "refresh", "renews", "renew",
			"available again", "available", "access", "unlocks", "unlock", "until",
		}},
		maybe(" again"), maybe(" is"), maybe(" daily", " every day"), maybe(":"),
		one(" at: ", " at ", " on ", " after ", " until ", " by ", "  ", " ", "at ", "on ", "after ", "until ", "by "),
	}},
	{whole: true, steps: []step{one("limit reached|")}}, // Claude AI usage limit reached|1777936800
	{steps: []step{one("在", "于", "於", "至", "到"), maybe(" ")}},
}

var (
	china        = time.FixedZone("UTC+8", 8*60*60) // the one zone of a text in Chinese
	afterChinese = phrase{steps: []step{
		maybe(" "), within(6, "。\n", "重置", "恢复", "恢復", "刷新", "重试", "重試", "解除", "后", "後"),
	}}
)

// The forms of a point in time; one that comes first here counts more than one that stands earlier in the text.
const (
	formDate = iota
	formChinese
	formEpoch
	formClock
	formCount
)

// mostMoments is how many matches of one form are looked at.
const mostMoments = 8

// spokenMoment is the wait until the first point in time in the text that names its zone, or lies in a text whose language
// has one. "Today" and clock times without zone are no hint.
func (w *words) spokenMoment(now time.Time) (time.Duration, bool) {
	r := momentReader{words: w, now: now}
	for _, at := range w.places {
		if i := int(at); !isDigit(w.low[i]) && !r.found[formDate] {
			for _, n := range spoken.at(w.low, i) {
				r.phrase(n-len(leads), i)
			}
		}
	}
	for form, found := range r.found {
		if found {
			return r.waits[form], true
		}
	}
	return 0, false
}

// momentReader keeps the first moment of each form. Its methods look at the place at, behind words that begin at start.
type momentReader struct {
	*words
	now   time.Time
	seen  [formCount]matched
	found [formCount]bool
	waits [formCount]time.Duration
}

// phrase reads the moment behind phrase n of moments at start.
func (r *momentReader) phrase(n, start int) {
	if n < 0 {
		return
	}
	at, ok := moments[n].end(r.low, start)
	switch {
	case !ok || at == len(r.low):
	case n == len(moments)-1:
		r.chinese(start, at)
	case isDigit(r.low[at]):
		r.date(start, at)
		r.epoch(start, at)
		r.clock(start, at)
	case strings.IndexByte("adfjmnos", r.low[at]) >= 0: // a month, noon or midnight
		r.clock(start, at)
	}
}

// take says whether a match that ends at end is to be read.
func (r *momentReader) take(form, start, end int) bool {
	return !r.found[form] && r.seen[form].take(start, end, mostMoments)
}

func (r *momentReader) keep(form int, wait time.Duration) { r.found[form], r.waits[form] = true, wait }

// date reads 2026-05-04, or with a time of day and a zone.
func (r *momentReader) date(start, at int) {
	when, ok := pattern(r.s, at, "dddd-dd-dd")
	if !ok {
		return
	}
	if end, ok := pattern(r.s, when, "Tdd:dd"); ok {
		when = end
		if end, ok = pattern(r.s, when, ":dd"); ok {
			when = end
			if fraction := digits(r.s[:min(len(r.s), when+10)], when+1); fraction > when+1 && r.s[when] == '.' {
				when = fraction
			}
		}
	}
	zone := zoneEnd(r.s, when)
	if !r.take(formDate, start, zone) {
		return
	}
	if moment, ok := isoMoment(r.s[at:when], strings.TrimSpace(r.s[when:zone])); ok && !refused(r.low, start) {
		r.keep(formDate, moment.Sub(r.now))
	}
}

// zoneEnd returns where the zone at i ends, which may be missing: Z, UTC, GMT, or an offset.
func zoneEnd(s string, i int) int {
	at := i
	if at < len(s) && s[at] == ' ' {
		at++
	}
	if n := oneOf(s[at:], []string{"Z", "UTC", "GMT"}); n > 0 {
		at += n
	} else if end, ok := pattern(s, at, "+dd:dd"); ok {
		at = end
	} else if end, ok := pattern(s, at, "+dddd"); ok {
		at = end
	} else {
		return i
	}
	if at < len(s) && wordByte(lowerByte(s[at])) {
		return i
	}
	return at
}

// pattern returns where s, from i on, ends to have the form: d is a digit, T is T or a blank, + is a sign.
func pattern(s string, i int, form string) (int, bool) {
	if len(s)-i < len(form) {
		return i, false
	}
	for k := range len(form) {
		c, ok := s[i+k], false
		switch form[k] {
		case 'd':
			ok = isDigit(c)
		case 'T':
			ok = c == 'T' || c == ' '
		case '+':
			ok = c == '+' || c == '-'
		default:
			ok = c == form[k]
		}
		if !ok {
			return i, false
		}
	}
	return i + len(form), true
}

// chinese reads a date and a time of day before words that make it a wait.
func (r *momentReader) chinese(start, at int) {
	when, ok := pattern(r.s, at, "dddd-dd-dd dd:dd")
	if !ok {
		return
	}
	if end, ok := pattern(r.s, when, ":dd"); ok {
		when = end
	}
	end, ok := afterChinese.end(r.low, when)
	if !ok || !r.take(formChinese, start, end) {
		return
	}
	if moment, ok := dateIn(r.s[at:when], china); ok {
		r.keep(formChinese, moment.Sub(r.now))
	}
}

// epoch reads seconds or milliseconds of this era.
func (r *momentReader) epoch(start, at int) {
	end := digits(r.s, at)
	if n := end - at; n != 10 && n != 13 || r.s[at] != '1' || end < len(r.s) && wordByte(r.low[end]) || !r.take(formEpoch, start, end) {
		return
	}
	if d, relative, ok := value(r.s[at:end], time.Second, r.now); ok && !relative && !refused(r.low, start) {
		r.keep(formEpoch, d)
	}
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
