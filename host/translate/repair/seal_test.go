package repair_test

import (
	"encoding/base64"
	"strings"
	"testing"

	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/repair"
)

// TR-18: a signature goes back only to where it came from, byte for byte; the thought that it belongs to is dropped towards any other
// target.
func TestSeal(t *testing.T) {
	const value = "Zml4dHVyZS1zaWduYXR1cmU.=+/"
	for _, redacted := range []bool{false, true} {
		sealed := repair.Seal(neutral.Signature{Value: value, Redacted: redacted}, "anthropic/claude-4.5")
		if !repair.Sealed([]byte(`{"signature":"` + sealed + `"}`)) {
			t.Error("not seen in a body")
		}
		if _, err := base64.StdEncoding.DecodeString(sealed); err != nil {
			t.Error("clients that hold signatures as bytes cannot read it")
		}
		written := strings.NewReplacer("+", "-", "/", "_").Replace(sealed) // as some clients write bytes
		if back, ok := repair.Unseal(written); !ok || back.Value != value || back.Redacted != redacted {
			t.Errorf("in the other alphabet: %+v %v", back, ok)
		}
		ask := func(family string, same bool) []neutral.Part {
			r := &neutral.Request{Turns: []neutral.Turn{{Role: neutral.Model, Parts: []neutral.Part{
				{Kind: neutral.Thought, Text: "hm", Signature: neutral.Signature{Value: sealed}},
				{Kind: neutral.Text, Text: "hello"},
			}}}}
			turns, _ := repair.Thoughts(r.Turns, family, same)
			if len(r.Turns[0].Parts) != 2 {
				t.Error("the request was changed")
			}
			return turns[0].Parts
		}
		home := ask("anthropic/claude-4.5", true)
		if len(home) != 2 || home[0].Signature.Value != value || home[0].Signature.Redacted != redacted {
			t.Errorf("at home: %+v", home)
		}
		for _, same := range []bool{true, false} {
			if away := ask("openai/gpt-5", same); len(away) != 1 || away[0].Kind != neutral.Text {
				t.Errorf("elsewhere: %+v", away)
			}
		}
	}
	bare := &neutral.Request{Turns: []neutral.Turn{{Role: neutral.Model, Parts: []neutral.Part{
		{Kind: neutral.Thought, Text: "hm", Signature: neutral.Signature{Value: "raw"}},
		{Kind: neutral.Call, Call: neutral.ToolCall{ID: "1", Name: "f"}, Signature: neutral.Signature{Value: "raw"}},
	}}}}
	turns, n := repair.Thoughts(bare.Turns, "openai/gpt-5", false)
	if n != 1 || len(turns[0].Parts) != 1 || turns[0].Parts[0].Signature.Value != "" {
		t.Errorf("a raw signature towards another dialect: dropped %d, %+v", n, turns[0].Parts)
	}
}
