package lockout_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/cooldown"
	"github.com/weirgate/weir/host/resilience/gatetest"
	"github.com/weirgate/weir/host/resilience/lockout"
	"github.com/weirgate/weir/host/resilience/terminal"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

func gates(b *account.Book) []resilience.Gate {
	return []resilience.Gate{terminal.New(b), cooldown.New(b), lockout.New(b, nil)}
}

// TestScripts plays testdata: each file is a piece of the specification as a history. What the files assert:
//
//   - keys.txt: LOCK-1, LOCK-2, LOCK-3, LOCK-4, LOCK-5, LOCK-6, LOCK-7, API-32
//   - narrow.txt: LOCK-11, LOCK-12, LOCK-13, LOCK-14, LOCK-16, LOCK-18, COOL-33, COOL-56, COOL-57, RUL-3
//   - generic.txt: LOCK-10, LOCK-11, LOCK-15
//   - length.txt: LOCK-20, LOCK-21, LOCK-22, LOCK-23, LOCK-25, LOCK-26, COOL-30
//   - episode.txt: LOCK-24, LOCK-27; decay.txt: LOCK-27, LOCK-28, LOCK-29
//   - rejected.txt: COOL-19, COOL-41, COOL-43, COOL-46; retired.txt: LOCK-19; restart.txt: LOCK-30
func TestScripts(t *testing.T) { gatetest.Run(t, gates) }

var start = gatetest.Start

// rig is a gate with one provider.
type rig struct {
	book *account.Book
	gate *lockout.Gate
	open bool
	p    *catalog.Provider
}

func newRig() *rig {
	r := &rig{book: account.NewBook(nil), p: &catalog.Provider{ID: "p", Category: catalog.APIKey}}
	r.gate = lockout.New(r.book, func(_ resilience.Moment, p *catalog.Provider) bool { return r.open && p.ID == "p" })
	return r
}

func at(after time.Duration) resilience.Moment {
	return resilience.Moment{Now: start.Add(after), Catalog: &catalog.Snapshot{Settings: gatetest.Defaults()}}
}

func (r *rig) target(connection, model string) catalog.Target {
	return catalog.Target{Provider: r.p, Connection: &catalog.Connection{ID: connection, Provider: "p"}, Model: model}
}

// lock fails an attempt for its model.
func (r *rig) lock(after time.Duration, connection, model string, reason wire.Reason) []store.Event {
	t := r.target(connection, model)
	p, refusal := r.gate.Admit(at(after), t)
	if refusal != nil {
		return nil
	}
	return r.gate.Settle(at(after), t, p, resilience.Outcome{
		Verdict: wire.Verdict{Reason: reason, Scope: wire.ScopeModel, Plugin: "pack", Rule: "rule"}, Cause: resilience.Cause{RequestID: "r1", Status: 529},
	})
}

// LOCK-17: nothing is locked while the provider's breaker is open.
func TestOpenBreaker(t *testing.T) {
	r := newRig()
	r.open = true
	if es := r.lock(0, "a", "m", wire.Overloaded); len(es) != 0 || len(r.gate.List(start)) != 0 {
		t.Errorf("%d events", len(es))
	}
	r.open = false
	if es := r.lock(0, "a", "m", wire.Overloaded); len(es) != 1 {
		t.Errorf("%d events when it closed", len(es))
	}
}

// LOCK-31: at most 1000; only expired ones make room, the oldest first; an active one never goes. What has expired is swept.
func TestLimit(t *testing.T) {
	r := newRig()
	for i := range lockout.Limit {
		r.lock(time.Duration(i)*time.Millisecond, fmt.Sprint("c", i%7), fmt.Sprint("m", i), wire.Overloaded)
	}
	if es := r.lock(time.Second, "a", "one-more", wire.Overloaded); len(es) != 0 || len(r.gate.List(start.Add(time.Second))) != lockout.Limit {
		t.Errorf("%d events, %d lockouts: an active one made room", len(es), len(r.gate.List(start.Add(time.Second))))
	}
	// 2 minutes after the first was locked its time is over; its count is not, but makes room.
	over := 2*time.Minute + 2*time.Millisecond
	if es := r.lock(over, "a", "one-more", wire.Overloaded); len(es) != 1 {
		t.Errorf("%d events after the first had ended", len(es))
	}
	if es := r.lock(over, "c0", "m0", wire.Overloaded); len(es) != 1 || !strings.Contains(string(es[0].Data), `"failureCount":1,`) {
		t.Errorf("the oldest was to go, with its count: %d events", len(es))
	}
	if s, err := r.gate.Snapshot(); err != nil || strings.Count(string(s), `"connectionId"`) != lockout.Limit {
		t.Errorf("%v, %d entries", err, strings.Count(string(s), `"connectionId"`))
	}
	r.gate.Sweep(start.Add(3 * time.Hour))
	if s, _ := r.gate.Snapshot(); strings.Contains(string(s), "connectionId") {
		t.Error("the sweep left something")
	}
	r.lock(4*time.Hour, "a", "m", wire.Overloaded)
	r.gate.Sweep(start.Add(4*time.Hour + 14*time.Second))
	if len(r.gate.List(start.Add(4*time.Hour))) != 1 {
		t.Error("the sweep took an active one")
	}
}

// Names come from clients: one that is too long locks nothing.
func TestLongName(t *testing.T) {
	r := newRig()
	if es := r.lock(0, "a", strings.Repeat("m", 300), wire.Overloaded); len(es) != 0 {
		t.Errorf("%d events", len(es))
	}
}

// LOCK-32: for which reasons a request may wait, in canonical and older words; an unknown one never.
func TestWait(t *testing.T) {
	for _, word := range []string{"rate_limit", "rate_limited", "rate_limit_exceeded", "transient", "overloaded", "server_error", "model_capacity", "concurrency_limited"} {
		if lockout.WaitFor(word) != resilience.WaitTransient {
			t.Errorf("LOCK-32 no waiting for %s", word)
		}
	}
	for _, word := range []string{"quota_exhausted", "auth_error", "not_found", "not_found_local", "forbidden", "request_rejected", "unknown", "what", ""} {
		if lockout.WaitFor(word) == resilience.WaitTransient {
			t.Errorf("LOCK-32 waiting for %q", word)
		}
	}
	r := newRig()
	r.lock(0, "a", "busy", wire.Overloaded)
	r.lock(0, "a", "denied", wire.ModelAccessDenied)
	if got := r.gate.Peek(at(0), r.target("a", "busy")); got == nil || got.Wait != resilience.WaitTransient {
		t.Errorf("%+v", got)
	}
	if got := r.gate.Peek(at(0), r.target("a", "denied")); got == nil || got.Wait == resilience.WaitTransient {
		t.Errorf("%+v", got)
	}
}

// LOCK-20, LOCK-22, CMB-42: what heals by itself soon takes a model out for the connection's base, or as long as the answer asked,
// so that a request can wait for it; where the operator has set lengths for models, those hold.
func TestTransientLocksAreShort(t *testing.T) {
	settle := func(enabled bool, hint time.Duration) time.Duration {
		r := newRig()
		values := *gatetest.Defaults()
		values.ModelLockout.Enabled = enabled
		now := resilience.Moment{Now: start, Catalog: &catalog.Snapshot{Settings: &values}}
		v := wire.Verdict{Reason: wire.RateLimitExceeded, Scope: wire.ScopeModel, RetryAfter: hint, Hinted: hint > 0}
		target := r.target("a", "m")
		p, _ := r.gate.Admit(now, target)
		r.gate.Settle(now, target, p, resilience.Outcome{Verdict: v})
		return r.gate.List(start)[0].Remaining
	}
	for _, c := range []struct {
		enabled    bool
		hint, want time.Duration
	}{
		{false, 0, 3 * time.Second},
		{false, time.Second, time.Second},
		{false, 10 * time.Minute, 10 * time.Minute},
		{true, 0, 2 * time.Minute},
		{true, time.Second, 2 * time.Minute},
		{true, 10 * time.Minute, 10 * time.Minute},
	} {
		if got := settle(c.enabled, c.hint); got != c.want {
			t.Errorf("enabled %v, hint %s: %s, want %s", c.enabled, c.hint, got, c.want)
		}
	}
}

// LOCK-33, LOCK-26: what the listing shows, the longest first; the reason and the cause are those of the verdict.
func TestList(t *testing.T) {
	r := newRig()
	r.lock(0, "a", "m", wire.ModelNotFound)
	r.lock(time.Minute, "b", "n", wire.AuthError)
	got := r.gate.List(start.Add(time.Minute))
	want := []lockout.Lock{
		{Provider: "p", Connection: "b", Model: "n", Scope: lockout.ScopeExact, Reason: wire.AuthError, Remaining: 2 * time.Minute, FailureCount: 1,
			LockedAt: start.Add(time.Minute), Until: start.Add(3 * time.Minute),
			Cause: &resilience.Cause{RequestID: "r1", At: start.Add(time.Minute).UnixMilli(), Status: 529, Plugin: "pack", Rule: "rule"}},
		{Provider: "p", Connection: "a", Model: "m", Scope: lockout.ScopeExact, Reason: wire.ModelNotFound, Remaining: time.Minute, FailureCount: 1,
			LockedAt: start, Until: start.Add(2 * time.Minute),
			Cause: &resilience.Cause{RequestID: "r1", At: start.UnixMilli(), Status: 529, Plugin: "pack", Rule: "rule"}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want[1:], r.gate.On("a", start.Add(time.Minute))); diff != "" {
		t.Errorf("of one connection (-want +got):\n%s", diff)
	}
	refusal := r.gate.Peek(at(time.Minute), r.target("a", "m"))
	if refusal == nil || !refusal.RetryAt.Equal(start.Add(2*time.Minute)) || !refusal.Since.Equal(start) || refusal.Cause == nil || refusal.Reason != wire.ModelNotFound {
		t.Errorf("refusal %+v", refusal)
	}
}

// LOCK-30: with WEIR_LOCKOUT_PERSIST=false nothing is written, and nothing of an earlier process holds.
func TestMemoryOnly(t *testing.T) {
	before, r := newRig(), newRig()
	events := before.lock(0, "a", "m", wire.Overloaded)
	snapshot, err := before.gate.Snapshot()
	if err != nil || len(events) != 1 {
		t.Fatal(err, events)
	}
	r.gate.KeepInMemory()
	if err := r.gate.Restore(snapshot); err != nil {
		t.Error(err)
	}
	if err := r.gate.Apply(events[0]); err != nil {
		t.Error(err)
	}
	if n := len(r.gate.List(start)); n != 0 {
		t.Errorf("%d lockouts of an earlier process", n)
	}
	if es := r.lock(0, "a", "m", wire.Overloaded); len(es) != 0 || len(r.gate.List(start)) != 1 {
		t.Errorf("%d events, %d lockouts", len(es), len(r.gate.List(start)))
	}
	if b, err := r.gate.Snapshot(); b != nil || err != nil {
		t.Errorf("a snapshot %s, %v", b, err)
	}
}

// In its resting state, and on a connection without lockouts, the gate allocates nothing.
func TestNoAllocation(t *testing.T) {
	r := newRig()
	ask := func() {
		moment, target := at(0), r.target("a", "m")
		if n := testing.AllocsPerRun(100, func() {
			p, _ := r.gate.Admit(moment, target)
			r.gate.Settle(moment, target, p, resilience.Outcome{OK: true})
		}); n != 0 {
			t.Errorf("%v allocations", n)
		}
	}
	ask()
	r.lock(0, "b", "m", wire.Overloaded)
	ask()
	r.lock(0, "a", "other", wire.Overloaded)
	ask()
}

// BenchmarkAdmit is the cost of asking while other models of the connection are locked.
func BenchmarkAdmit(b *testing.B) {
	r := newRig()
	for i := range 20 {
		r.lock(0, "a", fmt.Sprint("model-", i), wire.Overloaded)
	}
	moment, target := at(0), r.target("a", "gpt-5")
	b.ReportAllocs()
	for b.Loop() {
		r.gate.Admit(moment, target)
	}
}

// Narrow names a model only where a text does, whole.
func TestNames(t *testing.T) {
	r := newRig()
	for text, want := range map[string]wire.Scope{
		"model gpt-5 not found": wire.ScopeModel, "`GPT-5`": wire.ScopeModel, "gpt-5.": wire.ScopeModel, "no gpt-5: sorry": wire.ScopeModel,
		"gpt-5-mini and gpt-5": wire.ScopeModel, "models/gpt-5": wire.ScopeModel,
		"gpt-5-mini": wire.ScopeConnection, "gpt-5.1": wire.ScopeConnection, "my-gpt-5": wire.ScopeConnection, "gpt-5:free": wire.ScopeConnection, "": wire.ScopeConnection,
	} {
		v := wire.Verdict{Reason: wire.Unknown, Scope: wire.ScopeConnection}
		if got := lockout.Narrow(at(0), r.target("a", "gpt-5"), v, lockout.Reply{Status: 404, Text: text}); got.Scope != want {
			t.Errorf("LOCK-13 %q: scope %s", text, got.Scope)
		}
	}
}

// Narrow never widens, and touches no verdict about a request.
func TestNarrowNeverWidens(t *testing.T) {
	r := newRig()
	r.p.PerModel = true
	order := []wire.Scope{wire.ScopeNone, wire.ScopeRequest, wire.ScopeModel, wire.ScopeConnection, wire.ScopeProvider}
	for _, reason := range wire.Reasons() {
		for _, scope := range order {
			for _, status := range []int{0, 400, 402, 403, 404, 410, 413, 429, 500, 502, 503, 504} {
				v := wire.Verdict{Reason: reason, Scope: scope}
				got := lockout.Narrow(at(0), r.target("a", "m"), v, lockout.Reply{Status: status, Text: "model m is no longer available"})
				if slices.Index(order, got.Scope) > slices.Index(order, scope) {
					t.Errorf("%s %d: %s became %s", reason, status, scope, got.Scope)
				}
			}
		}
	}
}
