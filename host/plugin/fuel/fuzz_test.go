package fuel

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// accepts tells whether wazero takes a module. It interprets, since only decoding and validation matter here.
func accepts(wasm []byte) error {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter().WithDebugInfoEnabled(false).
		WithCoreFeatures(api.CoreFeaturesV2&^api.CoreFeatureSIMD).WithMemoryLimitPages(512))
	defer r.Close(ctx)
	_, err := r.CompileModule(ctx, wasm)
	return err
}

// stripped is a module without its custom sections: a fault in one of those is none of the module.
func stripped(wasm []byte) []byte {
	out := append([]byte{}, magic...)
	for r := (&reader{b: wasm, at: 8}); !r.done(); {
		id := r.byte()
		if part := r.part(r.u32()); id != secCustom {
			out = appendSection(out, int(id), part.b[part.at:])
		}
	}
	return out
}

// wrong are the codes that say "this is not valid", in contrast to "this is more than allowed".
var wrong = map[Code]bool{IndexOutOfRange: true, TypeMismatch: true, OpcodeUnknown: true}

// checkRewrite asserts what holds for any bytes (ABI-7): what is accepted was valid before, is valid after, and is not
// accepted again; what is refused as invalid code is invalid.
func checkRewrite(t *testing.T, wasm []byte) {
	out, report, err := Rewrite(wasm, Options{})
	if err != nil {
		e, ok := errors.AsType[*Error](err)
		if !ok || e.Message == "" || mends[e.Code] == "" {
			t.Fatalf("no proper error: %#v", err)
		}
		if e.Function >= 0 && wrong[e.Code] && accepts(wasm) == nil {
			t.Fatalf("valid, but: %v\n%x", err, wasm)
		}
		return
	}
	if err := accepts(stripped(wasm)); err != nil {
		t.Fatalf("accepted, but the original is invalid: %v\n%x", err, wasm)
	}
	if err := accepts(out); err != nil {
		t.Fatalf("metering made it invalid: %v\n%x", err, wasm)
	}
	if report.After != len(out) || report.Before != len(wasm) {
		t.Fatalf("report %+v for %d bytes", report, len(out))
	}
	if _, _, err := Rewrite(out, Options{}); err == nil {
		t.Fatal("metered twice")
	}
	if out, _, err = RewriteExtism(wasm, Options{}, same("weir_call", 5), same("f0", 7), same("run", 9)); err != nil {
		t.Fatalf("refused for Extism only: %v", err)
	} else if err := accepts(out); err != nil {
		t.Fatalf("wrapping made it invalid: %v\n%x", err, wasm)
	}
}

// FuzzRewrite feeds anything to the rewriter (ABI-7).
func FuzzRewrite(f *testing.F) {
	f.Add(file(f, cGuest))
	f.Add(extism().bytes())
	f.Add(full(opNop).bytes())
	f.Add(tabled(vI, vI, opRefNull, typeFunc, opLocalGet, 0, opMisc, miscTableGrow, 0))
	for seed := range uint64(20) {
		f.Add(generate(rand.New(rand.NewPCG(seed, 3)).IntN))
	}
	f.Fuzz(checkRewrite)
}

// ABI-7: likewise for modules with some bytes changed.
func TestMutatedModulesABI7(t *testing.T) {
	accepted := 0
	for seed := range uint64(1_500) {
		r := rand.New(rand.NewPCG(seed, 11))
		wasm := extism().bytes()
		if seed%3 > 0 {
			wasm = generate(r.IntN)
		}
		for range 1 + r.IntN(3) {
			wasm[8+r.IntN(len(wasm)-8)] = byte(r.IntN(256))
		}
		checkRewrite(t, wasm)
		if _, _, err := Rewrite(wasm, Options{}); err == nil {
			accepted++
		}
	}
	t.Logf("%d of 1500 were accepted", accepted)
	if accepted < 100 {
		t.Error("too few to mean anything")
	}
}

// FuzzDifferential makes a module of the choices and compares it with its metered form (ABI-7).
func FuzzDifferential(f *testing.F) {
	for seed := range uint64(10) {
		b := make([]byte, 600)
		for k, r := 0, rand.New(rand.NewPCG(seed, 5)); k < len(b); k++ {
			b[k] = byte(r.IntN(256))
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, choices []byte) {
		compare(t, generate(func(n int) int {
			if len(choices) == 0 {
				return 0
			}
			c := int(choices[0]) % n
			choices = choices[1:]
			return c
		}))
	})
}
