package hint

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// The reference: words as the first version of this package read them, by regular expressions. It was right and slow
// (0.4 MB/s), and the tests hold the reader that takes its place to the same results, except that on purpose
//
//   - of letters whose lower case takes another number of bytes the case counts, and U+017F and U+212A are no s and k;
//     the reference lost the places of the words behind such letters;
//   - "at 7 am/x" is no match: it never was a time, but counted as one of the first eight;
//   - of headers in one letter case or another the one with the greater value counts, where chance decided;
//   - the bounds of walk.go hold: typed fields, sets of headers inside a body, the size of an object that is a length;
//   - a small number in an absolute field is no hint under a path of any length.

// oldAbout are the words that may stand before a length.
const oldAbout = `(?:about |around |approximately |at least |another |up to |~ ?)?`

// oldLead are the words that come before a length which is a wait; the length starts where the match ends. They are
// matched against the lower-cased text.
var oldLead = []*regexp.Regexp{
	regexp.MustCompile(`\b(?:again|retry|retrying|back)(?: your request| the request| this request| it)? (?:in|after|within) ` + oldAbout),
	regexp.MustCompile(`\bretry[-_ ]after(?: is| of)?[:=]? ?` + oldAbout),
	regexp.MustCompile(`\bwait (?:for )?` + oldAbout),
	regexp.MustCompile(`\b(?:resets?|resetting|refresh(?:es|ed)?|renews?|renewed|replenish(?:es|ed)?|restored?|recovers?|available(?: again)?|unlocks?|unlocked)(?: again)? (?:in|after) ` + oldAbout),
	regexp.MustCompile(`\bcooldown(?: for| of|:) ?` + oldAbout),
	regexp.MustCompile(`\b(?:erneut|wieder|noch einmal|versuchen sie es) in `),   // German
	regexp.MustCompile(`\br[ée]essaye[rz](?: à nouveau)? dans `),                 // French
	regexp.MustCompile(`\b(?:de nuevo|nuevamente|intentarlo) (?:en|dentro de) `), // Spanish
	regexp.MustCompile(`\b(?:novamente|de novo) (?:em|dentro de) `),              // Portuguese
	regexp.MustCompile(`\briprov(?:a|are|i|ate) (?:tra|fra|in) `),                // Italian
	regexp.MustCompile(`(?:повторите|попробуйте|попытку|снова)[^.\n]{0,40}? через `),
	regexp.MustCompile(`(?:المحاولة|حاول)[^.\n]{0,60}?(?:خلال|بعد) `),
	regexp.MustCompile(`(?:请?等待|等候|请等|稍等) ?`),
	regexp.MustCompile(`thử lại (?:sau|trong) `),         // Vietnamese
	regexp.MustCompile(`\bcoba lagi (?:dalam|setelah) `), // Indonesian
	regexp.MustCompile(`\b(?:retrydelay|quotaresetdelay)(?:': '|": "|":")`),
	regexp.MustCompile(`\bretry_delay[^}]{0,12}?seconds: `),
}

// oldTail are the words that come after a length which is a wait, in languages that say it so; the length starts at the
// first number of the match.
var oldTail = []*regexp.Regexp{
	regexp.MustCompile(`\d+(?:\.\d+)? ?(?:毫秒|秒钟|秒|分钟|分鐘|个?小时|個?小時|天)(?: ?\d+ ?(?:秒钟|秒|分钟|分鐘|个?小时|個?小時))* ?(?:之?后|以后|之?後|内|內)[^。\n]{0,12}?(?:重试|再试|重置|恢复|刷新|重試|再試|恢復|解除)`),
	regexp.MustCompile(`\d+(?:\.\d+)? ?(?:秒|分|時間|日)後に[^。\n]{0,16}?(?:再試行|もう一度|再度|お試し|やり直|リセット)`),
	regexp.MustCompile(`\d+(?:\.\d+)? ?(?:초|분|시간|일) ?(?:후|뒤)(?:에)?[^.\n]{0,16}?(?:다시|재시도|초기화)`),
	regexp.MustCompile(`\b\d+(?:[.,]\d+)? (?:sekunden?|minuten?|stunden?|tagen?)(?: \d+ (?:sekunden?|minuten?|stunden?))* (?:erneut|wieder|noch einmal)`),
}

// text reads a wait from words: a length that stands where a wait stands, else a point in time.
func (p *pick) oldText(s string) bool {
	s = oldWesternDigits(s)
	low := strings.ToLower(s)
	if !strings.ContainsAny(low, "0123456789") && !strings.Contains(low, "midnight") && !strings.Contains(low, "noon") {
		return false // most answers say no time at all
	}
	if d, ok := oldSpokenLength(low); ok && p.offer(d, "text") {
		return true
	}
	if d, ok := oldSpokenMoment(s, p.now); ok {
		return p.offer(d, "text")
	}
	return false
}

// oldSpokenLength is the first length in low that is a wait.
func oldSpokenLength(low string) (time.Duration, bool) {
	first, best := len(low)+1, time.Duration(0)
	consider := func(start, number int, bareSeconds bool) {
		if start >= first || oldRefused(low, start) {
			return
		}
		d, _, ok := length(low[number:])
		if !ok && bareSeconds {
			d, ok = bareNumber(low[number:])
		}
		if ok {
			first, best = start, d
		}
	}
	for i, re := range oldLead {
		for _, at := range re.FindAllStringIndex(low, 16) {
			consider(at[0], at[1], i == 1 || i == len(oldLead)-1)
		}
	}
	for _, re := range oldTail {
		for _, at := range re.FindAllStringIndex(low, 16) {
			consider(at[0], at[0], false)
		}
	}
	return best, first <= len(low)
}

var (
	oldCondition = regexp.MustCompile(`(?:^|[\s(])(?:if|when|once|after you|unless)\s`)
	oldPercent   = regexp.MustCompile(`(\d+(?:\.\d+)?) ?% ?(left|remaining|available)?`)
)

// oldRefused says that the words before a match make it no hint: advice under a condition ("If you have already done so,
// try again in 15 minutes"), or the display of a window that is not used up ("usage: 22%. Resets in 111 hours").
func oldRefused(low string, start int) bool {
	oldBefore := low[max(0, start-160):start]
	sentence := oldBefore
	if i := strings.LastIndexAny(oldBefore, "\n"); i >= 0 {
		sentence, oldBefore = oldBefore[i+1:], oldBefore[i+1:]
	}
	for _, end := range []string{". ", "! ", "? ", "。"} {
		if i := strings.LastIndex(sentence, end); i >= 0 {
			sentence = sentence[i+len(end):]
		}
	}
	if oldCondition.MatchString(sentence) {
		return true
	}
	all := oldPercent.FindAllStringSubmatch(oldBefore, -1)
	if len(all) == 0 {
		return false
	}
	last := all[len(all)-1]
	n, err := strconv.ParseFloat(last[1], 64)
	if err != nil {
		return false
	}
	if last[2] != "" {
		return n > 0
	}
	return n < 100
}

// oldWesternDigits writes Arabic and full-width digits as 0 to 9.
func oldWesternDigits(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case '٠' <= r && r <= '٩':
			return '0' + r - '٠'
		case '۰' <= r && r <= '۹':
			return '0' + r - '۰'
		case '０' <= r && r <= '９':
			return '0' + r - '０'
		}
		return r
	}, s)
}

const (
	oldIsoDate = `(\d{4}-\d{2}-\d{2}(?:[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?)?)( ?(?:Z|UTC|GMT|[+-]\d{2}:?\d{2})\b)?`
	oldBefore  = `(?i:\b(?:again|retry|try|wait|resets?|reset time|refresh(?:es)?|renews?|available(?: again)?|access|unlocks?|until)\b(?: again)?(?: is)?:? ?(?:at|on|after|until|by)? )`
)

var (
	oldSpokenISO   = regexp.MustCompile(oldBefore + oldIsoDate)
	oldSpokenEpoch = regexp.MustCompile(oldBefore + `(1\d{9}|1\d{12})\b`)
	// 在 2026-08-25 07:41:44 重置: Chinese text, so the one zone of China.
	oldChinese = regexp.MustCompile(`(?:在|于|於|至|到) ?(\d{4}-\d{2}-\d{2} \d{2}:\d{2}(?::\d{2})?) ?[^。\n]{0,6}?(?:重置|恢复|恢復|刷新|重试|重試|解除|后|後)`)
	// "resets 12pm (America/Los_Angeles)", "resets at 10:00 UTC", "resets Oct 7 at 3pm (Europe/London)".
	oldSpokenClock = regexp.MustCompile(oldBefore + `(?:(?i:(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*\.? (\d{1,2}),?(?: at)? ))?(?i:(midnight|noon|\d{1,2}(?::\d{2})?(?::\d{2})? ?(?:am|pm)?)),? ?\(?([A-Za-z]+(?:/[A-Za-z_]+){0,2}(?:[+-](?:\d{2}:?\d{2}|\d{1,2}))?)\b`)
)

// oldSpokenMoment is the wait until the first point in time in s that names its zone, or lies in a text whose language has
// one. "Today" and clock times without zone are no hint.
func oldSpokenMoment(s string, now time.Time) (time.Duration, bool) {
	low := strings.ToLower(s)
	kept := func(start int) bool { return start > len(low) || !oldRefused(low, start) }
	for _, m := range oldSpokenISO.FindAllStringSubmatchIndex(s, 8) {
		if at, ok := isoMoment(oldGroup(s, m, 1), strings.TrimSpace(oldGroup(s, m, 2))); ok && kept(m[0]) {
			return at.Sub(now), true
		}
	}
	for _, m := range oldChinese.FindAllStringSubmatchIndex(s, 8) {
		if at, ok := dateIn(oldGroup(s, m, 1), time.FixedZone("UTC+8", 8*3600)); ok {
			return at.Sub(now), true
		}
	}
	for _, m := range oldSpokenEpoch.FindAllStringSubmatchIndex(s, 8) {
		if d, relative, ok := value(oldGroup(s, m, 1), time.Second, now); ok && !relative && kept(m[0]) {
			return d, true
		}
	}
	for _, m := range oldSpokenClock.FindAllStringSubmatchIndex(s, 8) {
		place, ok := zone(oldGroup(s, m, 4))
		if !ok || !kept(m[0]) {
			continue
		}
		if at, ok := clock(oldGroup(s, m, 1), oldGroup(s, m, 2), oldGroup(s, m, 3), now.In(place)); ok {
			return at.Sub(now), true
		}
	}
	return 0, false
}

func oldGroup(s string, m []int, n int) string {
	if m[2*n] < 0 {
		return ""
	}
	return s[m[2*n]:m[2*n+1]]
}
