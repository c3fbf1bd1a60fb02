package hint

import (
	"strings"
	"time"
	"unicode/utf8"
)

// about are the words that may stand before a length.
var about = maybe("about ", "around ", "approximately ", "at least ", "another ", "up to ", "~ ", "~")

// leads are the words that come before a length which is a wait; the length starts where the phrase ends.
var leads = []phrase{
	{whole: true, steps: []step{
		one("again", "retrying", "retry", "back"), maybe(" your request", " the request", " this request", " it"),
		one(" in ", " after ", " within "), about,
	}},
	{whole: true, bare: true, steps: []step{
		one("retry-after", "retry_after", "retry after"), maybe(" is", " of"), maybe(":", "="), maybe(" "), about,
	}},
	{whole: true, steps: []step{one("wait "), maybe("for "), about}},
	{whole: true, steps: []step{
		one("resetting", "resets", "reset", "refreshes", "refreshed", "refresh", "renewed", "renews", "renew",
			"replenishes", "replenished", "replenish", "restored", "restore", "recovers", "recover",
			"available again", "available", "unlocked", "unlocks", "unlock"),
		maybe(" again"), one(" in ", " after "), about,
	}},
	{whole: true, steps: []step{one("cooldown for", "cooldown of", "cooldown:"), maybe(" "), about}},
	{whole: true, steps: []step{one("erneut in ", "wieder in ", "noch einmal in ", "versuchen sie es in ")}},
	{whole: true, steps: []step{one("réessaye", "reessaye"), one("r", "z"), maybe(" à nouveau"), one(" dans ")}},
	{whole: true, steps: []step{one("de nuevo ", "nuevamente ", "intentarlo "), one("en ", "dentro de ")}},
	{whole: true, steps: []step{one("novamente ", "de novo "), one("em ", "dentro de ")}},
	{whole: true, steps: []step{one("riprovare", "riprovate", "riprova", "riprovi"), one(" tra ", " fra ", " in ")}},
	{steps: []step{one("повторите", "попробуйте", "попытку", "снова"), within(40, ".\n", " через ")}},
	{steps: []step{one("المحاولة", "حاول"), within(60, ".\n", "خلال ", "بعد ")}},
	{steps: []step{one("请等待", "等待", "等候", "请等", "稍等"), maybe(" ")}},
	{steps: []step{one("thử lại sau ", "thử lại trong ")}},
	{whole: true, steps: []step{one("coba lagi "), one("dalam ", "setelah ")}},
	// Google's RetryInfo as programs print it: in Python's dictionaries, and as a message in text form.
	{whole: true, steps: []step{one("retrydelay", "quotaresetdelay"), one("': '", `": "`, `":"`)}},
	{whole: true, bare: true, steps: []step{one("retry_delay"), within(12, "}", "seconds: ")}},
}

// tail is a length and the words after it that make it a wait, in languages that say it so.
type tail struct {
	whole  bool     // no letter, digit or _ stands before it
	points string   // what decimals may stand behind
	strict bool     // a blank stands between numbers and units; else it may be missing
	first  []string // units of the first part
	more   []string // units of further parts, all of them in first
	after  phrase
}

var tails = []tail{
	{
		points: ".",
		first:  []string{"毫秒", "秒钟", "秒", "分钟", "分鐘", "个小时", "小时", "個小時", "小時", "天"},
		more:   []string{"秒钟", "秒", "分钟", "分鐘", "个小时", "小时", "個小時", "小時"},
		after: phrase{steps: []step{
			maybe(" "), one("之后", "后", "以后", "之後", "後", "内", "內"),
			within(12, "。\n", "重试", "再试", "重置", "恢复", "刷新", "重試", "再試", "恢復", "解除"),
		}},
	},
	{
		points: ".", first: []string{"秒", "分", "時間", "日"},
		after: phrase{steps: []step{one("後に"), within(16, "。\n", "再試行", "もう一度", "再度", "お試し", "やり直", "リセット")}},
	},
	{
		points: ".", first: []string{"초", "분", "시간", "일"},
		after: phrase{steps: []step{maybe(" "), one("후", "뒤"), maybe("에"), within(16, ".\n", "다시", "재시도", "초기화")}},
	},
	{
		whole: true, points: ".,", strict: true,
		first: []string{"sekunden", "sekunde", "minuten", "minute", "stunden", "stunde", "tagen", "tage"},
		more:  []string{"sekunden", "sekunde", "minuten", "minute", "stunden", "stunde"},
		after: phrase{steps: []step{one(" erneut", " wieder", " noch einmal")}},
	},
}

// end returns where the tail that begins with the number at i ends. When there is none, it returns how far its numbers
// and units go: no tail begins before that place either.
func (t *tail) end(low string, i int, seen *matched) (int, bool) {
	if t.whole && i > 0 && wordByte(low[i-1]) {
		return i, false
	}
	at := digits(low, i)
	if at+1 < len(low) && strings.IndexByte(t.points, low[at]) >= 0 && isDigit(low[at+1]) {
		at = digits(low, at+1)
	}
	at, ok := t.unit(low, at, t.first)
	if !ok {
		return i, false
	}
	for {
		number, ok := t.blank(low, at)
		unit := digits(low, number)
		if !ok || unit == number {
			break
		}
		if unit, ok = t.unit(low, unit, t.more); !ok {
			break
		}
		at = unit
	}
	if t.after.near(low, at, seen) {
		if end, ok := t.after.end(low, at); ok {
			return end, true
		}
	}
	return at, false
}

// unit returns where the unit that comes next ends.
func (t *tail) unit(low string, i int, units []string) (int, bool) {
	i, ok := t.blank(low, i)
	if !ok {
		return i, false
	}
	n := oneOf(low[i:], units)
	return i + n, n > 0
}

func (t *tail) blank(low string, i int) (int, bool) {
	if i < len(low) && low[i] == ' ' {
		return i + 1, true
	}
	return i, !t.strict
}

// digits returns where the row of digits at i ends.
func digits(low string, i int) int {
	for i < len(low) && isDigit(low[i]) {
		i++
	}
	return i
}

// mostLengths is how many matches of one lead or tail are looked at.
const mostLengths = 16

// spokenLength is the first length in the text that is a wait.
func (w *words) spokenLength() (time.Duration, bool) {
	seen := make([]matched, len(leads)+len(tails))
	for _, at := range w.places {
		i := int(at)
		if isDigit(w.low[i]) {
			if !tailMayFollow(w.low, i) {
				continue
			}
			for n := range tails {
				if d, ok := tails[n].wait(w.low, i, &seen[len(leads)+n]); ok {
					return d, true
				}
			}
			continue
		}
		for _, n := range spoken.at(w.low, i) {
			if n >= len(leads) {
				break
			}
			if seen[n].count == mostLengths || !leads[n].near(w.low, i, &seen[n]) {
				continue
			}
			end, ok := leads[n].end(w.low, i)
			if !ok || !seen[n].take(i, end, mostLengths) {
				continue
			}
			if d, ok := waitAt(w.low, i, end, leads[n].bare); ok {
				return d, true
			}
		}
	}
	return 0, false
}

// tailMayFollow says whether a unit of one of tails may follow the number at i, which is so after few numbers.
func tailMayFollow(low string, i int) bool {
	at := digits(low, i)
	if at+1 < len(low) && (low[at] == '.' || low[at] == ',') {
		at = digits(low, at+1)
	}
	blank := at < len(low) && low[at] == ' '
	if blank {
		at++
	}
	return at < len(low) && (low[at] >= utf8.RuneSelf || blank && strings.IndexByte("smt", low[at]) >= 0)
}

// wait is the length at i when words follow it that make it a wait.
func (t *tail) wait(low string, i int, seen *matched) (time.Duration, bool) {
	if i < seen.end || seen.count == mostLengths {
		return 0, false
	}
	end, ok := t.end(low, i, seen)
	if !ok {
		seen.end = end
		return 0, false
	}
	if !seen.take(i, end, mostLengths) {
		return 0, false
	}
	return waitAt(low, i, i, false)
}

// waitAt is the length at number, unless the words before start make it no wait.
func waitAt(low string, start, number int, bareSeconds bool) (time.Duration, bool) {
	d, _, ok := length(low[number:])
	if !ok && bareSeconds {
		d, ok = bareNumber(low[number:])
	}
	return d, ok && !refused(low, start)
}

// bareNumber is a number of seconds without a unit, as in "retry after 20."; a date or an epoch is none.
func bareNumber(s string) (time.Duration, bool) {
	whole, frac, n := number(s)
	if n == 0 || whole >= epochS {
		return 0, false
	}
	if rest := strings.TrimLeft(s[n:], " "); rest != "" && (rest[0] == '-' || rest[0] == ':' || rest[0] == '/' || isWord(rest[0])) {
		return 0, false
	}
	return times(whole, frac, time.Second), true
}

func isWord(b byte) bool { return wordByte(b) || b >= 0x80 }
