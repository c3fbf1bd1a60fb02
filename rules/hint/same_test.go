package hint

import (
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var arrival = time.Date(2026, 5, 4, 20, 0, 0, 0, time.UTC)

// comparable leaves out the texts that are read differently on purpose: letters whose lower case has another number of
// bytes (the reference then looked for conditions at the wrong place), and the two that are K and s to an expression in
// any letter case.
func comparable(s string) bool {
	return !strings.ContainsAny(s, "\u017f\u212a") && strings.IndexFunc(s, func(r rune) bool {
		return utf8.RuneLen([]rune(strings.ToLower(string(r)))[0]) != utf8.RuneLen(r)
	}) < 0
}

// sameText compares both readings of words.
func sameText(t interface{ Fatalf(string, ...any) }, s string) {
	want, got := pick{now: arrival}, pick{now: arrival}
	wantEnds, gotEnds := want.oldText(s), got.text(s)
	if wantEnds != gotEnds || want != got {
		t.Fatalf("%q\n reads as %+v (%v)\nwas read %+v (%v)", s, got, gotEnds, want, wantEnds)
	}
}

// pieces are what phrases, lengths, moments and refusals are made of, and what nearly is.
var pieces = []string{
	" ", " ", " ", " ", " ", "  ", "\n", ".", ". ", "! ", "? ", "。", ",", ", ", ":", "(", ")", "-", "_", "/", "=", "~", "~ ", "%", "% ", "x", "é", "\u00a0", "\xff", "T", "Z", "+",
	"again", "retry", "retrying", "back", "Retry-After", "retry_after", "retry after", " it", " your request", " in ", " after ", " within ", " is", " of",
	"about ", "around ", "approximately ", "at least ", "another ", "up to ", "wait ", "for ", "Reset", "resets", "resetting", "refreshes", "refreshed", "renews",
	"replenished", "restore", "restored", "recovers", "available", " again", "unlocks", "unlocked", "cooldown", "cooldown:", "cooldown of",
	"erneut in ", "wieder in ", "noch einmal in ", "versuchen Sie es in ", "réessayez", "reessayer", " à nouveau", " dans ", "de nuevo ", "nuevamente ", "intentarlo ", "en ", "dentro de ",
	"novamente ", "em ", "Riprova", "riprovate", " tra ", " fra ", "Повторите", "попытку", "снова", " через ", "попробуйте", "المحاولة", "حاول", "خلال ", "بعد ",
	"请等待", "请等", "等待", "等候", "稍等", "毫秒", "秒钟", "秒", "分钟", "個小時", "小时", "天", "之后", "后", "以后", "內", "重试", "恢复", "重試", "解除",
	"後に", "時間", "日", "再試行", "もう一度", "초", "분", "시간", "일", "후", "뒤", "에", "다시", "초기화",
	"sekunden", "Sekunde", "minuten", "stunden", "tage", " erneut", " wieder", " noch einmal",
	"0", "1", "2", "5", "7", "12", "30", "99", "100", "174", "2000", "62,056", "1,5", "26.604", "1777924830", "1777924830000", "٣٠", "５", "111111111111111111111",
	"s", "ms", "m", "h", " seconds", " minute", " days", "h2m3s", " hours", " and ", "ثانية", "секунд", "d",
	"2026-05-04", "2026-05-05T01:00:00", "2026-05-04 20:00:10", ":30.5", "T20:01", " UTC", "GMT", "+02:00", "-0700", "until ", " until ", " at ", " on ", " by ", "try", "reset time", "access",
	"在", "于", "到 ", "2026-08-25 07:41", ":44", "midnight", "noon", "Noon", "10:00", "3pm", "12 am", "7:58 PM", "Oct 7", "May 31, ", "Jan. 2 at ", "sept 12",
	" (Europe/Paris)", "America/Argentina/Ushuaia", "PST", " Pacific time", "utc", "Nowhere/Land",
	"if ", "If ", " when ", "(once ", "after you ", "unless\t", "22%", "100 %", "0% remaining", "40% left ", "3.5 % available", "1.2.3%",
}

// COOL-14: made of the words of the reader in any order, every text is read as the reference reads it.
func TestTextAsReference(t *testing.T) {
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 1, 24).Draw(t, "pieces"), "")
	})
	rapid.Check(t, func(t *rapid.T) { sameText(t, text.Draw(t, "text")) })
}

// say are the slots of sentences that say when to come back; each is filled from its list, and now and then from pieces.
var say = [][][]string{
	{refusals, {"again", "Retry", "please try again", "retrying", "back"}, {"", "", " it", " your request", " the request"}, {" in ", " after ", " within "}, abouts, lengths},
	{refusals, {"retry-after", "Retry After", "retry_after"}, {"", " is", " of"}, {"", ":", "="}, {"", " "}, abouts, lengths},
	{refusals, {"wait "}, {"", "for "}, abouts, lengths},
	{refusals, {"resets", "Reset", "resetting", "refreshed", "renews", "replenishes", "restore", "recovers", "available", "available again", "unlocked"}, {"", " again"}, {" in ", " after "}, abouts, lengths},
	{refusals, {"cooldown"}, {"", ":", " of", " for"}, {"", " "}, abouts, lengths},
	{refusals, {"Erneut in ", "wieder in ", "réessayez dans ", "reessayer à nouveau dans ", "de nuevo en ", "intentarlo dentro de ", "novamente em ", "de novo em ", "riprova tra ", "riprovare in "}, lengths},
	{refusals, {"Повторите", "попробуйте", "попытку", "снова"}, pieces, pieces, {" через "}, lengths},
	{refusals, {"المحاولة", "حاول"}, pieces, pieces, {"خلال ", "بعد "}, lengths},
	{refusals, {"请等待", "请等", "等待", "稍等"}, {"", " "}, lengths},
	{refusals, numbers, {"", " "}, {"毫秒", "秒钟", "秒", "分钟", "小时", "个小时", "天"}, {"", "", "5秒", " 5 分钟"}, {"", " "}, {"后", "之后", "以后", "內"}, {"", "请", "x", "\n"}, {"重试", "恢复", "重置"}},
	{refusals, numbers, {"", " "}, {"秒", "分", "時間", "日"}, {"後に"}, pieces, {"再試行", "もう一度", "お試し"}},
	{refusals, numbers, {"", " "}, {"초", "분", "시간", "일"}, {"", " "}, {"후", "뒤"}, {"", "에"}, pieces, {"다시", "초기화"}},
	{refusals, numbers, {" "}, {"sekunden", "Minute", "stunden", "tagen"}, {"", "", " 5 minuten"}, {" erneut", " wieder", " noch einmal"}},
	{refusals, moment, {"", "", " again", " is", ":"}, {" at ", " ", " on ", " until ", "  ", "by "}, dates, {"", "", "T20:30", " 23:10", "T21:00:09", " 20:00:05.25"}, {"", "Z", " UTC", "GMT", "+02:00", " -0700", "Zulu"}},
	{refusals, moment, {" at ", " ", " until "}, {"1777924830", "1777924830000", "1700000000", "177792483", "17779248301"}, {"", " ", ".", "s"}},
	{refusals, moment, {" at ", " ", ": "}, {"", "", "Oct 7 ", "May 31, ", "jan. 2 at ", "December 24, at "}, {"12pm", "3 am", "10:00", "10:00:30", "midnight", "noon", "7:58 PM", "5", "100"}, {"", ","}, {"", " ", "  "}, {"", "("}, {"UTC", "Europe/Paris", "America/Argentina/Ushuaia", "PST", "Pacific time", "gmt", "pm", "Nowhere/Land", "UTC/x_1", "Europe/Paris_1"}, {"", ")", "."}},
	{refusals, {"在", "于", "到"}, {"", " "}, {"2026-08-25 07:41", "2026-05-04 07:41"}, {"", ":44"}, {"", " "}, {"", "x", "。", "自动"}, {"重置", "恢复", "后"}},
}

var (
	refusals = []string{"", "", "", "", "Limit 10. ", "if you paid, ", "When done ", "usage: 22%. ", "100% used, ", "0 % left. ", "7.5% remaining\n", "99.5 % of it "}
	abouts   = []string{"", "", "about ", "approximately ", "another ", "up to ", "~", "~ "}
	numbers  = []string{"0", "5", "12", "1.5", "2,5", "174", "3.4.5"}
	lengths  = []string{"5s", "1h2m3s", "2 days 3 hours", "7 seconds", "0.5 s", "62,056 seconds", "1,5 minuten", "60 秒", "3 секунд", "30 ثانية", "٣٠ ثانية", "20", "20.", "5-hour", "2026-05-05", "0s", "3 attempts", "1 h and 5 min", "soon", "900d"}
	moment   = []string{"try again", "resets", "Resets", "reset time", "until", "wait until", "available again", "access", "unlocks", "retry after", "renew"}
	dates    = []string{"2026-05-05", "2026-05-04", "2026-12-31", "2026-13-01", "2026-5-5"}
)

// COOL-14: a sentence that says when to come back, or nearly so, among others, is read as the reference reads it.
func TestSentencesAsReference(t *testing.T) {
	read := 0
	text := rapid.Custom(func(t *rapid.T) string {
		var b strings.Builder
		for range rapid.IntRange(1, 4).Draw(t, "sentences") {
			for _, slot := range rapid.SampledFrom(say).Draw(t, "sentence") {
				if rapid.IntRange(0, 19).Draw(t, "noise") == 0 {
					slot = pieces
				}
				b.WriteString(rapid.SampledFrom(slot).Draw(t, "slot"))
			}
			b.WriteString(rapid.SampledFrom([]string{"", " ", ". ", "\n", "。"}).Draw(t, "end"))
		}
		return b.String()
	})
	rapid.Check(t, func(t *rapid.T) {
		s := text.Draw(t, "text")
		sameText(t, s)
		if p := (pick{now: arrival}); p.text(s) {
			read++
		}
	})
	if read < 20 {
		t.Errorf("only %d texts said when: the sentences prove nothing", read)
	}
	t.Log(read)
}

func FuzzTextAsReference(f *testing.F) {
	for _, s := range corpusTexts(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if comparable(s) {
			sameText(t, s)
		}
	})
}

func corpusTexts(t testing.TB) []string {
	raw, err := os.ReadFile("testdata/retry-hints.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(string(raw), "\n")
}
