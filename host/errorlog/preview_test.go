package errorlog

import (
	"context"
	"errors"
	"testing"

	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/rules/operator"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store/memory"
)

// between asks the operator as the plugins' chain does, after a guard that knows bans.
type between struct{ none }

func (between) Classify(_ context.Context, r *rules.Reply) (wire.Verdict, bool) {
	if r.Facts.Message == "banned" {
		return wire.Verdict{Reason: wire.ReasonBanned, Scope: wire.ScopeConnection, Terminal: true, Plugin: "generic", Rule: "ban-signal"}, true
	}
	if v, ok := r.Operator.Rule(r); ok {
		return v, true
	}
	return r.Operator.Default(r)
}

// RUL-30, RUL-40: which recorded errors a rule would be about, and where something else decides first.
func TestPreview(t *testing.T) {
	l := newRig(t, memory.New(memory.Options{}))
	l.Start()
	forbidden := wire.Verdict{Reason: wire.AuthError, Scope: wire.ScopeConnection, Fallback: true}
	for _, message := range []string{"plan used up", "plan used up", "banned", "other"} {
		l.Failed(reply(403, `{"error":{"message":"`+message+`"}}`), forbidden, "c-1", "r")
	}
	l.Failed(reply(429, "slow down"), forbidden, "c-1", "r-429")
	l.stop(t)
	provider := l.all(t, Filter{})[0].Provider

	var set operator.Set
	var faults []operator.Fault
	if set.Rules, faults = operator.ParseRules([]byte(`{"` + provider + `":[{"match":"used up","cooldownMs":1000},{"status":403,"match":"ban"}]}`)); faults != nil {
		t.Fatal(faults)
	}
	if set.Defaults, faults = operator.ParseDefaults([]byte(`{"` + provider + `":{"cooldownMs":60000}}`)); faults != nil {
		t.Fatal(faults)
	}
	judges := func(string) dispatch.Judge { return between{} }
	got, err := l.Preview(t.Context(), 100, "", nil, &set, judges)
	if err != nil {
		t.Fatal(err)
	}
	if got.Checked != 5 || got.Matched != 5 || got.Decided != 4 || len(got.Rules) != 3 {
		t.Fatalf("got %+v", got)
	}
	for _, want := range []RulePreview{
		{Rule: "providerErrorRules." + provider + "[0]", Matched: 2, Decided: 2},
		{Rule: "providerErrorRules." + provider + "[1]", Matched: 1, Decided: 0},
		{Rule: "providerErrorDefaults." + provider, Matched: 2, Decided: 2},
	} {
		found := false
		for _, r := range got.Rules {
			if r.Rule == want.Rule {
				found = true
				if r.Matched != want.Matched || r.Decided != want.Decided || len(r.Examples) != want.Matched || r.Examples[0].Message == "" || r.Examples[0].Today != wire.AuthError {
					t.Errorf("got %+v, want %+v", r, want)
				}
				if want.Decided == 0 && r.Examples[0].DecidedBy != "generic/ban-signal" {
					t.Errorf("decided by %s", r.Examples[0].DecidedBy)
				}
			}
		}
		if !found {
			t.Errorf("%s is not there", want.Rule)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := l.Preview(ctx, 100, "", nil, &set, judges); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits for it: %v", err)
	}
}
