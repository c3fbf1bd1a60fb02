package errorlog

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store/memory"
)

// pack judges as a plugin with one rule: 403 with the word quota is 429 and an exhausted quota.
type pack struct{ calls *int64 }

func (p pack) Restate(_ context.Context, r *rules.Reply) (wire.Restatement, bool) {
	return wire.Restatement{Status: 429, Plugin: "quirks", Rule: "true-status"}, r.Original == 403 && r.Facts.Message == "quota"
}

func (p pack) Classify(_ context.Context, r *rules.Reply) (wire.Verdict, bool) {
	if r.Original == 500 { // its hook failed
		*p.calls++
		return wire.Verdict{}, false
	}
	return wire.Verdict{Reason: wire.QuotaExhausted, Scope: wire.ScopeConnection, Fallback: true, Plugin: "quirks", Rule: "quota"}, r.Status == 429
}

// none has no opinion: the host decides by status.
type none struct{}

func (none) Restate(context.Context, *rules.Reply) (wire.Restatement, bool) {
	return wire.Restatement{}, false
}
func (none) Classify(context.Context, *rules.Reply) (wire.Verdict, bool) {
	return wire.Verdict{}, false
}

// PLG-9: the table from verdict to verdict, the commonest first, with examples; records are not touched.
func TestPLG9Replay(t *testing.T) {
	l := newRig(t, memory.New(memory.Options{}))
	l.Start()
	forbidden := wire.Verdict{Reason: wire.AuthError, Scope: wire.ScopeConnection, Fallback: true}
	for range 4 {
		l.Failed(reply(403, `{"error":{"message":"quota"}}`), forbidden, "c-1", "r-quota")
	}
	l.Failed(reply(403, `{"error":{"message":"no"}}`), forbidden, "c-1", "r-no")
	l.Failed(reply(500, "x"), overloaded, "c-1", "r-500")
	other := reply(429, "slow down")
	other.Provider = "elsewhere"
	l.Failed(other, wire.Verdict{Reason: wire.RateLimitExceeded, Scope: wire.ScopeConnection, Fallback: true}, "c-2", "r-429")
	l.stop(t)
	before := l.all(t, Filter{})

	var failed int64
	today := func(string) dispatch.Judge { return none{} }
	candidate := func(string) dispatch.Judge { return pack{&failed} }
	got, err := l.Replay(t.Context(), 1000, "", Operator{}, today, candidate, func() int64 { return failed })
	if err != nil {
		t.Fatal(err)
	}
	type row struct {
		From, To, Example string
		Count             int
	}
	var rows []row
	for _, c := range got.Table {
		x := c.Examples[0]
		rows = append(rows, row{string(c.From.Reason), string(c.To.Reason), x.Message + " by " + x.DecidedBy, c.Count})
		if len(c.Examples) > maxExamples {
			t.Errorf("%d examples", len(c.Examples))
		}
	}
	want := []row{
		{"auth_error", "quota_exhausted", "quota by quirks/quota", 4},
		{"rate_limit_exceeded", "quota_exhausted", "slow down by quirks/quota", 1},
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Error(diff)
	}
	if got.Replayed != 7 || got.Changed != 5 || got.Failed != 1 {
		t.Errorf("%+v", got)
	}
	if f := got.Table[0].From; f.Status != 403 || got.Table[0].To.Status != 429 || got.Table[0].To.RestatedBy != "true-status" {
		t.Errorf("from %+v to %+v", f, got.Table[0].To)
	}
	// what 500 and 429 mean by status alone is not what was recorded of the former
	if got.Since == 0 {
		t.Error("the record says overloaded, today says server_error: nothing is told of it")
	}
	if diff := cmp.Diff(before, l.all(t, Filter{})); diff != "" {
		t.Errorf("the records were changed: %s", diff)
	}
	part, err := l.Replay(t.Context(), 2, "ACME", Operator{}, today, candidate, nil)
	if err != nil || part.Replayed != 2 {
		t.Errorf("the last two of one provider: %+v, %v", part, err)
	}
	same, err := l.Replay(t.Context(), 1000, "", Operator{}, candidate, candidate, nil)
	if diff := cmp.Diff(Replay{Replayed: 7, Table: []Change{}}, same, cmpopts.IgnoreFields(Replay{}, "Since")); diff != "" || err != nil {
		t.Errorf("nothing differs from itself: %s %v", diff, err)
	}
}

// PLG-9: what the operator says holds on both sides, so that a plugin which it overrules changes nothing (RUL-11, COOL-62).
func TestReplayUnderTheOperator(t *testing.T) {
	records := []Record{{Provider: "acme", Status: 429, Body: `{"error":{"message":"quota"}}`, Headers: map[string]string{}}}
	today := func(string) dispatch.Judge { return asks{none{}} }
	candidate := func(string) dispatch.Judge { return asks{pack{}} }
	for name, c := range map[string]struct {
		op      Operator
		changed int
	}{
		"nobody": {Operator{}, 1}, "a ban signal": {Operator{BanSignals: []string{"QUOTA"}}, 0}, "a rule": {Operator{Rules: says{}}, 0},
	} {
		got, err := Compare(t.Context(), records, c.op, today, candidate, nil)
		if err != nil || got.Changed != c.changed {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// asks is a chain that hears the operator before its plugins, as the runtime's does.
type asks struct{ dispatch.Judge }

func (a asks) Classify(ctx context.Context, r *rules.Reply) (wire.Verdict, bool) {
	if r.Operator != nil {
		return r.Operator.Rule(r)
	}
	return a.Judge.Classify(ctx, r)
}

// says is an operator with one rule.
type says struct{}

func (says) Rule(*rules.Reply) (wire.Verdict, bool) {
	return wire.Verdict{Reason: wire.Overloaded, Scope: wire.ScopeModel, Plugin: "operator", Rule: "busy"}, true
}
func (says) Default(*rules.Reply) (wire.Verdict, bool) { return wire.Verdict{}, false }

// Two waits of one kind are one row that says so; a wait where there was none is another kind.
func TestReplayWaits(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	record := func(after string) Record {
		return Record{Provider: "acme", Status: 429, Body: "wait " + after, Now: at, Headers: map[string]string{}}
	}
	records := []Record{record("10"), record("20"), record("")}
	today := func(string) dispatch.Judge { return none{} }
	candidate := func(string) dispatch.Judge { return waits{} }
	got, err := Compare(t.Context(), records, Operator{}, today, candidate, nil)
	if err != nil || got.Changed != 2 || len(got.Table) != 1 || !got.Table[0].Varies || got.Table[0].To.WaitMS == nil {
		t.Errorf("%+v, %v", got, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Compare(ended, records, Operator{}, today, candidate, nil); err == nil {
		t.Error("a replay nobody waits for goes on")
	}
}

type waits struct{ none }

func (waits) Classify(_ context.Context, r *rules.Reply) (wire.Verdict, bool) {
	v := rules.ByStatus(r)
	switch r.Facts.Text {
	case "wait 10":
		v.RetryAfter, v.Hinted = 10*time.Second, true
	case "wait 20":
		v.RetryAfter, v.Hinted = 20*time.Second, true
	}
	return v, true
}
