package catalog

import "testing"

// OBJ-8: limits of an account are kept, and a load says that nothing enforces them yet.
func TestLimitsWithoutEffectAreNamed(t *testing.T) {
	three := 3
	in := func(c ConnectionInput) *Snapshot {
		return build(t, Sources{File: &Input{Name: "weir.yaml", Connections: of(c)}})
	}
	plain := account("o1", "openai")
	if s := in(plain); warned(s, "no effect yet") {
		t.Error(s.Warnings)
	}
	limited := plain
	limited.MaxConcurrent, limited.RateLimitOverrides = &three, &RateLimitOverrides{}
	if s := in(limited); !warned(s, `"o1": max_concurrent, rate_limit_overrides have no effect yet`) || *s.Connection("o1").MaxConcurrent != 3 {
		t.Error(s.Warnings)
	}
}
