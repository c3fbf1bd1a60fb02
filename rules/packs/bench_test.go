package packs_test

import (
	"strings"
	"testing"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// allWords has words that the expressions of the shipped rules need, in an order in which hardly one of them matches.
const allWords = "expired five gone; month of hours; reached in tokens (x) ; revoked the key, deleted or disabled api; leaked. " +
	"Invalid the token: region, country; usage. Insufficient the balance; funds. Daily the quota. Content; blocked; policy. " +
	"Model the not; found. Access the denied. Context the length; maximum. Concurrency the many; requests of concurrent. "

// BenchmarkJudge is the whole way of a failed answer with all shipped packs loaded: reading, restating, classifying. The
// goal is 100 µs for 2 KiB and 2 ms for 64 KiB, whatever stands in the body.
func BenchmarkJudge(b *testing.B) {
	set := compile(load(b))
	for _, c := range failures() {
		a := answer{Provider: c.provider, Auth: wire.AuthAPIKey, Model: "m", Status: 429, Body: c.body, Now: answers(b, "upstream-errors.jsonl")[0].Now}
		b.Run(c.name+"/read", func(b *testing.B) {
			b.ReportAllocs()
			for r := a.reply(); b.Loop(); {
				rules.Read(r)
			}
		})
		b.Run(c.name+"/all", func(b *testing.B) {
			b.ReportAllocs()
			judge(set, a.reply())
			for b.Loop() {
				judge(set, a.reply())
			}
		})
	}
}

// failure is a failed answer that is worth measuring.
type failure struct{ name, provider, body string }

func failures() []failure {
	const part = "Your organization has reached its limit of tokens per minute on this model (request id 3f2a9c). "
	openAI := func(part string, size int) string {
		return `{"error":{"message":"` + strings.Repeat(part, size/len(part)) + `","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`
	}
	return []failure{
		{"300B/typical", "openai", openAI(part, 250)},
		{"2KiB/typical", "openai", openAI(part, 2<<10)},
		{"2KiB/unknown provider", "acme", openAI(part, 2<<10)},
		{"2KiB/relay", "openrouter", `{"error":{"message":"Provider returned error","code":429,"metadata":{"raw":"` + strings.ReplaceAll(openAI(part, 2<<10), `"`, `\"`) + `"}}}`},
		{"2KiB/plain", "openai", strings.Repeat(part, 2<<10/len(part))},
		{"2KiB/html", "openai", "<!DOCTYPE html><html><head><title>504 Gateway Time-out</title></head><body>" + strings.Repeat("<p>"+part, 2<<10/len(part))},
		{"64KiB/typical", "openai", openAI(part, 64<<10-200)},
		{"64KiB/phrases", "openai", openAI("if 5% left, try again in 5s until 2026 or wait for reset; ", 64<<10-200)},
		{"64KiB/escapes", "openai", openAI(`\u8bf7\u7b49\u5f85 \"x\" `, 64<<10-200)},
		{"64KiB/plain", "openai", strings.Repeat(part, 64<<10/len(part))},
		{"64KiB/nested arrays", "openai", strings.Repeat("[", 32<<10) + strings.Repeat("]", 32<<10)},
		{"64KiB/nested objects", "openai", strings.Repeat(`{"error":`, 6<<10) + "1" + strings.Repeat("}", 6<<10)},
		{"64KiB/open braces", "openai", openAI(`{[\"`, 64<<10-200)},
		{"64KiB/wide", "openai", `{` + strings.Repeat(`"k":{"x":{"y":"try 1"}},`, (64<<10-200)/24) + `"error":"x"}`},
		{"64KiB/many strings", "openai", `{"a\n":[` + strings.Repeat(`"{x",`, (64<<10-200)/5) + `"error"]}`},
		{"64KiB/events", "openai", strings.Repeat("data: {\"a\":1}\n\n", 64<<10/15)},
		{"64KiB/not utf8", "openai", strings.Repeat("try again in \xff 7 ", 64<<10/17)},
		{"2KiB/all words", "openai", openAI(allWords, 2<<10)},
		{"64KiB/all words", "openai", openAI(allWords, 64<<10-200)},
	}
}

// BenchmarkFirstAnswer is what the first failed answer of a provider costs more: its view is compiled.
func BenchmarkFirstAnswer(b *testing.B) {
	all := load(b)
	r := answer{Provider: "openai", Status: 429, Body: "x"}.reply()
	for b.Loop() {
		compile(all).Match(r)
	}
}
