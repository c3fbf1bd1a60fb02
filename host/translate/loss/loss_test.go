package loss_test

import (
	"errors"
	"testing"

	"github.com/weirgate/weir/host/translate/loss"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/sdk/wire"
)

// TR-9: harmless fields are dropped and noted, those with a meaning of their own and those of the provider's machinery are
// refused by name, and x-weir-strict refuses every loss.
func TestFields(t *testing.T) {
	for _, c := range []struct {
		field, raw string
		strict     bool
		refused    bool
		noted      bool
	}{
		{"service_tier", `"auto"`, false, false, true},
		{"service_tier", `"auto"`, true, true, false},
		{"metadata", `{}`, false, false, true},
		{"n", `1`, true, false, false},
		{"n", `2`, false, true, false},
		{"logit_bias", `{"5":1}`, false, true, false},
		{"prediction", `{}`, false, true, false},
		{"previous_response_id", `"resp_1"`, false, true, false},
		{"background", `false`, false, false, false},
		{"background", `true`, false, true, false},
		{"conversation", `"c"`, false, true, false},
		{"something_new", `1`, false, false, true},
	} {
		r := &neutral.Request{From: wire.OpenAIChat, Extra: []neutral.Field{{Path: c.field, Raw: []byte(c.raw)}}}
		notes, err := loss.Fields(r, wire.AnthropicMessages, c.strict)
		var fault *neutral.Fault
		if refused := errors.As(err, &fault); refused != c.refused || refused && fault.Path != c.field {
			t.Errorf("%s=%s strict=%v: %v", c.field, c.raw, c.strict, err)
		}
		if noted := len(notes) == 1; noted != c.noted {
			t.Errorf("%s=%s: notes %v", c.field, c.raw, notes)
		}
		if notes, err := loss.Fields(r, wire.OpenAIChat, true); err != nil || notes != nil {
			t.Errorf("%s: the same dialect loses nothing: %v %v", c.field, notes, err)
		}
	}
}

// TR-9: a tool of the provider's own is refused by name when it is asked for, and left out when it is only offered beside others.
func TestHosted(t *testing.T) {
	offered := &neutral.Request{From: wire.OpenAIResponses, Tools: []neutral.Tool{{Name: "f"}, {Hosted: "web_search", Path: "tools[1]"}}}
	alone := &neutral.Request{From: wire.OpenAIResponses, Tools: offered.Tools[1:]}
	chosen := &neutral.Request{From: wire.OpenAIResponses, Tools: offered.Tools, Choice: neutral.Choice{Mode: neutral.ChoiceNamed, Names: []string{"web_search"}}}
	if notes, err := loss.Hosted(offered, wire.OpenAIChat, false); err != nil || len(notes) != 1 {
		t.Errorf("offered: %v %v", notes, err)
	}
	for name, r := range map[string]*neutral.Request{"alone": alone, "chosen": chosen} {
		var fault *neutral.Fault
		if _, err := loss.Hosted(r, wire.OpenAIChat, false); !errors.As(err, &fault) || fault.Path != "tools[1]" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := loss.Hosted(r, wire.OpenAIResponses, true); err != nil {
			t.Errorf("%s: within its dialect it passes: %v", name, err)
		}
	}
	if _, err := loss.Hosted(offered, wire.OpenAIChat, true); err == nil {
		t.Error("x-weir-strict refuses it")
	}
}
