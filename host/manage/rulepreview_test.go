package manage_test

import (
	"context"
	"testing"

	"github.com/weirgate/weir/host/errorlog"
	"github.com/weirgate/weir/rules/operator"
)

// RUL-30, RUL-40: a preview names what is wrong with rules as saving them does, and stores nothing.
func TestRulePreview(t *testing.T) {
	var last int
	var provider string
	r := newRig(t, func(r *rig) {
		r.ports.Preview = func(_ context.Context, _ *operator.Set, n int, p string) (errorlog.Preview, error) {
			last, provider = n, p
			return errorlog.Preview{Checked: 7, Matched: 1, Rules: []errorlog.RulePreview{{Rule: "providerErrorRules.glm[0]", Matched: 1}}}, nil
		}
	})
	const path = "/api/resilience/rules/preview"
	r.call("POST", path+"?last=50&provider=glm", `{"providerErrorRules":{"glm":[{"status":403}]}}`).is(200).
		has("checked", 7, "matched", 1, "rules.0.rule", "providerErrorRules.glm[0]")
	if last != 50 || provider != "glm" {
		t.Errorf("asked %d %q", last, provider)
	}
	r.call("POST", path, `{"providerErrorRules":{"glm":[{"status":403},{}]}}`).refused(400, "bad_request").
		has("error.details.0.field", "providerErrorRules.glm[1].status")
	r.call("POST", path, `{"providerErrorDefaults":{"glm":{"cooldownMs":1}}}`).refused(400, "bad_request").
		has("error.details.0.field", "providerErrorDefaults.glm.cooldownMs")
	r.call("POST", path, `{"rules":1}`).refused(400, "bad_request")
	r.call("PATCH", "/api/settings", `{"providerErrorRules":{"glm":[{"status":399}]}}`).refused(400, "bad_request").
		has("error.details.0.field", "providerErrorRules.glm[0].status")
	r.call("GET", "/api/settings", "").is(200).has("providerErrorRules", map[string]any{})
}
