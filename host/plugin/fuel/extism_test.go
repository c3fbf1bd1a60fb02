package fuel

import (
	"errors"
	"testing"
)

// extism is a module in the form of ABI-10 that gives its types, an import and references as much to do as it can: plan
// returns its argument twice, spin calls plan for ever, an import is exported, and a reference is made to plan.
func extism() *built {
	return &built{
		types: [][]byte{functype("", vI), functype(vI+vL, vI+vL), functype("", "")}, funcs: [][]byte{{1}, {0}, {0}},
		imports: [][]byte{cat(str("weir"), str("f"), kindFunc, 2)}, tables: [][]byte{cat(typeFunc, 0, 1)},
		exports: [][]byte{
			exported("weir_plan", kindFunc, 1), exported("weir_spin", kindFunc, 2), exported("weir_ref", kindFunc, 3),
			exported("weir_imported", kindFunc, 0), exported("other", kindFunc, 1),
		},
		bodies: [][]byte{
			code(nil, opLocalGet, 0, opLocalGet, 1),
			code(nil, opLoop, 0x7f, i32c(1), i64c(2), opCall, 1, opDrop, opDrop, opBr, 0, opEnd),
			code(nil, i32c(0), opRefFunc, 2, opTableSet, 0, i32c(0), opTableGet, 0, opRefIsNull),
		},
	}
}

// ABI-10: each budgeted export runs on its own budget, and the host learns whether it was spent without seeing the global.
func TestExtismABI10(t *testing.T) {
	wasm, _, err := RewriteExtism(extism().bytes(), Options{}, same("weir_plan", 50), same("weir_spin", 1_000), same("weir_ref", 7),
		same("weir_imported", 3), same("weir_absent", 9), Wrapper{Of: "weir_plan", As: "weir_plan_long", Budget: 500})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, wasm)
	spent := func() uint64 {
		t.Helper()
		res, err := r.call(spentExport)
		if err != nil {
			t.Fatal(err)
		}
		return res[0]
	}
	if _, err := r.call("weir_plan_long", 5, 1<<40); err != nil || r.fuel() != 499 {
		t.Errorf("a second wrapper of one export: %v, fuel %d", err, r.fuel())
	}
	res, err := r.call("weir_plan", 5, 1<<40)
	if err != nil || res[0] != 5 || res[1] != 1<<40 || r.fuel() != 49 || spent() != 0 {
		t.Errorf("plan: %v %v, fuel %d", res, err, r.fuel())
	}
	if _, err := r.call("weir_spin"); trapOf(err) != "wasm error: unreachable" || spent() != 1 {
		t.Errorf("spin: %v, fuel %d", err, r.fuel())
	}
	// It called plan 500 times at most: a call from within does not set the fuel again.
	if r.fuel() != -1 {
		t.Errorf("fuel %d after the end", r.fuel())
	}
	if res, err = r.call("weir_ref"); err != nil || res[0] != 0 || r.fuel() != 6 || spent() != 0 {
		t.Errorf("ref: %v %v, fuel %d", res, err, r.fuel())
	}
	if _, err = r.call("weir_imported"); err != nil || r.fuel() != 3 {
		t.Errorf("imported: %v, fuel %d", err, r.fuel())
	}
	r.setFuel(10)
	if _, err = r.call("other", 1, 1); err != nil || r.fuel() != 9 {
		t.Errorf("an export without a budget: %v, fuel %d", err, r.fuel())
	}
	if t0 := r.mod.ExportedFunction(spentExport).Definition(); len(t0.ParamTypes()) != 0 || len(t0.ResultTypes()) != 1 {
		t.Error("weir_fuel_spent has another type")
	}
}

func same(name string, budget int64) Wrapper { return Wrapper{Of: name, As: name, Budget: budget} }

// ABI-10: a wrapper under another name takes the export away, so that nothing runs on the fuel that is left of another call;
// a module that has that other name already is refused.
func TestExtismRenames(t *testing.T) {
	wasm, _, err := RewriteExtism(extism().bytes(), Options{}, Wrapper{Of: "weir_plan", As: "start", Budget: 9})
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, wasm)
	if r.mod.ExportedFunction("weir_plan") != nil {
		t.Error("the original is still exported")
	}
	if _, err := r.call("start", 1, 1); err != nil || r.fuel() != 8 {
		t.Errorf("%v, fuel %d", err, r.fuel())
	}
	_, _, err = RewriteExtism(extism().bytes(), Options{}, Wrapper{Of: "weir_plan", As: "other", Budget: 9})
	if e, ok := errors.AsType[*Error](err); !ok || e.Code != FuelExported {
		t.Errorf("a name that is taken: %v", err)
	}
}

// ABI-10: a budget of none, and a module without any export to wrap.
func TestExtismEdges(t *testing.T) {
	wasm, _, err := RewriteExtism(extism().bytes(), Options{}, same("weir_plan", -5))
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, wasm)
	if _, err := r.call("weir_plan", 1, 1); err == nil {
		t.Error("ran without a budget")
	}
	wasm, _, err = RewriteExtism(magic, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if res, err := start(t, wasm).call(spentExport); err != nil || res[0] != 0 {
		t.Error(res, err)
	}
	for _, guest := range []string{cGuest, rustGuest} {
		wasm, _, err := RewriteExtism(file(t, guest), Options{}, same("weir_call", 100), same("weir_alloc", 100_000))
		if err != nil {
			t.Fatal(err)
		}
		r := start(t, wasm)
		if _, err := r.op(100, document(1000)); trapOf(err) != "wasm error: unreachable" || r.fuel() >= 0 {
			t.Errorf("%s: %v, fuel %d", guest, err, r.fuel())
		}
	}
}
