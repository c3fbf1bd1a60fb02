package fuel

import (
	"testing"
	"time"
)

// ABI-7: a row of instructions is paid for on every way through it, so that a pass through a large loop costs more than one
// through a small loop.
func TestRowsABI7(t *testing.T) {
	const n = 4000
	simple := rep(n/2, opLocalGet, 0, opDrop) // drop is free, as it makes no code
	for _, x := range []struct {
		name  string
		body  []byte
		least int64
		most  int64
	}{
		{"a short row", code(nil, rep(100, opLocalGet, 0, opDrop)), 0, 0},
		{"a long row", code(nil, simple), n / 2 / maxLine, n / 2 / maxLine},
		{"divisions", code(nil, rep(100, opLocalGet, 0, i32c(7), 0x6e, opDrop)), 1800/maxLine - 1, 1800 / maxLine},
		{"skipped code does not carry the charge away", code(nil, rep(40, opBlock, typeEmpty, i32c(1), opBrIf, 0,
			rep(100, opLocalGet, 0, opDrop), opEnd, rep(150, opLocalGet, 0, opDrop))), 40 * 150 / maxLine, 80},
		{"an arm", code(nil, rep(40, i32c(1), opIf, typeEmpty, rep(200, opLocalGet, 0, opDrop), opElse, opNop, opEnd)), 40*200/maxLine - 1, 120},
		{"the other arm", code(nil, rep(40, i32c(0), opIf, typeEmpty, opNop, opElse, rep(200, opLocalGet, 0, opDrop), opEnd)), 40*200/maxLine - 1, 120},
		{"growth by nothing", code(nil, rep(100, i32c(0), opMemoryGrow, 0, opDrop)), 40, 100},
		{"nothing copied", code(nil, rep(100, i32c(0), i32c(0), i32c(0), opMisc, miscMemoryCopy, 0, 0)), 20, 50},
		{"calls pay by themselves", code(nil, rep(100, rep(40, opLocalGet, 0, opDrop), i32c(0), opCall, 1)), 100, 100},
	} {
		t.Run(x.name, func(t *testing.T) {
			r := metered(t, with(one(vI, "", x.body), func(m *built) {
				m.funcs, m.bodies = append(m.funcs, m.funcs[0]), append(m.bodies, code(nil))
			}))
			r.setFuel(plenty)
			if _, err := r.call("run", 1); err != nil {
				t.Fatal(err)
			}
			if spent := plenty - r.fuel() - 1; spent < x.least || spent > x.most {
				t.Errorf("spent %d besides the entry, want %d to %d", spent, x.least, x.most)
			}
		})
	}
}

// ABI-8: the largest loop that passes the check stops about as soon as a small one.
func TestLargeLoopStopsABI8(t *testing.T) {
	divide := rep(10_000, i64c(7), 0x80) // i64.div_u
	r := metered(t, tabled("", "", opLoop, typeEmpty, i64c(-1), divide, opDrop, opBr, 0, opEnd))
	r.setFuel(2_000_000)
	began := time.Now()
	if _, err := r.call("run"); trapOf(err) != "wasm error: unreachable" || r.fuel() != -1 {
		t.Errorf("%v, fuel %d", err, r.fuel())
	}
	took := time.Since(began)
	t.Logf("2 M fuel of divisions: %s", took)
	if took > 5*time.Second {
		t.Errorf("it spun for %s", took)
	}
}

// ABI-7: calls of the host's functions are paid for too, since what they do costs time that is not the guest's.
func TestHostCallsABI7(t *testing.T) {
	wasm := with(one("", "", code(nil, rep(1000, opCall, 0))), func(m *built) {
		m.imports = [][]byte{cat(str("env"), str("f"), 0, 0)}
		m.exports = [][]byte{cat(str("run"), 0, 1)}
	})
	_, report, err := Rewrite(wasm, Options{})
	if err != nil || report.Checks < 500 {
		t.Errorf("1,000 calls of an import have %d charges, want 500 at least; %v", report.Checks, err)
	}
}
