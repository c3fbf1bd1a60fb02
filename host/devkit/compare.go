package devkit

import (
	"bytes"
	"encoding/json"
	"slices"
)

// Difference is one field of a verdict that is not as expected.
type Difference struct {
	Field    string          `json:"field"`
	Expected json.RawMessage `json:"expected"`
	Got      json.RawMessage `json:"got"`
}

// Differ compares a verdict with what its line expects, field by field in the order of the corpus; fields that the line does
// not name are free.
func Differ(a *Answer, j Judged) []Difference {
	if a.Hint {
		return differences([]string{"expect_ms"}, map[string]any{"expect_ms": a.Wait}, map[string]any{"expect_ms": j.WaitMS})
	}
	got := map[string]any{
		"status": j.Status, "reason": j.Reason, "scope": j.Scope, "retryable_elsewhere": j.Fallback, "cooldown_ms": j.WaitMS,
		"trips_breaker": j.Breaker, "terminal": j.Terminal,
	}
	order := []string{"status", "reason", "scope", "retryable_elsewhere", "cooldown_ms", "trips_breaker", "terminal"}
	order = slices.DeleteFunc(order, func(f string) bool { _, named := a.Expect[f]; return !named })
	return differences(order, a.Expect, got)
}

func differences(fields []string, expected, got map[string]any) []Difference {
	var all []Difference
	for _, f := range fields {
		if e, g := text(expected[f]), text(got[f]); !bytes.Equal(e, g) {
			all = append(all, Difference{f, e, g})
		}
	}
	return all
}

// text is a plain value as JSON writes it; numbers of JSON are floats, so large ones are written out.
func text(v any) json.RawMessage {
	if n, ok := v.(float64); ok && n == float64(int64(n)) {
		v = int64(n)
	}
	b, _ := json.Marshal(v) // it was JSON, or is a plain value
	return b
}
