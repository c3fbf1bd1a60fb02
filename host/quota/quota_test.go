package quota

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// head reads header lines as a client of HTTP does.
func head(lines string) http.Header {
	h := http.Header{"Content-Type": {"application/json"}}
	for line := range strings.Lines(lines) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			h.Add(name, value)
		}
	}
	return h
}

func TestLearn(t *testing.T) {
	for _, c := range []struct{ name, head, want string }{
		{"OBJ-20 Anthropic's rate limits", `
anthropic-ratelimit-requests-limit: 50
anthropic-ratelimit-requests-remaining: 49
anthropic-ratelimit-requests-reset: 2026-07-01T12:00:30Z
anthropic-ratelimit-input-tokens-limit: 40000
anthropic-ratelimit-input-tokens-remaining: 10000`,
			`[{"name":"input_tokens","usedPercent":75,"remaining":10000,"limit":40000,"resetsAt":null},
			  {"name":"requests","usedPercent":2,"remaining":49,"limit":50,"resetsAt":"2026-07-01T12:00:30.000Z"}]`},
		{"OBJ-20 Anthropic's subscriptions", `
anthropic-ratelimit-unified-status: allowed
anthropic-ratelimit-unified-reset: 1782920000
anthropic-ratelimit-unified-representative-claim: five_hour
anthropic-ratelimit-unified-5h-status: allowed
anthropic-ratelimit-unified-5h-utilization: 0.24
anthropic-ratelimit-unified-5h-reset: 1782910800
anthropic-ratelimit-unified-7d-utilization: 0.5
anthropic-ratelimit-unified-7d_opus-utilization: 1.2
anthropic-ratelimit-unified-overage-status: rejected`,
			`[{"name":"5h","usedPercent":24,"remaining":null,"limit":null,"resetsAt":"2026-07-01T13:00:00.000Z"},
			  {"name":"7d","usedPercent":50,"remaining":null,"limit":null,"resetsAt":null},
			  {"name":"7d:opus","usedPercent":100,"remaining":null,"limit":null,"resetsAt":null}]`},
		{"OBJ-20 OpenAI and those that speak as it does", `
x-ratelimit-limit-requests: 500
x-ratelimit-remaining-requests: 0
x-ratelimit-reset-requests: 6m0s
x-ratelimit-limit-tokens: 200000
x-ratelimit-remaining-tokens: 150000
x-ratelimit-reset-tokens: 20ms
x-ratelimit-remaining-requests-day: 7
x-ratelimit-limit-req-minute: 60`,
			`[{"name":"daily","usedPercent":null,"remaining":7,"limit":null,"resetsAt":null},
			  {"name":"req_minute","usedPercent":null,"remaining":null,"limit":60,"resetsAt":null},
			  {"name":"requests","usedPercent":100,"remaining":0,"limit":500,"resetsAt":"2026-07-01T12:06:00.000Z"},
			  {"name":"tokens","usedPercent":25,"remaining":150000,"limit":200000,"resetsAt":"2026-07-01T12:00:00.020Z"}]`},
		{"OBJ-20 codex", `
x-codex-primary-used-percent: 12.5
x-codex-primary-window-minutes: 300
x-codex-primary-reset-after-seconds: 60
x-codex-secondary-used-percent: 80
x-codex-secondary-window-minutes: 10080
x-codex-secondary-reset-at: 1782910800
x-codex-credits-balance: 3.5
x-codex-plan-type: pro`,
			`[{"name":"5h","usedPercent":12.5,"remaining":null,"limit":null,"resetsAt":"2026-07-01T12:01:00.000Z"},
			  {"name":"7d","usedPercent":80,"remaining":null,"limit":null,"resetsAt":"2026-07-01T13:00:00.000Z"},
			  {"name":"credits","usedPercent":null,"remaining":3.5,"limit":null,"resetsAt":null}]`},
		{"OBJ-20 a codex account with one monthly window", `
x-codex-primary-used-percent: 1
x-codex-primary-window-minutes: 43200`,
			`[{"name":"monthly","usedPercent":1,"remaining":null,"limit":null,"resetsAt":null}]`},
		{"OBJ-20 what is no number is not noted", `
x-ratelimit-limit-requests: many
x-ratelimit-remaining-requests: -5
x-ratelimit-remaining-tokens: NaN
x-ratelimit-reset-tokens: soon
x-codex-primary-reset-after-seconds: 99999999999999
anthropic-ratelimit-tokens-reset: 1850-01-01T00:00:00Z`, `[]`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var b Book
			b.Learn("c-1", head(c.head), noon)
			s, _ := b.Snapshot("c-1")
			var want, got any
			text, _ := json.Marshal(s.Windows)
			if json.Unmarshal([]byte(c.want), &want) != nil || json.Unmarshal(text, &got) != nil {
				t.Fatal("not JSON")
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
			if s.At != "2026-07-01T12:00:00.000Z" || s.Source != "headers" || s.ConnectionID != "c-1" {
				t.Errorf("%+v", s)
			}
		})
	}
	t.Run("OBJ-20 an answer that says nothing", func(t *testing.T) {
		var b Book
		b.Learn("c-1", head("x-request-id: 1\nx-ratelimited: 7"), noon)
		if _, known := b.Snapshot("c-1"); known {
			t.Error("something is known")
		}
	})
	t.Run("OBJ-20 later answers replace what they name", func(t *testing.T) {
		var b Book
		b.Learn("c-1", head("x-ratelimit-remaining-requests: 5\nx-ratelimit-remaining-tokens: 9"), noon)
		b.Learn("c-1", head("x-ratelimit-remaining-requests: 4"), noon.Add(time.Second))
		s, _ := b.Snapshot("c-1")
		if *s.Windows[0].Remaining != 4 || *s.Windows[1].Remaining != 9 || s.At != "2026-07-01T12:00:01.000Z" {
			t.Errorf("%+v", s)
		}
	})
	t.Run("OBJ-20 names are bounded", func(t *testing.T) {
		var b Book
		for i := range 100 {
			b.Learn("c-1", http.Header{"X-Ratelimit-Limit-A" + strings.Repeat("b", i): {"1"}}, noon)
		}
		if s, _ := b.Snapshot("c-1"); len(s.Windows) != maxWindows {
			t.Errorf("%d windows", len(s.Windows))
		}
	})
}

func TestHeadroom(t *testing.T) {
	for _, c := range []struct {
		name, head string
		after      time.Duration
		percent    float64
		known      bool
	}{
		{"the tightest window", "x-codex-primary-used-percent: 30\nx-codex-secondary-used-percent: 90", 0, 10, true},
		{"a window whose end has passed is full", "x-codex-primary-used-percent: 90\nx-codex-primary-reset-after-seconds: 60", time.Minute, 100, true},
		{"one that still runs is not", "x-codex-primary-used-percent: 90\nx-codex-primary-reset-after-seconds: 60", 59 * time.Second, 10, true},
		{"by limit and remaining", "x-ratelimit-limit-tokens: 200\nx-ratelimit-remaining-tokens: 50", 0, 25, true},
		{"nothing left", "x-ratelimit-remaining-requests: 0", 0, 0, true},
		{"a number without a limit says nothing", "x-ratelimit-remaining-requests: 3", 0, 0, false},
		{"a window that names no end is believed for an hour", "x-codex-primary-used-percent: 90", time.Hour, 10, true},
		{"and not longer", "x-codex-primary-used-percent: 90", time.Hour + time.Second, 0, false},
	} {
		t.Run("OBJ-20 SEL-6 "+c.name, func(t *testing.T) {
			var b Book
			b.Learn("c-1", head(c.head), noon)
			percent, known := b.Headroom("c-1", noon.Add(c.after))
			if known != c.known || known && percent != c.percent {
				t.Errorf("%v, %v", percent, known)
			}
		})
	}
	if _, known := new(Book).Headroom("c-1", noon); known {
		t.Error("something is known of a connection that never answered")
	}
}

func TestStored(t *testing.T) {
	t.Run("OBJ-20 the last value comes back", func(t *testing.T) {
		var b, again Book
		b.Learn("c-1", head("x-codex-primary-used-percent: 30\nx-codex-primary-reset-after-seconds: 60\nx-ratelimit-limit-tokens: 9"), noon)
		list := b.Changed()
		if len(list) != 1 || len(b.Changed()) != 0 {
			t.Fatalf("%d changed, then %d", len(list), len(b.Changed()))
		}
		again.Restore(list[0])
		want, _ := b.Snapshot("c-1")
		got, _ := again.Snapshot("c-1")
		if d := cmp.Diff(want, got); d != "" {
			t.Error(d)
		}
		if len(again.Changed()) != 0 {
			t.Error("what is stored is stored again")
		}
	})
	t.Run("OBJ-20 and does not hide what was learned since", func(t *testing.T) {
		var b Book
		b.Learn("c-1", head("x-codex-primary-used-percent: 30"), noon)
		b.Restore(Snapshot{ConnectionID: "c-1", At: "2026-06-01T00:00:00.000Z", Windows: []Window{{Name: "5h"}}})
		if s, _ := b.Snapshot("c-1"); *s.Windows[0].UsedPercent != 30 {
			t.Errorf("%+v", s)
		}
	})
	t.Run("OBJ-7 a deleted connection is forgotten", func(t *testing.T) {
		var b Book
		b.Learn("c-1", head("x-codex-primary-used-percent: 30"), noon)
		b.Forget("c-1")
		if _, known := b.Snapshot("c-1"); known {
			t.Error("it is known")
		}
	})
}

// OBJ-20: many answers of many connections, and readers, at once.
func TestHammer(t *testing.T) {
	var b Book
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for j := range 500 {
				id := string(rune('a' + (i+j)%7))
				b.Learn(id, head("x-codex-primary-used-percent: 30\nx-ratelimit-remaining-tokens: 3"), noon)
				b.Headroom(id, noon)
				b.Snapshot(id)
				if j%100 == 0 {
					b.Changed()
					b.Forget(id)
				}
			}
		})
	}
	all.Wait()
}

func FuzzLearn(f *testing.F) {
	f.Add("X-Codex-Primary-Used-Percent", "1e400")
	f.Add("Anthropic-Ratelimit-Unified-7d_x-Utilization", "0.5")
	f.Add("X-Ratelimit-Reset-", "99999999h")
	f.Fuzz(func(t *testing.T, name, value string) {
		var b Book
		b.Learn("c", http.Header{name: {value}}, noon)
		s, _ := b.Snapshot("c")
		for _, w := range s.Windows {
			if w.UsedPercent != nil && (*w.UsedPercent < 0 || *w.UsedPercent > 100) || len(w.Name) > maxName+8 {
				t.Fatalf("%+v", w)
			}
		}
		if _, err := json.Marshal(s); err != nil {
			t.Fatal(err)
		}
		if p, _ := b.Headroom("c", noon); p < 0 || p > 100 {
			t.Fatal(p)
		}
	})
}

func BenchmarkLearn(b *testing.B) {
	h := head(`x-ratelimit-limit-requests: 500
x-ratelimit-remaining-requests: 10
x-ratelimit-reset-requests: 6m0s
x-ratelimit-limit-tokens: 200000
x-ratelimit-remaining-tokens: 150000
x-ratelimit-reset-tokens: 20ms
date: x
x-request-id: x`)
	for name, h := range map[string]http.Header{"limits": h, "none": {"Content-Type": {"x"}, "Date": {"x"}, "X-Request-Id": {"x"}}} {
		b.Run(name, func(b *testing.B) {
			var book Book
			b.ReportAllocs()
			for b.Loop() {
				book.Learn("c-1", h, noon)
			}
		})
	}
}
