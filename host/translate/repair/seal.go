package repair

import (
	"bytes"
	"encoding/base64"
	"iter"
	"slices"
	"strings"

	"github.com/weirgate/weir/host/translate/neutral"
)

// sealMark begins a signature that left towards a client of another dialect, so that it is known when it comes back (TR-18). The
// whole is in base64, since typed clients hold signatures as bytes; nine bytes are twelve characters, whatever follows.
const sealMark = "weir-sig."

var sealedMark = []byte(base64.StdEncoding.EncodeToString([]byte(sealMark)))

// Seal is a signature on its way to a client of another dialect: it names the family that it belongs to.
func Seal(s neutral.Signature, family string) string {
	kind := "s."
	if s.Redacted {
		kind = "r."
	}
	return base64.StdEncoding.EncodeToString([]byte(sealMark + kind + strings.ReplaceAll(family, ".", "_") + "." + s.Value))
}

// Unseal splits what Seal made, in either alphabet of base64 that clients write; ok is false for any other text.
func Unseal(text string) (s neutral.Signature, ok bool) {
	raw := neutral.Signature{Value: text}
	if !strings.HasPrefix(text, string(sealedMark)) {
		return raw, false
	}
	plain, err := base64.RawStdEncoding.DecodeString(toStd.Replace(strings.TrimRight(text, "=")))
	if err != nil {
		return raw, false
	}
	kind, rest, _ := strings.Cut(strings.TrimPrefix(string(plain), sealMark), ".")
	family, value, _ := strings.Cut(rest, ".")
	return neutral.Signature{Value: value, Family: family, Redacted: kind == "r"}, true
}

var toStd = strings.NewReplacer("-", "+", "_", "/")

// Sealed says whether a body holds signatures of another dialect, so that it may not pass as it is.
func Sealed(body []byte) bool { return bytes.Contains(body, sealedMark) }

// Signatures yields the signatures that are sealed in a body, unsealed.
func Signatures(body []byte) iter.Seq[string] {
	return func(yield func(string) bool) {
		for {
			i := bytes.Index(body, sealedMark)
			if i < 0 {
				return
			}
			body = body[i:]
			end := bytes.IndexByte(body, '"')
			if end < 0 {
				return
			}
			if s, ok := Unseal(string(body[:end])); ok && !yield(s.Value) {
				return
			}
			body = body[end:]
		}
	}
}

// Without returns turns without the thoughts whose signatures are foreign, and how many were dropped. The given turns stay as they are.
func Without(turns []neutral.Turn, foreign func(signature string) bool) (out []neutral.Turn, dropped int) {
	out = slices.Clone(turns)
	for i := range out {
		out[i].Parts = slices.DeleteFunc(slices.Clone(out[i].Parts), func(p neutral.Part) bool {
			drop := p.Kind == neutral.Thought && p.Signature.Value != "" && foreign(p.Signature.Value)
			if drop {
				dropped++
			}
			return drop
		})
	}
	return out, dropped
}

// Thoughts returns turns with only those thoughts that may go to family: what came from it gets its signature back byte for byte,
// everything else is dropped whole, and of a call only the signature (TR-18). same says that the client speaks the dialect of the
// target, so that what it holds unsealed is the target's own. The given turns stay as they are.
func Thoughts(turns []neutral.Turn, family string, same bool) (out []neutral.Turn, dropped int) {
	family = strings.ReplaceAll(family, ".", "_")
	out = slices.Clone(turns)
	for i := range out {
		t := &out[i]
		kept := make([]neutral.Part, 0, len(t.Parts))
		for _, p := range t.Parts {
			if p.Kind != neutral.Thought && p.Signature.Value == "" {
				kept = append(kept, p)
				continue
			}
			sig, sealed := Unseal(p.Signature.Value)
			fits := sealed && sig.Family == family && sig.Value != "" || !sealed && same
			switch {
			case p.Kind == neutral.Thought && !fits:
				dropped++
				continue
			case !fits:
				p.Signature = neutral.Signature{}
			case sealed:
				if p.Signature = (neutral.Signature{Value: sig.Value, Redacted: sig.Redacted}); sig.Redacted {
					p.Text = ""
				}
				p.Raw = nil // it holds the sealed one
			}
			kept = append(kept, p)
		}
		t.Parts = kept
	}
	return out, dropped
}
