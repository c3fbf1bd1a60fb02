package sdktest

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strings"
	"testing"
)

func check(t *testing.T, k Kit, wasm []byte) Report {
	t.Helper()
	r, err := k.Check(t.Context(), wasm, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func failures(r Report) (list []Step) {
	for _, s := range r.Steps {
		if s.Outcome == Failed {
			list = append(list, s)
		}
	}
	return list
}

// Every evil guest is what its label says, judged by the kit: it is refused with one of its codes, or its call is one of its
// violations.
func TestEvil(t *testing.T) { // ABI-7, ABI-8, ABI-13
	names := map[string]bool{}
	for _, e := range Evil() {
		t.Run("ABI-13 "+e.Name, func(t *testing.T) {
			if names[e.Name] {
				t.Error("two evil guests have one name")
			}
			names[e.Name] = true
			if len(e.LoadCodes) > 0 {
				r := check(t, Kit{Calls: 10}, e.Wasm)
				f := failures(r)
				if len(f) != 1 || r.OK || !slices.Contains(e.LoadCodes, f[0].Code) {
					t.Errorf("%v, want a refusal with %v", f, e.LoadCodes)
				}
				return
			}
			c := &checker{wasm: e.Wasm}
			defer c.close()
			for _, s := range steps[:7] {
				if f := s.run(c, t.Context()); f.outcome == Failed {
					t.Fatalf("%s: %+v", s.name, f)
				}
			}
			g, err := c.ready(t.Context(), now)
			if err != nil {
				t.Fatal(err)
			}
			defer g.close()
			kind := ""
			out, err := g.call(t.Context(), e.Op, c.samples(e.Op)[0])
			if err != nil {
				kind = kindOf(err)
			} else if _, f := c.answered(e.Op, out); f != nil {
				kind = f.code
			}
			if len(e.Violations) == 0 && kind != "" || len(e.Violations) > 0 && !slices.Contains(e.Violations, kind) {
				t.Errorf("%q: %v, want one of %q", kind, err, e.Violations)
			}
		})
	}
}

// A guest of raw bytes that does all as it should passes, and so does the demo plugin, which the sdk made.
func TestGood(t *testing.T) {
	manifest := EvilManifest("good")
	good := module{manifest: manifest, answer: `{"reason":"overloaded"}`, call: only(place(textAt+uint64(len(manifest)), 23))}
	for name, wasm := range map[string][]byte{"raw": good.wasm(), "demo": demo(t)} {
		t.Run("ABI-12 "+name, func(t *testing.T) {
			r := Kit{}.Run(t, wasm)
			if !r.OK || len(r.Steps) != len(steps) {
				t.Errorf("%+v", r)
			}
		})
	}
}

// only is code that answers classify, and has no opinion on everything else.
func only(answer []byte) []byte {
	return then([]byte{0x20, 0, 0x41, 30, 0x46, 0x04, 0x7e}, answer, []byte{0x05, 0x42, 0, 0x0b})
}

func demo(t *testing.T) []byte {
	t.Helper()
	b, err := os.ReadFile("../../plugins/demo/demo.wasm")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// Each step fails for the guest that was made for it.
func TestStepsFail(t *testing.T) {
	onUnknown := func(answer []byte) []byte { // if op == 30 then no opinion else answer
		return then([]byte{0x20, 0, 0x41, 30, 0x46, 0x04, 0x7e, 0x42, 0, 0x05}, answer, []byte{0x0b})
	}
	leak := then([]byte{0x41, 1, 0x40, 0, 0x1a}, nothing) // a page for each call
	const verdict = `{"reason":"overloaded"}`
	texts := textAt + uint64(len(EvilManifest("step")))
	// A verdict where the third byte of the input is a z, as that of an unknown field is.
	fooled := only(then(i32const(bufferAt+2), []byte{0x2d, 0, 0}, i32const('z'), []byte{0x46, 0x04, 0x7e}, place(texts, uint64(len(verdict))), []byte{0x05, 0x42, 0, 0x0b}))
	// The sixth event and all after it are dropped, whatever stream they are of.
	const events = `{"name":"evil-step","version":"1.0.0","kinds":["executor"],"hooks":["on_event","on_end"],"plans":[{"plan":{"url":"{{connection.base_url}}/x"}}]}`
	mixing := then([]byte{0x23, 0, 0x42, 1, 0x7c, 0x24, 0, 0x20, 0, 0x41, 13, 0x46, 0x23, 0, 0x42, 5, 0x55, 0x71, 0x04, 0x7e},
		place(textAt+uint64(len(events)), 1), []byte{0x05, 0x42, 0, 0x0b})
	for _, c := range []struct {
		id, step, code string
		m              module
	}{
		{"ABI-1 an answer that hangs on unknown fields", "unknown-fields", violationGarbage, module{call: fooled, answer: verdict}},
		{"ABI-5 streams that are mixed up", "streams", violationGarbage, module{manifest: events, call: mixing, answer: "\x01", globals: 1}},
		{"ABI-1 unknown operations", "unknown-ops", violationGarbage, module{call: onUnknown(place(textAt, 2))}},
		{"ABI-1 a trap for unknown operations", "unknown-ops", violationTrap, module{call: onUnknown(then(trap, nothing))}},
		{"ABI-8 not JSON", "sizes", violationGarbage, module{answer: "hello"}},
		{"ABI-8 a trap for empty input", "garbage-in", violationTrap, module{call: then([]byte{0x20, 1, 0x45, 0x04, 0x40}, trap, []byte{0x0b}, nothing)}},
		{"ABI-8 a trap for the largest input", "sizes", violationTrap, module{call: then([]byte{0x20, 1}, i32const(largeInput-2000), []byte{0x4a, 0x04, 0x40}, trap, []byte{0x0b}, nothing)}},
		{"ABI-1 no room for large inputs", "buffer", violationGarbage, module{alloc: then([]byte{0x20, 0}, i32const(65536), []byte{0x4a, 0x04, 0x7f, 0x41, 0, 0x05}, i32const(bufferAt), []byte{0x0b})}},
		{"ABI-12 a page for each call", "steady", violationMemory, module{call: leak}},
		{"ABI-1 a refusal with a code of its own", "sizes", violationGarbage, module{answer: `{"error":{"code":"tired","message":"no"}}`}},
	} {
		t.Run(c.id, func(t *testing.T) {
			c.m.manifest = cmp.Or(c.m.manifest, EvilManifest("step"))
			r := check(t, Kit{Calls: 200}, c.m.wasm())
			for _, f := range failures(r) {
				if f.Name == c.step && f.Code == c.code {
					return
				}
			}
			t.Errorf("%s does not fail with %s: %v", c.step, c.code, failures(r))
		})
	}
}

func TestCancelled(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	r, err := Check(ctx, (&module{manifest: EvilManifest("good")}).wasm(), func(s Step) {
		if s.Name == "describe" {
			stop()
		}
	})
	if err == nil || len(r.Steps) != 5 {
		t.Errorf("%v after %d steps", err, len(r.Steps))
	}
}

func TestStepIsOneLine(t *testing.T) {
	s := Step{Name: "start", ID: "ABI-7", Outcome: Failed, Code: "start_failed", Detail: "why"}.String()
	if !strings.Contains(s, "start") || !strings.Contains(s, "why (start_failed)") || strings.Contains(s, "\n") {
		t.Error(s)
	}
}
