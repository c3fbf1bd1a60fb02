package hint_test

import (
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/rules/hint"
)

var monday = time.Date(2026, 5, 4, 20, 0, 0, 0, time.UTC)

func head(pairs ...string) map[string][]string {
	h := map[string][]string{}
	for i := 0; i < len(pairs); i += 2 {
		h[pairs[i]] = append(h[pairs[i]], pairs[i+1])
	}
	return h
}

// COOL-14: the forms of the headers, and which source goes first.
func TestHeaders(t *testing.T) {
	for _, c := range []struct {
		name   string
		header map[string][]string
		body   string
		want   time.Duration // negative: no hint
		source string
	}{
		{"seconds", head("Retry-After", "7"), "", 7 * time.Second, "header:retry-after"},
		{"letter case does not matter", head("RETRY-after-MS", "250"), "", 250 * time.Millisecond, "header:retry-after-ms"},
		{"a fraction is rounded up", head("Retry-After", "0.0001"), "", time.Millisecond, "header:retry-after"},
		{"60s", head("Retry-After", "60s"), "", time.Minute, "header:retry-after"},
		{"5m", head("Retry-After", "5m"), "", 5 * time.Minute, "header:retry-after"},
		{"2h", head("Retry-After", "2h"), "", 2 * time.Hour, "header:retry-after"},
		{"http date", head("Retry-After", "Mon, 04 May 2026 20:01:00 GMT"), "", time.Minute, "header:retry-after"},
		{"rfc 3339", head("Retry-After", "2026-05-04T22:01:00+02:00"), "", time.Minute, "header:retry-after"},
		{"an epoch in retry-after", head("Retry-After", "1777924810"), "", 10 * time.Second, "header:retry-after"},
		{"milliseconds of now are a length", head("Retry-After-Ms", "1777924810"), "", 1777924810 * time.Millisecond, "header:retry-after-ms"},
		{"above 30 days is cut", head("Retry-After", "99999999"), "", hint.MaxWait, "header:retry-after"},
		{"digits without end are cut", head("Retry-After", strings.Repeat("9", 200)+"s"), "", hint.MaxWait, "header:retry-after"},
		{"negative is ignored", head("Retry-After", "-5"), "", -1, ""},
		{"words are ignored", head("Retry-After", "soon"), "please try again in 3s", 3 * time.Second, "text"},
		{"zero gives way to a later moment", head("Retry-After", "0"), "try again in 3s", 3 * time.Second, "text"},
		{"zero alone may retry now", head("Retry-After", "0"), "", 0, "header:retry-after"},
		{"header beats body", head("Retry-After", "4"), `{"retry_after_ms": 9000}`, 4 * time.Second, "header:retry-after"},
		{"bucket beats body", head("x-ratelimit-remaining", "0", "x-ratelimit-reset", "8"), `{"retry_after_ms": 9000}`, 8 * time.Second, "header:x-ratelimit-reset"},
		{"a bucket with some left is none", head("x-ratelimit-remaining", "1", "x-ratelimit-reset", "8"), "", -1, ""},
		{"a bucket nobody counts is none", head("x-ratelimit-reset", "8"), "", -1, ""},
		{"the full codex window", head("X-Codex-Primary-Used-Percent", "40", "X-Codex-Primary-Reset-After-Seconds", "9",
			"X-Codex-Secondary-Used-Percent", "100", "X-Codex-Secondary-Reset-After-Seconds", "70", "X-Codex-Secondary-Reset-At", "1777925999"),
			"", 70 * time.Second, "header:x-codex-secondary-reset-after-seconds"},
		{"a rejected window among allowed ones", head("anthropic-ratelimit-unified-7d-status", "allowed", "anthropic-ratelimit-unified-7d-reset", "1778524800",
			"anthropic-ratelimit-unified-5h-status", "rejected", "anthropic-ratelimit-unified-5h-reset", "1777928400"),
			"", time.Hour, "header:anthropic-ratelimit-unified-5h-reset"},
		{"overage is no window", head("anthropic-ratelimit-unified-overage-status", "rejected", "anthropic-ratelimit-unified-overage-reset", "1778524800"), "", -1, ""},
		{"a bucket's own retry-after", head("x-ratelimit-user-retry-after", "77"), "", 77 * time.Second, "header:x-ratelimit-user-retry-after"},
		{"an allowed bucket's retry-after is none", head("x-ratelimit-user-status", "allowed", "x-ratelimit-user-retry-after", "77"), "", -1, ""},
		{"draft header", head("RateLimit", "limit=10, remaining=0, reset=50"), "", 50 * time.Second, "header:ratelimit"},
		{"later draft header", head("RateLimit", `"default";r=0;t=5`), "", 5 * time.Second, "header:ratelimit"},
		{"draft header with some left", head("RateLimit", "limit=10, remaining=3, reset=50"), "", -1, ""},
	} {
		t.Run("COOL-14/"+c.name, func(t *testing.T) { expect(t, c.header, c.body, c.want, c.source) })
	}
}

// COOL-14: typed fields of bodies, relative before absolute.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		name, body string
		want       time.Duration
	}{
		{"relative before absolute", `{"error":{"resets_at":1777930000,"resets_in_seconds":30}}`, 30 * time.Second},
		{"absolute seconds", `{"error":{"resets_at":1777924830}}`, 30 * time.Second},
		{"absolute milliseconds", `{"resetAt":1777924830000}`, 30 * time.Second},
		{"absolute text", `{"error":{"details":{"reset_time":"2026-05-04T20:00:30Z"}}}`, 30 * time.Second},
		{"retryAfter as a date", `{"retryAfter":"2026-05-04T20:00:30Z"}`, 30 * time.Second},
		{"retryAfterMs", `{"error":{"retryAfterMs":1500}}`, 1500 * time.Millisecond},
		{"protobuf duration object", `{"error":{"details":[{"retryDelay":{"seconds":"12","nanos":0}}]}}`, 12 * time.Second},
		{"the longer of two", `{"details":[{"retryDelay":"4s"},{"quotaResetDelay":"1h0m0.5s"}]}`, time.Hour + 500*time.Millisecond},
		{"json inside a string", `{"error":{"message":"upstream said: {\"error\":{\"retry_after\":9}}"}}`, 9 * time.Second},
		{"stream event", "event: error\ndata: {\"error\":{\"retry_after\":9}}\n\n", 9 * time.Second},
		{"headers inside a body", `{"error":{"metadata":{"headers":{"X-RateLimit-Remaining":"0","X-RateLimit-Reset":"1777924860000"}}}}`, time.Minute},
		{"an open window is none", `{"windows":[{"used_percent":22,"reset_after_seconds":400}]}`, -1},
		{"a time without zone is none", `{"resetTime":"2026-08-25 07:41:44"}`, -1},
		{"a small absolute number is none", `{"reset":60}`, -1},
		{"model output is none", `{"choices":[{"message":{"content":"try again in 9s","retry_after":9}}]}`, -1},
		{"limits are none", `{"error":{"limit":60,"window":"60s","timeout_ms":5000,"max_wait_ms":15000}}`, -1},
		{"null and bool are none", `{"retry_after":null,"retry_after_ms":true}`, -1},
	} {
		t.Run("COOL-14/"+c.name, func(t *testing.T) { expect(t, nil, c.body, c.want, "") })
	}
}

// COOL-14: words, in several languages, and the words that are no hint.
func TestText(t *testing.T) {
	for _, c := range []struct {
		text string
		want time.Duration
	}{
		{"Please retry in 44.5s.", 44500 * time.Millisecond},
		{"please retry in 12s", 12 * time.Second},
		{"wait until 2026-05-04T20:00:10Z", 10 * time.Second},
		{"Your limit resets at 2026-05-04 20:00:10 UTC", 10 * time.Second},
		{"available at 2026-05-04T22:00:10+02:00", 10 * time.Second},
		{"retry after 2026-05-04T20:00:10.5Z", 10500 * time.Millisecond},
		{"Retry-After: 20", 20 * time.Second},
		{"reset after 1h2m3s", time.Hour + 2*time.Minute + 3*time.Second},
		{"will reset after 90 seconds", 90 * time.Second},
		{"resets in 4h", 4 * time.Hour},
		{"resets in 3 days", 72 * time.Hour},
		{"Try again in 1 minute and 5 seconds", 65 * time.Second},
		{"Try again in about 62,056 seconds", 62056 * time.Second},
		{"resets at 1777924830", 30 * time.Second},
		{"resets 1am (Europe/Paris)", 3 * time.Hour},
		{"resets May 7 at 3pm (UTC)", 67 * time.Hour},
		{"Resets at midnight UTC", 4 * time.Hour},
		{"resets at midnight Pacific time", 11 * time.Hour},
		{"请在 30 秒后重试", 30 * time.Second},
		{"请等待 5 分钟", 5 * time.Minute},
		{"額度將在 2 小時後恢復", 2 * time.Hour},
		{"30秒後に再試行してください", 30 * time.Second},
		{"30초 후에 다시 시도하세요", 30 * time.Second},
		{"Bitte versuchen Sie es in 30 Sekunden erneut.", 30 * time.Second},
		{"Veuillez réessayer dans 2 minutes.", 2 * time.Minute},
		{"Inténtalo de nuevo en 30 segundos", 30 * time.Second},
		{"Tente novamente em 30 segundos", 30 * time.Second},
		{"Riprova tra 30 secondi", 30 * time.Second},
		{"Повторите попытку через 30 секунд", 30 * time.Second},
		{"حاول مرة أخرى بعد ٣٠ ثانية", 30 * time.Second},
		{"Weekly usage: 100%. Resets in 5 hours", 5 * time.Hour},
		{"0% remaining, resets in 5 hours", 5 * time.Hour},
		{"retry after 2026-05-05", 4 * time.Hour},

		{"40% remaining, resets in 5 hours", -1},
		{"5-hour usage limit reached", -1},
		{"Limit 10000 per 86400s", -1},
		{"timed out after 15000 ms", -1},
		{"maxWaitMs 15000", -1},
		{"try again later", -1},
		{"Please wait a moment", -1},
		{"try again in a few minutes", -1},
		{"try again tomorrow", -1},
		{"If you have just paid, try again in 5 minutes", -1},
		{"resets at 7:58 PM", -1},
		{"resets at 2026-05-04 21:00:00", -1},
		{"model claude-3-haiku-20240307, try again", -1},
		{"retry after 2 attempts", -1},
	} {
		t.Run("COOL-14/"+c.text, func(t *testing.T) { expect(t, nil, c.text, c.want, "") })
	}
}

func expect(t *testing.T, h map[string][]string, body string, want time.Duration, source string) {
	t.Helper()
	got, ok := hint.Read(h, []byte(body), monday)
	if want < 0 {
		if ok {
			t.Errorf("got %v from %s, want nothing", got.Wait, got.Source)
		}
		return
	}
	if !ok || got.Wait != want || source != "" && got.Source != source {
		t.Errorf("got %v from %q (%v), want %v from %q", got.Wait, got.Source, ok, want, source)
	}
}

// RST-10: what lies behind the first 64 KiB is not read.
func TestBounded(t *testing.T) {
	body := strings.Repeat(" x", hint.MaxBody/2) + " try again in 5s"
	if got, ok := hint.Read(nil, []byte(body), monday); ok {
		t.Errorf("read %v behind the bound", got)
	}
}

// ABI-2: every unit of a rule's retry_after.
func TestUnit(t *testing.T) {
	for _, c := range []struct {
		unit, text string
		want       time.Duration // 0: none
	}{
		{"s", "1.5", 1500 * time.Millisecond}, {"ms", "20", 20 * time.Millisecond}, {"m", "2", 2 * time.Minute}, {"h", "6", 6 * time.Hour},
		{"unix_s", "1777924830", 30 * time.Second}, {"unix_ms", "1777924830500", 30500 * time.Millisecond},
		{"rfc3339", "2026-05-04T20:00:30Z", 30 * time.Second}, {"http_date", "Mon, 04 May 2026 20:00:30 GMT", 30 * time.Second},
		{"duration", "1h2m", time.Hour + 2*time.Minute}, {"duration", "3.5s", 3500 * time.Millisecond},
		{"countdown", "in 2 days 3 hours", 51 * time.Hour}, {"countdown", "10 days 19 hours", 259 * time.Hour},
		{"next_midnight:UTC", "", 4 * time.Hour}, {"next_midnight:America/Los_Angeles", "", 11 * time.Hour},
		{"local:Asia/Shanghai", "2026-05-05 04:01:00", time.Minute},
		{"s", "0", 0}, {"s", "-1", 0}, {"s", "x", 0}, {"s", "9999999999", 0}, {"h", "721", 0}, {"duration", "soon", 0},
		{"unix_s", "1", 0}, {"rfc3339", "2026-05-04 20:00:30", 0}, {"countdown", "later", 0}, {"fortnight", "1", 0},
	} {
		t.Run("ABI-2/"+c.unit+"/"+c.text, func(t *testing.T) {
			got, ok := hint.Unit(c.text, c.unit, monday)
			if ok != (c.want > 0) || got != c.want {
				t.Errorf("got %v %v, want %v", got, ok, c.want)
			}
		})
	}
	for unit, want := range map[string]bool{"s": true, "countdown": true, "next_midnight:UTC": true, "local:Asia/Shanghai": true,
		"next_midnight": false, "next_midnight:Nowhere/Land": false, "": false, "local:": false} {
		if hint.ValidUnit(unit) != want {
			t.Errorf("ValidUnit(%q) = %v", unit, !want)
		}
	}
}

// COOL-14: whatever a stranger sends, the wait is whole milliseconds between 0 and 30 days, and reading it again gives
// the same.
func FuzzRead(f *testing.F) {
	for _, s := range lines(f) {
		for k, v := range s.Headers {
			f.Add(k, v, s.Body)
		}
		f.Add("", "", s.Body)
	}
	f.Fuzz(func(t *testing.T, name, value, body string) {
		h := head(name, value, "x-ratelimit-remaining", "0", "x-ratelimit-reset", value)
		a, ok := hint.Read(h, []byte(body), monday)
		b, again := hint.Read(h, []byte(body), monday)
		if a != b || ok != again {
			t.Fatalf("two readings: %v and %v", a, b)
		}
		if a.Wait < 0 || a.Wait > hint.MaxWait || a.Wait%time.Millisecond != 0 || ok == (a.Source == "") {
			t.Fatalf("out of bounds: %v %v", a, ok)
		}
	})
}

func FuzzUnit(f *testing.F) {
	for _, u := range []string{"s", "ms", "m", "h", "unix_s", "unix_ms", "rfc3339", "http_date", "duration", "countdown", "next_midnight:UTC", "local:Asia/Tokyo"} {
		f.Add("10 days 19 hours", u)
		f.Add("1777924830", u)
	}
	f.Fuzz(func(t *testing.T, text, unit string) {
		d, ok := hint.Unit(text, unit, monday)
		if ok != (d > 0) || d > hint.MaxWait || ok && !hint.ValidUnit(unit) {
			t.Fatalf("%v %v", d, ok)
		}
	})
}
