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

func TestHosted(t *testing.T) {
	r := &neutral.Request{From: wire.OpenAIResponses, Tools: []neutral.Tool{{Name: "f"}, {Hosted: "web_search", Path: "tools[1]"}}}
	var fault *neutral.Fault
	if err := loss.Hosted(r, wire.OpenAIChat); !errors.As(err, &fault) || fault.Path != "tools[1]" {
		t.Errorf("TR-9: a hosted tool is refused by name: %v", err)
	}
	if err := loss.Hosted(r, wire.OpenAIResponses); err != nil {
		t.Errorf("within its dialect it passes: %v", err)
	}
}
