package errorlog

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const secret = "hush-this-is-the-stored-one"

type rig struct {
	*Log
	rows     store.Rows
	settings settings.ErrorRecord
}

func newRig(t *testing.T, rows store.Rows) *rig {
	t.Helper()
	r := &rig{rows: rows, settings: settings.ErrorRecord{Enabled: true, RetentionDays: 14, MaxRows: 5000, MaxBodyBytes: 65536}}
	r.Log = New(Options{
		Rows: rows, Settings: func() settings.ErrorRecord { return r.settings }, Now: time.Now,
		Redact: func(s string) string { return strings.ReplaceAll(s, secret, redacted) },
	})
	return r
}

func (r *rig) stop(t *testing.T) {
	t.Helper()
	if err := r.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (r *rig) all(t *testing.T, f Filter) []Record {
	t.Helper()
	records, total, err := r.List(t.Context(), f, 10_000, 0)
	if err != nil || total != len(records) {
		t.Fatalf("%d of %d records, %v", len(records), total, err)
	}
	return records
}

func reply(status int, body string) *rules.Reply {
	r := &rules.Reply{
		Provider: "acme", Connection: "c-1", Auth: wire.AuthAPIKey, Model: "large", Endpoint: "/v1/chat/completions", Attempt: 1,
		Source: wire.SourceHTTP, Status: status, Original: status, Header: http.Header{"Retry-After": {"7"}},
		Body: []byte(body), BodyBytes: len(body), Now: time.Now(),
	}
	rules.Read(r)
	return r
}

var overloaded = wire.Verdict{Reason: wire.Overloaded, Scope: wire.ScopeModel, Fallback: true, Plugin: "generic", Rule: "busy"}

func TestOBJ19Line(t *testing.T) {
	t.Run("OBJ-19 a line of the corpus, and where it came from", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			l := newRig(t, memory.New(memory.Options{}))
			r := reply(403, `{"error":{"message":"quota"}}`)
			r.Status, r.Restated = 429, "quota-as-403"
			l.Failed(r, wire.Verdict{
				Reason: wire.QuotaExhausted, Scope: wire.ScopeConnection, Fallback: true, RetryAfter: 7 * time.Second, Hinted: true,
				Plugin: "acme-quirks", Rule: "quota",
			}, "c-1", "req-1")
			l.Start()
			l.stop(t)
			var line json.RawMessage
			for row := range l.rows.NewestRows(t.Context(), Table, 0) {
				line = row.Data
			}
			want := `{"id":"","provider":"acme","auth":"api_key","model":"large","endpoint":"/v1/chat/completions","status":403,` +
				`"headers":{"retry-after":"7"},"body":"{\"error\":{\"message\":\"quota\"}}","stream_error":false,"now":"2000-01-01T00:00:00Z",` +
				`"requestId":"req-1","connectionId":"c-1","verdict":{"status":429,"reason":"quota_exhausted","scope":"connection",` +
				`"retryable_elsewhere":true,"cooldown_ms":7000,"trips_breaker":false,"terminal":false,"restated_by":"quota-as-403"},` +
				`"plugin":"acme-quirks","rule":"quota"}`
			if diff := cmp.Diff(want, string(line)); diff != "" {
				t.Error(diff)
			}
			if got := l.all(t, Filter{})[0]; got.ID != "e-1" {
				t.Errorf("its id is %q", got.ID)
			}
		})
	})
	t.Run("OBJ-19 no HTTP answer, and a failure in a stream", func(t *testing.T) {
		l := newRig(t, memory.New(memory.Options{}))
		l.Failed(&rules.Reply{
			Provider: "acme", Source: wire.SourceTransport, Now: time.Now(),
			Facts: rules.Facts{Code: wire.TransportTimeout, Message: "The provider did not answer in time."},
		}, overloaded, "c-1", "req-1")
		s := reply(200, `{"error":{"code":529,"message":"overloaded"}}`)
		s.Source, s.Status = wire.SourceStream, 529
		l.Failed(s, overloaded, "c-1", "req-2")
		l.Start()
		l.stop(t)
		got := l.all(t, Filter{})
		if g := got[1]; g.Status != 0 || g.Code != wire.TransportTimeout || g.Body != "The provider did not answer in time." {
			t.Errorf("without an answer: %+v", g)
		}
		if g := got[0]; g.Status != 200 || !g.Stream {
			t.Errorf("in a stream: %+v", g)
		}
		if r := got[0].Reply(); r.Source != wire.SourceStream || r.Status != 529 || r.Original != 200 {
			t.Errorf("read back: %+v", r)
		}
		if r := got[1].Reply(); r.Source != wire.SourceTransport || r.Facts.Code != wire.TransportTimeout || rules.HostStatus(r) != 504 {
			t.Errorf("read back: %+v", r)
		}
	})
}

// OBJ-19: what must never be written.
func TestOBJ19Redacts(t *testing.T) {
	l := newRig(t, memory.New(memory.Options{}))
	r := reply(401, `{"error":"Incorrect API key provided: sk-proj-Ab12Cd34Ef56Gh78. `+secret+` belongs to jane.doe@acme.example (org_1)",`+
		`"sent":"Bearer abcdefgh12345678","jwt":"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.sig-1","google":"AIzaSyA1234567890abcdefghijklmnopqrstu",`+
		`"api_key":"0123plain9876","hash":"0123456789abcdef0123456789ABCDEF"}`)
	r.Header = http.Header{
		"Set-Cookie": {"session=1"}, "Authorization": {"Bearer x"}, "X-Api-Key": {"k"}, "Cookie": {"c"},
		"X-Echo": {"Bearer abcdefgh12345678", secret}, "X-Long": {strings.Repeat("x", 5000)}, "X-Ratelimit-Remaining": {"0"},
	}
	l.Failed(r, overloaded, "c-1", "req-1")
	l.Start()
	l.stop(t)
	got := l.all(t, Filter{})[0]
	wantBody := `{"error":"Incorrect API key provided: [redacted]. [redacted] belongs to [redacted] (org_1)",` +
		`"sent":"Bearer [redacted]","jwt":"[redacted]","google":"[redacted]","api_key":"[redacted]","hash":"[redacted]"}`
	if diff := cmp.Diff(wantBody, got.Body); diff != "" {
		t.Errorf("body: %s", diff)
	}
	want := map[string]string{
		"x-echo": "Bearer [redacted], [redacted]", "x-long": strings.Repeat("x", maxHeaderBytes), "x-ratelimit-remaining": "0",
	}
	if diff := cmp.Diff(want, got.Headers); diff != "" {
		t.Errorf("headers: %s", diff)
	}
}

// Words are what rules look for, so sentences stay as they are.
func TestRedactLeavesWords(t *testing.T) {
	for _, s := range []string{
		`{"error":{"message":"Invalid API key: check your dashboard","type":"invalid_request_error","code":"invalid_api_key"}}`,
		"This endpoint requires Bearer authentication; the request had Basic credentials", "用户额度不足", "key-not-found-here",
		`{"reason":"API_KEY_INVALID","password":"incorrect","model":"claude-sonnet-4-5-20250929"}`, "Please try again in 6m0s. Visit https://a.b/c?d=e",
		`{"status":"RESOURCE_EXHAUSTED","quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}`,
	} {
		if got := redact(s, func(s string) string { return s }); got != s {
			t.Errorf("%s\nbecame\n%s", s, got)
		}
	}
}

// OBJ-19: a body is cut at maxBodyBytes, and half a secret is not left at the end of one.
func TestOBJ19Cut(t *testing.T) {
	l := newRig(t, memory.New(memory.Options{}))
	l.settings.MaxBodyBytes = 100
	l.Failed(reply(500, strings.Repeat("word ", 18)+"sk-live-abcdefgh12345678"+strings.Repeat(" more", 50)), overloaded, "c", "1")
	r := reply(500, strings.Repeat("x ", 30)+secret[:20]) // dispatch hands over the beginning of a longer one
	r.BodyBytes = 100_000
	l.Failed(r, overloaded, "c", "2")
	l.settings.MaxBodyBytes = 65536
	l.Failed(reply(500, strings.Repeat("\x01", rules.MaxText)), overloaded, "c", "3") // six bytes each as JSON
	l.settings.MaxBodyBytes = 100
	l.Start()
	l.stop(t)
	for _, got := range l.all(t, Filter{}) {
		if len(got.Body) > 100 || strings.Contains(got.Body, "sk-") || strings.Contains(got.Body, "hush") {
			t.Errorf("%s: %q", got.RequestID, got.Body)
		}
	}
	big := &Record{Body: strings.Repeat("\x01 ", 100_000)}
	if line, err := big.encode(store.MaxRow); err != nil || len(line) > store.MaxRow || !json.Valid(line) {
		t.Errorf("a line of %d bytes, %v", len(line), err)
	}
}

// OV-8, OBJ-19: written behind the requests, at most one second late.
func TestWrittenWithinASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newRig(t, memory.New(memory.Options{}))
		l.Start()
		for n := range 600 { // more than one batch
			l.Failed(reply(503, fmt.Sprint(n)), overloaded, "c-1", fmt.Sprint(n))
		}
		time.Sleep(time.Second)
		synctest.Wait()
		got := l.all(t, Filter{})
		if len(got) != 600 || got[0].Body != "599" || got[599].Body != "0" || l.Dropped() != 0 {
			t.Errorf("after a second there are %d of 600, %d dropped", len(got), l.Dropped())
		}
		l.stop(t)
	})
}

// OBJ-19: a full queue drops and counts, and never blocks a request.
func TestNeverBlocks(t *testing.T) {
	l := newRig(t, memory.New(memory.Options{})) // nobody writes
	for range maxQueued + 10 {
		l.Failed(reply(503, "x"), overloaded, "c-1", "r")
	}
	if l.Dropped() != 10 {
		t.Errorf("%d dropped, want 10", l.Dropped())
	}
	heavy := newRig(t, memory.New(memory.Options{}))
	body := strings.Repeat("x", rules.MaxText)
	for range maxQueued {
		heavy.Failed(reply(503, body), overloaded, "c-1", "r")
	}
	if want := int64(maxQueued - maxQueuedBytes/rules.MaxText); heavy.Dropped() != want {
		t.Errorf("%d large ones dropped, want %d", heavy.Dropped(), want)
	}
	for len(heavy.queue) > 3 {
		e := <-heavy.queue
		heavy.waiting.Add(-int64(len(e.body)))
	}
	heavy.Start()
	heavy.stop(t)
	if heavy.waiting.Load() != 0 {
		t.Errorf("%d bytes are said to wait", heavy.waiting.Load())
	}
}

// degraded is a store without room.
type degraded struct{ store.Rows }

func (degraded) AppendRows(context.Context, string, ...store.Row) (store.Seq, error) {
	return 0, store.ErrDegraded
}

// DATA-5: while the store is degraded, records are dropped and counted, and nothing else happens.
func TestDegradedStore(t *testing.T) {
	l := newRig(t, degraded{memory.New(memory.Options{})})
	l.Failed(reply(503, "x"), overloaded, "c-1", "r")
	l.Start()
	l.stop(t)
	if l.Dropped() != 1 {
		t.Errorf("%d dropped, want 1", l.Dropped())
	}
}

// OBJ-19: the switch takes effect with the next answer.
func TestSwitchedOff(t *testing.T) {
	l := newRig(t, memory.New(memory.Options{}))
	l.settings.Enabled = false
	l.Failed(reply(503, "x"), overloaded, "c-1", "r")
	l.Start()
	l.stop(t)
	if n := len(l.all(t, Filter{})); n != 0 {
		t.Errorf("%d records", n)
	}
}

// OBJ-19, OBJ-18: by age and by number, at least once a minute, also when nothing fails any more.
func TestOBJ19Pruned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newRig(t, memory.New(memory.Options{}))
		l.settings.MaxRows = 1500
		l.Start()
		for n := range 2000 {
			l.Failed(reply(503, fmt.Sprint(n)), overloaded, "c-1", "r")
			if n%500 == 0 {
				time.Sleep(time.Second)
			}
		}
		time.Sleep(time.Minute)
		if got := l.all(t, Filter{}); len(got) != 1500 || got[1499].Body != "500" {
			t.Fatalf("%d rows are kept, want 1500", len(got))
		}
		time.Sleep(13*24*time.Hour + 23*time.Hour)
		if n := len(l.all(t, Filter{})); n != 1500 {
			t.Fatalf("%d rows before their time is over", n)
		}
		time.Sleep(time.Hour + time.Minute)
		if n := len(l.all(t, Filter{})); n != 0 {
			t.Fatalf("%d rows after 14 days", n)
		}
		l.stop(t)
	})
}

// OBJ-19: GET /api/errors filters, newest first.
func TestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newRig(t, memory.New(memory.Options{}))
		began := time.Now()
		for n := range 10 {
			r := reply(503, fmt.Sprint(n))
			if n%2 == 1 {
				r.Provider = "other"
			}
			v := overloaded
			if n >= 5 {
				v.Reason = wire.ServerError
			}
			l.Failed(r, v, "c-1", fmt.Sprint(n))
			time.Sleep(time.Minute)
		}
		l.Start()
		time.Sleep(time.Second)
		for _, c := range []struct {
			name string
			f    Filter
			want string
		}{
			{"all", Filter{}, "9876543210"},
			{"a provider in any case", Filter{Provider: "ACME"}, "86420"},
			{"a reason", Filter{Reason: wire.ServerError}, "98765"},
			{"since", Filter{Since: began.Add(7 * time.Minute)}, "987"},
			{"until", Filter{Until: began.Add(2 * time.Minute)}, "10"},
			{"all together", Filter{"acme", wire.Overloaded, began.Add(time.Minute), began.Add(4 * time.Minute)}, "2"},
		} {
			var got bytes.Buffer
			for _, r := range l.all(t, c.f) {
				got.WriteString(r.Body)
			}
			if got.String() != c.want {
				t.Errorf("%s: %s, want %s", c.name, got.String(), c.want)
			}
		}
		part, total, err := l.List(t.Context(), Filter{}, 2, 3)
		if err != nil || total != 10 || len(part) != 2 || part[0].Body != "6" {
			t.Errorf("a page: %+v of %d, %v", part, total, err)
		}
		if n, err := l.Clear(t.Context()); n != 10 || err != nil || len(l.all(t, Filter{})) != 0 {
			t.Errorf("%d removed, %v", n, err)
		}
		l.stop(t)
	})
}

// The writer keeps up with a flood of large bodies.
func BenchmarkRedact(b *testing.B) {
	for name, text := range map[string]string{
		"one-token": strings.Repeat("x", rules.MaxText), "words": strings.Repeat("the quota of key 12 is used up, ", rules.MaxText/32),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				redact(text, func(s string) string { return s })
			}
		})
	}
}

// A planted key does not come through, whatever stands around it.
func FuzzRedact(f *testing.F) {
	f.Add("before ", " after")
	f.Add("Bearer ", `"`)
	f.Add(`{"api_key":"`, "\x00\xff")
	f.Fuzz(func(t *testing.T, before, after string) {
		got := redact(before+" "+secret+" "+after, func(s string) string { return strings.ReplaceAll(s, secret, redacted) })
		if strings.Contains(got, secret) {
			t.Fatalf("%q", got)
		}
		_ = whole(got)
	})
}
