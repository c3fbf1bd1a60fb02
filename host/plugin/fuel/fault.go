package fuel

import "fmt"

// Code says why a module was refused (PLG-14). Codes never change their meaning.
type Code string

// The codes.
const (
	NotWasm          Code = "not_wasm"
	Component        Code = "component"
	Truncated        Code = "truncated"
	NumberInvalid    Code = "number_invalid"
	Malformed        Code = "module_malformed"
	SectionOrder     Code = "section_order"
	IndexOutOfRange  Code = "index_out_of_range"
	TypeMismatch     Code = "type_mismatch"
	OpcodeUnknown    Code = "opcode_unknown"
	SIMD             Code = "simd_unsupported"
	Threads          Code = "threads_unsupported"
	TailCall         Code = "tail_call_unsupported"
	Unsupported      Code = "feature_unsupported"
	CodeTooLarge     Code = "code_too_large"
	TooManyFunctions Code = "too_many_functions"
	BodyTooLarge     Code = "body_too_large"
	TooManyLocals    Code = "too_many_locals"
	NestingTooDeep   Code = "nesting_too_deep"
	BodyTooComplex   Code = "body_too_complex"
	DataTooLarge     Code = "data_too_large"
	TooManyTables    Code = "too_many_tables"
	TableTooLarge    Code = "table_too_large"
	TooManyMemories  Code = "too_many_memories"
	MemoryTooLarge   Code = "memory_too_large"
	TooMany          Code = "too_many_items"
	FuelExported     Code = "fuel_exported"
)

// mends are the second half of a message: what to do about it.
var mends = map[Code]string{
	NotWasm:          "build one with GOOS=wasip1 GOARCH=wasm, or write a .yaml pack",
	Component:        "build a core module (WASI preview 1) instead",
	Truncated:        "copy or build it again",
	NumberInvalid:    "copy or build it again",
	Malformed:        "copy it again, or build it with a current tool chain",
	SectionOrder:     "build it with a current tool chain",
	IndexOutOfRange:  "build it with a current tool chain",
	TypeMismatch:     "build it with a current tool chain",
	OpcodeUnknown:    "build it for WebAssembly 2.0 without newer proposals",
	SIMD:             "build it without SIMD (-mno-simd128, or the target feature -simd128)",
	Threads:          "build it without threads and atomics (-mno-atomics)",
	TailCall:         "build it without tail calls (-mno-tail-call)",
	Unsupported:      "build it for WebAssembly 2.0 without newer proposals",
	CodeTooLarge:     "leave out libraries that it does not need",
	TooManyFunctions: "leave out libraries that it does not need",
	BodyTooLarge:     "split that function, or raise limits.body_kib of this plugin",
	TooManyLocals:    "split that function, or build it with optimisation",
	NestingTooDeep:   "split that function",
	BodyTooComplex:   "split that function",
	DataTooLarge:     "leave out embedded data",
	TooManyTables:    "build it with one table",
	TableTooLarge:    "leave out libraries that it does not need",
	TooManyMemories:  "build it with one memory",
	MemoryTooLarge:   "build it with less initial memory and stack, or raise the plugin's limit",
	TooMany:          "leave out libraries that it does not need",
	FuelExported:     "give that export another name",
}

// Error is why a module was refused: a code to branch on, where, and one sentence with the mend.
type Error struct {
	Code     Code
	Message  string // what is wrong, and the mend
	Offset   int    // in the file
	Function int    // index of the function, -1: not in code
}

// Error is [function n, ]byte n: message (code).
func (e *Error) Error() string {
	if e.Function >= 0 {
		return fmt.Sprintf("function %d, byte %d: %s (%s)", e.Function, e.Offset, e.Message, e.Code)
	}
	return fmt.Sprintf("byte %d: %s (%s)", e.Offset, e.Message, e.Code)
}

// fail ends the rewriting. The panic never leaves the package: see guarded.
func fail(code Code, offset int, format string, args ...any) {
	panic(&Error{Code: code, Message: fmt.Sprintf(format, args...) + "; " + mends[code], Offset: offset, Function: -1})
}

// guarded runs f and returns what it failed with. A reader of nested structures is plainer with one way out.
func guarded(f func()) (err error) {
	defer func() {
		switch e := recover().(type) {
		case nil:
		case *Error:
			err = e
		default:
			panic(e)
		}
	}()
	f()
	return nil
}
