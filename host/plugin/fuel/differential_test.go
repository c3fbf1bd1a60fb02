package fuel

import (
	"context"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const plenty = int64(1) << 60

// history is what a run of all functions of a generated module shows.
type history struct {
	Calls  []string
	Size   uint32
	Memory [sha256.Size]byte
	Traps  int
	Steps  int64
	Prices int64
}

func run(r *rig, functions int, before func()) history {
	var h history
	for k := range functions {
		before()
		f := r.mod.ExportedFunction(fmt.Sprintf("f%d", k))
		args := make([]uint64, len(f.Definition().ParamTypes()))
		for n := range args {
			args[n] = uint64(3*n + k)
		}
		res, err := f.Call(context.Background(), args...)
		h.Calls = append(h.Calls, fmt.Sprint(res, trapOf(err)))
		if err != nil {
			h.Traps++
		}
	}
	h.Size = r.mod.Memory().Size()
	all, _ := r.mod.Memory().Read(0, h.Size)
	h.Memory = sha256.Sum256(all)
	h.Steps = int64(r.mod.ExportedGlobal(stepsName).Get())
	h.Prices = int64(r.mod.ExportedGlobal(pricesName).Get())
	return h
}

// compare runs a generated module with and without metering: equal results, traps and memory, and as much fuel spent as the
// module counted by itself.
func compare(t *testing.T, wasm []byte) history {
	t.Helper()
	out, report, err := Rewrite(wasm, Options{})
	if err != nil {
		t.Fatalf("%v\n%x", err, wasm)
	}
	plain, meter := start(t, wasm), start(t, out)
	defer plain.close()
	defer meter.close()
	want := run(plain, report.Functions, func() {})
	meter.setFuel(plenty)
	got := run(meter, report.Functions, func() {})
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("metering changed what the module does: %s\n%x", d, wasm)
	}
	least := plenty - meter.fuel()
	bare := start(t, bareOf(t, wasm))
	defer bare.close()
	bare.setFuel(plenty)
	got = run(bare, report.Functions, func() {})
	if spent := plenty - bare.fuel(); spent != got.Steps+got.Prices || spent > least {
		t.Fatalf("spent %d, the module counted %d steps and prices of %d\n%x", spent, got.Steps, got.Prices, wasm)
	}
	return got
}

// bareOf is the module metered without the charge for rows of instructions.
func bareOf(t testing.TB, wasm []byte) []byte {
	t.Helper()
	out, _, err := Rewrite(wasm, Options{line: math.MaxInt32})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ABI-7: the same calls give the same results with and without metering, and the fuel is what the rule says.
func TestGeneratedModulesABI7(t *testing.T) {
	var calls, traps, size int
	var steps, prices int64
	seeds := uint64(250)
	if raced {
		seeds = 60
	}
	for seed := range seeds {
		r := rand.New(rand.NewPCG(seed, 7))
		wasm := generate(r.IntN)
		h := compare(t, wasm)
		calls, traps, size = calls+len(h.Calls), traps+h.Traps, size+len(wasm)
		steps, prices = steps+h.Steps, prices+h.Prices
	}
	t.Logf("%d calls, %d of them trapped, %d steps, prices of %d, %d bytes", calls, traps, steps, prices, size)
	if traps == 0 || traps > calls/2 || steps < 1000 || prices < 1000 {
		t.Error("the generator makes modules that show too little")
	}
}

// ABI-7: likewise for guests of three languages.
func TestGuestsABI7(t *testing.T) {
	for _, x := range append(slices.Clone(guestCalls), []struct {
		name, file string
		op         int
		input      string
	}{
		{"go/unknown-model", goGuest, 15, demoRespond("nope")},
		{"go/flaky", goGuest, 15, demoRespond("flaky")},
		{"go/limited", goGuest, 15, demoRespond("limited")},
		{"go/unknown-op", goGuest, 99, "{}"},
		{"go/bad-json", goGuest, 15, `{"provider":`},
		{"c/grow", cGuest, 106, "0123456"},
		{"c/trap", cGuest, 110, ""},
		{"rust/products", rustGuest, 102, document(3000)},
		{"rust/panic", rustGuest, 103, "x"},
	}...) {
		t.Run(x.name, func(t *testing.T) {
			wasm := file(t, x.file)
			out := rewritten(t, wasm)
			if raced && x.file == goGuest {
				t.Skip("compiling 2.5 MB takes the raced compiler minutes, and races of a guest's code are none of ours")
			}
			plain, meter := start(t, wasm), start(t, out)
			defer plain.close()
			defer meter.close()
			for range 3 {
				meter.setFuel(plenty)
				want, wantErr := plain.op(x.op, x.input)
				got, gotErr := meter.op(x.op, x.input)
				if want != got || trapOf(wantErr) != trapOf(gotErr) {
					t.Errorf("got %q %v, want %q %v", got, gotErr, want, wantErr)
				}
				if meter.fuel() >= plenty {
					t.Error("nothing was charged")
				}
				if wantErr != nil {
					return // a trapped instance is discarded
				}
			}
		})
	}
}
