package repair

import (
	"bytes"
	"strings"

	"github.com/weirgate/weir/host/translate/neutral"
)

// sealMark begins a signature that left towards a client of another dialect, so that it is known when it comes back (TR-18). It
// holds no character that JSON escapes.
const sealMark = "weir-sig."

// Seal is a signature on its way to a client of another dialect: it names the family that it belongs to.
func Seal(s neutral.Signature, family string) string {
	kind := "s."
	if s.Redacted {
		kind = "r."
	}
	return sealMark + kind + strings.ReplaceAll(family, ".", "_") + "." + s.Value
}

// Unseal splits what Seal made; ok is false for any other text.
func Unseal(text string) (s neutral.Signature, ok bool) {
	rest, ok := strings.CutPrefix(text, sealMark)
	if !ok {
		return neutral.Signature{Value: text}, false
	}
	kind, rest, _ := strings.Cut(rest, ".")
	family, value, _ := strings.Cut(rest, ".")
	return neutral.Signature{Value: value, Family: family, Redacted: kind == "r"}, true
}

// Sealed says whether a body holds signatures of another dialect, so that it may not pass as it is.
func Sealed(body []byte) bool { return bytes.Contains(body, []byte(sealMark)) }

// Thoughts leaves in the turns of r only those thoughts that may go to family: what came from it gets its signature back byte for
// byte, everything else is dropped whole, and of a call only the signature (TR-18). It reports how many were dropped.
func Thoughts(r *neutral.Request, family string, same bool) (dropped int) {
	family = strings.ReplaceAll(family, ".", "_")
	for i := range r.Turns {
		t := &r.Turns[i]
		kept := make([]neutral.Part, 0, len(t.Parts))
		for _, p := range t.Parts {
			sig, sealed := Unseal(p.Signature.Value)
			fits := sealed && sig.Family == family && sig.Value != "" || !sealed && same
			switch {
			case p.Kind == neutral.Thought && !fits:
				dropped++
				continue
			case !fits:
				p.Signature = neutral.Signature{}
			case sealed:
				if p.Signature = (neutral.Signature{Value: sig.Value, Redacted: sig.Redacted, ID: p.Signature.ID}); sig.Redacted {
					p.Text = ""
				}
			}
			kept = append(kept, p)
		}
		t.Parts = kept
	}
	return dropped
}
