package hint_test

import (
	"strings"
	"testing"

	"github.com/weirgate/weir/rules/hint"
)

// errorOf is an error as OpenAI's dialect has it, whose message is part, said again and again up to size bytes.
func errorOf(part string, size int) []byte {
	message := strings.Repeat(part, max(1, size/len(part)))
	return []byte(`{"error":{"message":"` + message + `","type":"rate_limit_error","param":null,"code":"rate_limit_exceeded"}}`)
}

// bodies are what the benchmarks read. Hostile are texts in which all words of the reader stand but no hint does.
var bodies = []struct {
	name string
	body []byte
}{
	{"nothing", nil},
	{"300B/hint", []byte(`{"error":{"message":"Rate limit reached for gpt-4.1 in organization org-X on tokens per min (TPM): Limit 30000, Used 18928, Requested 11159. Please try again in 174ms. Visit https://platform.openai.com/account/rate-limits to learn more.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`)},
	{"2KiB/typical", errorOf("The model you asked for is not served by this provider (request id 3f2a9c). ", 2<<10)},
	{"2KiB/no digit", errorOf("The model you asked for is not served by this provider. ", 2<<10)},
	{"2KiB/hint", []byte(strings.Replace(string(errorOf("Limit 30000, Used 18928 of this organization's tokens per minute. ", 2<<10)),
		`","type"`, `Please try again in 26.604s.","type"`, 1))}, // at the end, where relays put it
	{"2KiB/phrases", errorOf("Please try again in 174ms. ", 2<<10)},
	{"2KiB/plain", []byte(strings.Repeat("upstream connect error or disconnect/reset before headers (503). ", 2<<10/64))},
	{"2KiB/html", []byte("<!DOCTYPE html><html><head><title>504 Gateway Time-out</title></head><body>" + strings.Repeat(`<div class="row-12"><a href="/status?id=77">Please come back later</a></div>`, 2<<10/76) + "</body></html>")},
	{"64KiB/without", errorOf("The model you asked for is not served by this provider (request id 3f2a9c). ", 64<<10-200)},
	{"64KiB/phrases", errorOf("Please try again in 174ms. ", 64<<10-200)},
	{"64KiB/hostile", errorOf("retry, try again in a while, wait, available after 5, reset in 3 of 7% left, until 2026 ", 64<<10-200)},
	{"64KiB/refused", errorOf("if 5% left try again in 7s until 2026-01-01T00:00:00Z ", 64<<10-200)},
	{"64KiB/digits", errorOf("1234567890", 64<<10-200)},
	{"64KiB/chinese", errorOf("在 2026-08-25 07:41 请等待 30 天 20 秒后，30초 후, ", 64<<10-200)},
	{"64KiB/cyrillic", errorOf("повторите попытку снова 3 через раз ", 64<<10-200)},
	{"64KiB/arabic", errorOf("حاول المحاولة ٣ ", 64<<10-200)},
	{"64KiB/gaps", errorOf("حاول. بعد ", 64<<10-200)},
	{"64KiB/decimals", errorOf("1.1,", 64<<10-200)},
	{"64KiB/units", errorOf("1秒后", 64<<10-200)},
	{"64KiB/parts", errorOf("1秒 5 分钟", 64<<10-200)},
	{"64KiB/letters", errorOf("retry after 5s"+strings.Repeat("a", 1000), 64<<10-200)},
	{"64KiB/moments", errorOf("until 2026-05-05T wait at 12:00 UTCx1 resets jan 7 at ", 64<<10-200)},
	{"64KiB/fields", []byte(`[` + strings.Repeat(`{"retry_after":"soon"},`, (64<<10-200)/23) + `0]`)},
	{"64KiB/braces", errorOf("{[", 64<<10-200)},
	{"64KiB/nested", []byte(strings.Repeat("[", 32<<10) + strings.Repeat("]", 32<<10))},
	{"64KiB/objects", []byte(strings.Repeat(`{"a":`, 10<<10) + "1" + strings.Repeat("}", 10<<10))},
	{"64KiB/strings", escapes()},
	{"64KiB/events", []byte(strings.Repeat("data: {\"a\":1}\n", (64<<10)/14))},
	{"64KiB/wide", []byte(`{` + strings.Repeat(`"k":{"x":{"y":"try 1"}},`, (64<<10-200)/24) + `"z":0}`)},
	{"64KiB/not utf8", []byte(strings.Repeat("try again in \xff 7 ", (64<<10-200)/17))},
}

// escapes is JSON inside strings inside JSON, as deep as 64 KiB hold.
func escapes() []byte {
	body := `{"error":"try 1"}`
	for {
		next := `{"error":"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(body) + `"}`
		if len(next) > hint.MaxBody {
			return []byte(body)
		}
		body = next
	}
}

func BenchmarkRead(b *testing.B) {
	for _, c := range bodies {
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(c.body)))
			for b.Loop() {
				hint.Read(nil, c.body, monday)
			}
		})
	}
}

// BenchmarkReadHeader has the headers that many providers send with every answer, and one that says the wait.
func BenchmarkReadHeader(b *testing.B) {
	for _, c := range []struct{ name, header, value string }{
		{"retry-after", "Retry-After", "20"},
		{"bucket", "X-Ratelimit-Remaining-Requests", "0"},
		{"none", "X-Ratelimit-Remaining-Requests", "7"},
	} {
		h := head("Date", "Mon, 04 May 2026 20:00:00 GMT", "Content-Type", "application/json", "Content-Length", "300",
			"Server", "x", "X-Request-Id", "7", "Vary", "Origin", "Cf-Ray", "9a", "Strict-Transport-Security", "max-age=63072000",
			"X-Ratelimit-Limit-Requests", "500", "X-Ratelimit-Reset-Requests", "1m23s", c.header, c.value)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				hint.Read(h, bodies[2].body, monday)
			}
		})
	}
}
