package fuel
import ("testing";"bytes";"time";"runtime";"github.com/tetratelabs/wazero";"github.com/tetratelabs/wazero/api")

func rep(n int, parts ...any) []byte { return bytes.Repeat(cat(parts...), n) }

func TestBombs(t *testing.T) {
	res := func(n int) string { return string(bytes.Repeat([]byte(i), n)) }
	globals := func(n int) (g [][]byte) { for range n { g = append(g, cat(typeI32, 1, i32c(0), opEnd)) }; return g }
	for _, x := range []struct{ name string; m *built }{
		{"loops 21k", one("", "", code(nil, rep(21800, opLoop, 0x40, opEnd)))},
		{"loops 10k", one("", "", code(nil, rep(10000, opLoop, 0x40, opEnd)))},
		{"loops 4k", one("", "", code(nil, rep(4000, opLoop, 0x40, opEnd)))},
		{"loops nested 500", one("", "", code(nil, rep(500, opLoop, 0x40), rep(500, opEnd)))},
		{"loops nested 500 x43", one("", "", code(nil, rep(43, rep(500, opLoop, 0x40), rep(500, opEnd))))},
		{"ifs 13k", one(i, "", code(nil, rep(13000, opLocalGet, 0, opIf, 0x40, opEnd)))},
		{"ifs 10.9k nop", one(i, "", code(nil, rep(10900, opLocalGet, 0, opIf, 0x40, opNop, opEnd)))},
		{"ifs 4k", one(i, "", code(nil, rep(4000, opLocalGet, 0, opIf, 0x40, opEnd)))},
		{"nested 3900 arms", one(i, "", code(nil, rep(3900, opBlock, 0x40), opLocalGet, 0, opBrTable, 0, 0, rep(3900, opEnd)))},
		{"nested 3900 arms x5", one(i, "", code(nil, rep(5, rep(3900, opBlock, 0x40), opLocalGet, 0, opBrTable, 0, 0, rep(3900, opEnd))))},
		{"fills 6k", one("", "", code(nil, rep(6000, i32c(0), i32c(0), i32c(0), opMisc, 11, 0)))},
		{"grows 10k", one("", "", code(nil, rep(10000, i32c(0), opMemoryGrow, 0, opDrop)))},
		{"calls 20k, 1000 globals", func() *built { m := one("", "", code(nil, rep(20000, opCall, 0))); m.globals = globals(1000); return m }()},
		{"calls 20k, 100 globals", func() *built { m := one("", "", code(nil, rep(20000, opCall, 0))); m.globals = globals(100); return m }()},
		{"calls 20k, 0 globals", one("", "", code(nil, rep(20000, opCall, 0)))},
		{"calls 32k of 64", one("", res(64), code(nil, rep(32000, opCall, 0), opUnreachable))},
		{"calls 16k of 16", one("", res(16), code(nil, rep(32000, opCall, 0), opUnreachable))},
		{"calls 64-64", one(res(64), res(64), code(nil, rep(64, opLocalGet, 0), rep(32000, opCall, 0)))},
		{"brif 64 results", one(i, res(64), code(nil, rep(64, opLocalGet, 0), rep(16000, opLocalGet, 0, opBrIf, 0)))},
		{"loops 64 params", one(i, res(64), code(nil, rep(64, opLocalGet, 0), rep(500, opLoop, 1), rep(500, opEnd)))},
		{"locals 1000 in 500 loops", one("", "", code(cat(1, u32(1000), typeI32), rep(500, opLoop, 0x40), rep(5000, opLocalGet, 0x80|50, 5, opLocalSet, 0x80|20, 4), rep(500, opEnd)))},
	} {
		if x.name == "loops 64 params" { x.m.types = append(x.m.types, functype(res(64), res(64))) }
		orig := x.m.bytes()
		out, rep, err := Rewrite(orig, Options{})
		if err != nil { t.Log(x.name, err) ; out = nil}
		for k, b := range [][]byte{orig, out} {
			if b == nil { continue }
			ctx := t.Context()
			r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithCoreFeatures(api.CoreFeaturesV2&^api.CoreFeatureSIMD).WithMemoryLimitPages(512))
			at := time.Now()
			var m0, m1 runtime.MemStats
			runtime.ReadMemStats(&m0)
			_, err = r.CompileModule(ctx, b)
			runtime.ReadMemStats(&m1)
			t.Logf("%-28s %d %6d B %v alloc %d MB checks %d %v", x.name, k, len(b), time.Since(at).Round(time.Millisecond), (m1.TotalAlloc-m0.TotalAlloc)>>20, rep.Checks, err)
			r.Close(ctx)
		}
	}
}
