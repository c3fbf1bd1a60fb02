package account_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

var (
	start  = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	moment = resilience.Moment{Now: start}
)

// set writes a record as it stands.
func set(b *account.Book, id string, s account.State) []store.Event {
	return b.Change(moment, account.About{Connection: id, Provider: "openai", Model: "gpt-5", RequestID: "r1"},
		func(account.State) (account.State, string) { return s, account.KindCooldown })
}

func failed(s account.State) account.State {
	return s.Failed(start.UnixMilli(), resilience.Outcome{
		ErrorCode: "insufficient_quota",
		Verdict:   wire.Verdict{Reason: wire.QuotaExhausted, Plugin: "openai", Rule: "quota", HintSource: "header:retry-after"},
		Cause:     resilience.Cause{RequestID: "r1", Status: 429, OriginalStatus: 403, Message: "You exceeded your current quota"},
	})
}

func TestHealth(t *testing.T) {
	in := func(d time.Duration) int64 { return start.Add(d).UnixMilli() }
	cause := `"cause":{"requestId":"r1","at":"2026-03-01T12:00:00.000Z","status":429,"originalStatus":403,"plugin":"openai","rule":"quota","source":"header:retry-after","message":"You exceeded your current quota"}}`
	errors := `"lastError":"You exceeded your current quota","lastErrorType":"quota_exhausted","lastErrorAt":"2026-03-01T12:00:00.000Z","errorCode":"insufficient_quota",`
	cases := []struct {
		name string
		s    *account.State
		now  time.Duration
		want string
	}{
		{
			"OBJ-8 without a record", nil, 0,
			`{"status":"healthy","testStatus":"active","rateLimitedUntil":null,"nextProbeAt":null,"recheckAt":null,"backoffLevel":0,"lastError":null,"lastErrorType":null,"lastErrorAt":null,"errorCode":null,"cause":null}`,
		},
		{
			"COOL-1 COOL-6 API-41 cooling down", new(failed(account.State{TestStatus: account.Unavailable, Until: in(90500 * time.Millisecond), Level: 2})), time.Minute,
			`{"status":"cooling_down","testStatus":"unavailable","rateLimitedUntil":"2026-03-01T12:01:30.500Z","nextProbeAt":null,"recheckAt":null,"backoffLevel":2,` + errors + cause,
		},
		{
			"API-41 unavailable: marked, not cooling; COOL-15 the level decays", new(failed(account.State{TestStatus: account.Unavailable, Until: in(time.Minute), Level: 2})), 31 * time.Minute,
			`{"status":"unavailable","testStatus":"unavailable","rateLimitedUntil":null,"nextProbeAt":null,"recheckAt":null,"backoffLevel":0,` + errors + cause,
		},
		{
			"API-41 terminal", new(failed(account.State{TestStatus: account.CreditsExhausted})), time.Hour,
			`{"status":"terminal","testStatus":"credits_exhausted","rateLimitedUntil":null,"nextProbeAt":null,"recheckAt":null,"backoffLevel":0,` + errors + cause,
		},
		{
			"LOCK-16 an error for display only", new(failed(account.State{})), 0,
			`{"status":"healthy","testStatus":"active","rateLimitedUntil":null,"nextProbeAt":null,"recheckAt":null,"backoffLevel":0,` + errors + cause,
		},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			b := account.NewBook(nil)
			if c.s != nil {
				set(b, "c1", *c.s)
			}
			got, err := json.Marshal(b.Health("c1", start.Add(c.now)))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, string(got)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TestFailed: lastError has at most 100 characters (COOL-1); what the outcome leaves out comes from the verdict.
func TestFailed(t *testing.T) {
	long := strings.Repeat("额", 150)
	s := account.State{}.Failed(5, resilience.Outcome{Verdict: wire.Verdict{Reason: wire.AuthError, Message: long}, Cause: resilience.Cause{Status: 401}})
	if want := strings.Repeat("额", 100); s.LastError != want || s.Cause.Message != want {
		t.Errorf("COOL-1: lastError has %d characters", len([]rune(s.LastError)))
	}
	if s.ErrorCode != "401" || s.Cause.At != 5 || s.LastErrorType != wire.AuthError {
		t.Errorf("%+v", s)
	}
	if s := (account.State{}).Failed(5, resilience.Outcome{Verdict: wire.Verdict{Reason: wire.Timeout}}); s.LastError != "timeout" || s.ErrorCode != "" {
		t.Errorf("without a message: %+v", s)
	}
}

// TestEvent: an event names what it is about and carries the complete state (OBJ-22).
func TestEvent(t *testing.T) {
	b := account.NewBook(nil)
	s := failed(account.State{TestStatus: account.Unavailable, Until: start.Add(time.Minute).UnixMilli(), Level: 1, Since: start.UnixMilli(), Fence: 1,
		Rejected: []account.Rejection{{Model: "gpt-5", Count: 2, At: 1, Until: 2}}})
	es := set(b, "c1", s)
	want := []store.Event{{
		At: start.UnixMilli(), Kind: "connection.cooldown", Key: "c1", Revision: 1, Provider: "openai", ConnectionID: "c1", Model: "gpt-5", RequestID: "r1", Version: 1,
		Data: []byte(`{"provider":"openai","testStatus":"unavailable","backoffLevel":1,"since":1772366400000,"fence":1,"lastError":"You exceeded your current quota","lastErrorType":"quota_exhausted","lastErrorAt":1772366400000,"errorCode":"insufficient_quota",` +
			`"cause":{"requestId":"r1","at":1772366400000,"status":429,"originalStatus":403,"plugin":"openai","rule":"quota","source":"header:retry-after","message":"You exceeded your current quota"},` +
			`"rejected":[{"model":"gpt-5","count":2,"at":1,"until":2}],"rateLimitedUntil":1772366460000}`),
	}}
	if diff := cmp.Diff(want, es); diff != "" {
		t.Error(diff)
	}
	other := account.NewBook(nil)
	for range 2 { // applying twice changes nothing
		if err := other.Apply(es[0]); err != nil {
			t.Fatal(err)
		}
	}
	mine, _ := b.State("c1")
	theirs, _ := other.State("c1")
	if diff := cmp.Diff(mine, theirs); diff != "" {
		t.Error(diff)
	}
	// A person's action names no provider; the record remembers it.
	if _, es := other.Reset(moment, "c1"); len(es) != 1 || es[0].Provider != "openai" || es[0].Revision != 2 {
		t.Errorf("reset: %+v", es)
	}
}

// TestRestoreKeepsWhatItCan: one bad record does not cost the others, and one that is here already and newer stays.
func TestRestoreKeepsWhatItCan(t *testing.T) {
	b := account.NewBook(nil)
	for range 3 {
		set(b, "newer", account.State{Level: 3})
	}
	err := b.Restore([]byte(`[
		{"connectionId":"bad","revision":1,"record":{"testStatus":"asleep"}},
		{"connectionId":"good","revision":4,"record":{"testStatus":"banned"}},
		{"connectionId":"newer","revision":2,"record":{"backoffLevel":1}}]`))
	if err == nil || !strings.Contains(err.Error(), `connection bad: testStatus "asleep" is not one of active`) {
		t.Errorf("error %v", err)
	}
	if s, ok := b.State("good"); !ok || s.TestStatus != account.Banned || s.Revision != 4 {
		t.Errorf("good: %+v", s)
	}
	if s, _ := b.State("newer"); s.Level != 3 || s.Revision != 3 {
		t.Errorf("newer: %+v", s)
	}
	if _, ok := b.State("bad"); ok {
		t.Error("the bad record was taken")
	}
	if err := b.Restore([]byte(`{}`)); err == nil {
		t.Error("not a list, and no error")
	}
}

// TestRenew: a record of unknown credentials is lifted by those of a connection (COOL-52); where nothing is recorded,
// nothing is written.
func TestRenew(t *testing.T) {
	b := account.NewBook(nil)
	c := &catalog.Connection{ID: "c1", Provider: "openai", CredentialRevision: 1}
	if es := b.Renew(moment, c); es != nil {
		t.Errorf("%+v", es)
	}
	set(b, "c1", account.State{TestStatus: account.Banned})
	if es := b.Renew(moment, c); len(es) != 1 || es[0].Kind != account.KindCleared || es[0].Provider != "openai" {
		t.Errorf("%+v", es)
	}
	if es := b.Renew(moment, c); es != nil {
		t.Errorf("%+v", es)
	}
}

// TestAllStops: a walk over the records may be broken off.
func TestAllStops(t *testing.T) {
	b := account.NewBook(nil)
	for i := range 5 {
		set(b, fmt.Sprint("c", i), account.State{Level: 1})
	}
	n := 0
	for range b.All() {
		if n++; n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d records", n)
	}
}

// FuzzApply: whatever stands in a journal, reading it fails or gives a record that is written and read again alike.
func FuzzApply(f *testing.F) {
	f.Add([]byte(`{"testStatus":"unavailable","rateLimitedUntil":"2026-03-01T12:01:00Z","backoffLevel":2}`))
	f.Add([]byte(`{"testStatus":"deactivated","rateLimitedUntil":1e12,"cause":{"at":1}}`))
	f.Add([]byte(`{"rateLimitedUntil":" 1772366460000 ","rejected":[{"model":"m","count":1}]}`))
	f.Add([]byte(`{"rateLimitedUntil":{}}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := account.NewBook(nil)
		if b.Apply(store.Event{Kind: account.KindCooldown, Key: "c", Revision: 1, Data: data}) != nil {
			if s, ok := b.State("c"); ok {
				t.Fatalf("refused and taken: %+v", s)
			}
			return
		}
		s := b.Peek("c")
		if s.Until < 0 {
			t.Fatalf("an end before 1970: %d", s.Until)
		}
		s.Condition(start)
		s.Health(start)
		all, err := b.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		again := account.NewBook(func(w string) { t.Errorf("own snapshot: %s", w) })
		if err := again.Restore(all); err != nil {
			t.Fatal(err)
		}
		twice, err := again.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(all), string(twice)); diff != "" {
			t.Fatal(diff)
		}
	})
}
