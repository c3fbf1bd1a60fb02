package plugin

import (
	"errors"
	"fmt"

	"github.com/weirgate/weir/host/plugin/binary"
)

// Limits of files and modules (ABI-7, ABI-8).
const (
	MaxFile      = 32 << 20
	maxCode      = 16 << 20
	maxFunctions = 20_000
	maxLocals    = 1_000
	maxData      = 16 << 20
	maxEntries   = 65_536
)

// exports are what every module must have, with their types (ABI-1).
var exports = []binary.Export{
	{Name: "memory", Kind: binary.Memory},
	{Name: "weir_abi", Kind: binary.Func, Type: "()->(i32)"},
	{Name: "weir_alloc", Kind: binary.Func, Type: "(i32)->(i32)"},
	{Name: "weir_call", Kind: binary.Func, Type: "(i32 i32)->(i64)"},
}

// precheck looks at a module before anything of it is compiled, so that a file cannot cost much by what it declares.
func precheck(wasm []byte, most *limits) (*binary.Outline, *Fault) {
	o, err := binary.Parse(wasm)
	switch {
	case errors.Is(err, binary.ErrNotWasm):
		return nil, fault(StepPrecheck, CodeNotWasm, "this is not a WebAssembly module; build one with GOOS=wasip1 GOARCH=wasm, or write a .yaml pack")
	case errors.Is(err, binary.ErrComponent):
		return nil, fault(StepPrecheck, CodeComponent, "this is a WebAssembly component; build a core module (WASI preview 1) instead")
	case err != nil:
		return nil, fault(StepPrecheck, CodeMalformed, "the module is damaged (%v); copy or build it again", err)
	}
	check := checkExports
	if kindOf(o) == loaderExtism {
		check = checkExtismExports
	}
	if f := check(o); f != nil {
		return nil, f
	}
	if o.Memories != 1 {
		return nil, fault(StepPrecheck, CodeModuleLimit, "the module has %d memories, it must have one", o.Memories)
	}
	if o.Pages > most.pages {
		return nil, fault(StepPrecheck, CodeMemoryLimit, "the module asks for %d MiB of memory at its start, at most %d are allowed", o.Pages/16, most.pages/16)
	}
	for _, x := range []struct {
		what    string
		n, most int
	}{
		{"bytes of code", o.CodeBytes, maxCode}, {"functions", o.Functions, maxFunctions}, {"bytes in one function", o.Body, most.bodyKiB << 10},
		{"locals in one function", o.Locals, maxLocals}, {"bytes of data", o.DataBytes, maxData}, {"tables", o.Tables, 1},
		{"entries in its table", int(o.Entries), maxEntries},
	} {
		if x.n > x.most {
			return nil, fault(StepPrecheck, CodeModuleLimit, "the module has %d %s, at most %d are allowed", x.n, x.what, x.most)
		}
	}
	return o, nil
}

func checkExports(o *binary.Outline) *Fault {
	for _, want := range exports {
		has, ok := o.Export(want.Name)
		if !ok {
			return fault(StepPrecheck, CodeMissingExport, "the module does not export %s; build it with -buildmode=c-shared and the sdk", want.Name)
		}
		if has.Kind != want.Kind || has.Type != want.Type {
			return fault(StepPrecheck, CodeExportType, "the export %s is %s, it must be %s", want.Name, describeExport(has), describeExport(want))
		}
	}
	if init, ok := o.Export("_initialize"); ok && (init.Kind != binary.Func || init.Type != "()->()") {
		return fault(StepPrecheck, CodeExportType, "the export _initialize is %s, it must be func ()->()", describeExport(init))
	}
	return nil
}

func describeExport(e binary.Export) string {
	if e.Kind != binary.Func {
		return e.Kind.String()
	}
	return fmt.Sprintf("func %s", e.Type)
}
