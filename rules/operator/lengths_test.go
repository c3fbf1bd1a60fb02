package operator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/weirgate/weir/rules/operator"
)

// RUL-34, RUL-32: every length that a user interface offers can be stored and is what the rule gives: none, 30 minutes to 24 hours,
// and 1 to 43200 minutes of one's own.
func TestOfferedLengths(t *testing.T) {
	offered := []time.Duration{30 * time.Minute, time.Hour, 5 * time.Hour, 24 * time.Hour, time.Minute, 43200 * time.Minute}
	for _, d := range offered {
		s := set(t, fmt.Sprintf(`{"acme":[{"status":429,"cooldownMs":%d}]}`, d.Milliseconds()), `{}`)
		if v, ok := s.Rule(reply("acme", 429, "x")); !ok || v.Cooldown != d || !v.Exact {
			t.Errorf("%s: %v %+v", d, ok, v)
		}
	}
	if v, ok := set(t, `{"acme":[{"status":429}]}`, `{}`).Rule(reply("acme", 429, "x")); !ok || v.Cooldown != 0 || v.Exact {
		t.Errorf("without a length: %v %+v", ok, v)
	}
	if _, faults := operator.ParseRules([]byte(`{"acme":[{"status":429,"cooldownMs":2592060000}]}`)); len(faults) == 0 {
		t.Error("43201 minutes are taken")
	}
}
