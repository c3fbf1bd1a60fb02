package hint

import (
	"regexp"
	"strconv"
	"strings"
	"time"
)

// about are the words that may stand before a length.
const about = `(?:about |around |approximately |at least |another |up to |~ ?)?`

// lead are the words that come before a length which is a wait; the length starts where the match ends. They are
// matched against the lower-cased text.
var lead = []*regexp.Regexp{
	regexp.MustCompile(`\b(?:again|retry|retrying|back)(?: your request| the request| this request| it)? (?:in|after|within) ` + about),
	regexp.MustCompile(`\bretry[-_ ]after(?: is| of)?[:=]? ?` + about),
	regexp.MustCompile(`\bwait (?:for )?` + about),
	regexp.MustCompile(`\b(?:resets?|resetting|refresh(?:es|ed)?|renews?|renewed|replenish(?:es|ed)?|restored?|recovers?|available(?: again)?|unlocks?|unlocked)(?: again)? (?:in|after) ` + about),
	regexp.MustCompile(`\bcooldown(?: for| of|:) ?` + about),
	regexp.MustCompile(`\b(?:erneut|wieder|noch einmal|versuchen sie es) in `),   // German
	regexp.MustCompile(`\br[ée]essaye[rz](?: à nouveau)? dans `),                 // French
	regexp.MustCompile(`\b(?:de nuevo|nuevamente|intentarlo) (?:en|dentro de) `), // Spanish
	regexp.MustCompile(`\b(?:novamente|de novo) (?:em|dentro de) `),              // Portuguese
	regexp.MustCompile(`\briprov(?:a|are|i|ate) (?:tra|fra|in) `),                // Italian
	regexp.MustCompile(`(?:повторите|попробуйте|попытку|снова)[^.\n]{0,40}? через `),
	regexp.MustCompile(`(?:المحاولة|حاول)[^.\n]{0,60}?(?:خلال|بعد) `),
	regexp.MustCompile(`(?:请?等待|等候|请等|稍等) ?`),
}

// tail are the words that come after a length which is a wait, in languages that say it so; the length starts at the
// first number of the match.
var tail = []*regexp.Regexp{
	regexp.MustCompile(`\d+(?:\.\d+)? ?(?:毫秒|秒钟|秒|分钟|分鐘|个?小时|個?小時|天)(?: ?\d+ ?(?:秒钟|秒|分钟|分鐘|个?小时|個?小時))* ?(?:之?后|以后|之?後|内|內)[^。\n]{0,12}?(?:重试|再试|重置|恢复|刷新|重試|再試|恢復|解除)`),
	regexp.MustCompile(`\d+(?:\.\d+)? ?(?:秒|分|時間|日)後に[^。\n]{0,16}?(?:再試行|もう一度|再度|お試し|やり直|リセット)`),
	regexp.MustCompile(`\d+(?:\.\d+)? ?(?:초|분|시간|일) ?(?:후|뒤)(?:에)?[^.\n]{0,16}?(?:다시|재시도|초기화)`),
	regexp.MustCompile(`\b\d+(?:[.,]\d+)? (?:sekunden?|minuten?|stunden?|tagen?)(?: \d+ (?:sekunden?|minuten?|stunden?))* (?:erneut|wieder|noch einmal)`),
}

// text reads a wait from words: a length that stands where a wait stands, else a point in time.
func (p *pick) text(s string) bool {
	s = westernDigits(s)
	low := strings.ToLower(s)
	if !strings.ContainsAny(low, "0123456789") && !strings.Contains(low, "midnight") && !strings.Contains(low, "noon") {
		return false // most answers say no time at all
	}
	if d, ok := spokenLength(low); ok && p.offer(d, "text") {
		return true
	}
	if d, ok := spokenMoment(s, p.now); ok {
		return p.offer(d, "text")
	}
	return false
}

// spokenLength is the first length in low that is a wait.
func spokenLength(low string) (time.Duration, bool) {
	first, best := len(low)+1, time.Duration(0)
	consider := func(start, number int, bareSeconds bool) {
		if start >= first || refused(low, start) {
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
	for i, re := range lead {
		for _, at := range re.FindAllStringIndex(low, 16) {
			consider(at[0], at[1], i == 1)
		}
	}
	for _, re := range tail {
		for _, at := range re.FindAllStringIndex(low, 16) {
			consider(at[0], at[0], false)
		}
	}
	return best, first <= len(low)
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

func isWord(b byte) bool {
	return b == '_' || '0' <= b && b <= '9' || 'a' <= b && b <= 'z' || b >= 0x80
}

var (
	condition = regexp.MustCompile(`(?:^|[\s(])(?:if|when|once|after you|unless)\s`)
	percent   = regexp.MustCompile(`(\d+(?:\.\d+)?) ?% ?(left|remaining|available)?`)
)

// refused says that the words before a match make it no hint: advice under a condition ("If you have already done so,
// try again in 15 minutes"), or the display of a window that is not used up ("usage: 22%. Resets in 111 hours").
func refused(low string, start int) bool {
	before := low[max(0, start-160):start]
	sentence := before
	if i := strings.LastIndexAny(before, "\n"); i >= 0 {
		sentence, before = before[i+1:], before[i+1:]
	}
	for _, end := range []string{". ", "! ", "? ", "。"} {
		if i := strings.LastIndex(sentence, end); i >= 0 {
			sentence = sentence[i+len(end):]
		}
	}
	if condition.MatchString(sentence) {
		return true
	}
	all := percent.FindAllStringSubmatch(before, -1)
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

// westernDigits writes Arabic and full-width digits as 0 to 9.
func westernDigits(s string) string {
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
