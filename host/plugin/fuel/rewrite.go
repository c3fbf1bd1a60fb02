package fuel

import "math"

// Options are the limits that an operator may move (ABI-7, ABI-8, ABI-10). The zero value means the defaults.
type Options struct {
	BodyKiB     int    // of one function; 0: 64. ABI-7 allows 32 (strict) to 512
	MemoryPages uint32 // of 64 KiB, that the module may ask for at its start; 0: 512

	line int // simple instructions in a row that cost nothing; 0: maxLine. Tests count without rows
}

func (o Options) bodyKiB() int {
	if o.BodyKiB <= 0 {
		return 64
	}
	return min(o.BodyKiB, 512)
}

func (o Options) longestLine() int {
	if o.line == 0 {
		return maxLine
	}
	return o.line
}

func (o Options) pages() uint32 {
	if o.MemoryPages == 0 {
		return 32 << 10 / pageKiB
	}
	return o.MemoryPages
}

// Report says what a rewriting found and did.
type Report struct {
	Functions int    // defined by the guest
	Body      int    // bytes of the largest one
	Checks    int    // places that charge
	Global    uint32 // index of the fuel global
	Before    int    // bytes
	After     int
}

// Rewrite checks a module against ABI-7 and returns it metered: with one more global, exported as weir_fuel, that holds
// 20,000,000. The host sets it before each call; a trap that leaves it negative means that the fuel was spent. A module that
// is refused gives an *Error. The module is only read; calls may run at once.
func Rewrite(module []byte, o Options) ([]byte, Report, error) {
	return rewrite(module, o, nil)
}

// RewriteExtism is Rewrite for a guest of Extism, whose host can neither read nor set a global (ABI-10): each exported function
// that a wrapper is for gives its name up, and the wrapper is exported as it says. Besides, weir_fuel_spent: () -> i32 is
// exported, which answers 1 when the fuel is below zero. Wrappers of what the module does not export are ignored.
func RewriteExtism(module []byte, o Options, wrappers ...Wrapper) ([]byte, Report, error) {
	if wrappers == nil {
		wrappers = []Wrapper{}
	}
	return rewrite(module, o, wrappers)
}

func rewrite(wasm []byte, o Options, wrappers []Wrapper) (out []byte, report Report, err error) {
	err = guarded(func() {
		if int64(len(wasm)) > math.MaxInt32 {
			fail(CodeTooLarge, 0, "the module has %d bytes", len(wasm))
		}
		m := &module{o: o}
		m.split(wasm)
		m.parse()
		report = Report{Functions: len(m.funcs) - m.importedFuncs, Global: uint32(len(m.globals)), Before: len(wasm)}
		out = m.assemble(&report, wrappers)
		report.After = len(out)
	})
	if err != nil {
		return nil, Report{}, err
	}
	return out, report, nil
}
