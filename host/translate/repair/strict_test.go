package repair_test

import (
	"testing"

	"github.com/weirgate/weir/host/translate/repair"
)

// TR-12: what keeps the strict rules.
func TestStrict(t *testing.T) {
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`:                                                          true,
		`{"type":"object","properties":{},"additionalProperties":false}`:                                                                                                true,
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`:                                                                                       false,
		`{"type":"object","properties":{"a":{"type":"string"},"b":{}},"required":["a"],"additionalProperties":false}`:                                                   false,
		`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object"}}},"required":["a"],"additionalProperties":false}`:                                 false,
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"],"additionalProperties":false,"$defs":{"x":{"type":"object","properties":{"y":{}}}}}`: false,
		`{"type":"object","properties":{"a":{"anyOf":[{"type":"null"},{"type":"object"}]}},"required":["a"],"additionalProperties":false}`:                              false,
		`{"type":"string"}`: false,
	} {
		if got := repair.Strict([]byte(schema)); got != want {
			t.Errorf("%s: %v", schema, got)
		}
	}
}
