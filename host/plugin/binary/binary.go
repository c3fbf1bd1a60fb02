// Package binary reads the outline of a WebAssembly core module: sections, imports, exports, and the sizes that decide how
// much memory and time it could cost. It owns the structural pre-check of ABI-7 as far as it needs no look into code, runs
// nothing, and allocates in proportion to the file.
package binary

import (
	"bytes"
	"errors"
	"fmt"
	"math"
)

// Errors that say what kind of file it is instead.
var (
	// ErrNotWasm: the file does not start as a WebAssembly module.
	ErrNotWasm = errors.New("not a WebAssembly module")
	// ErrComponent: the file is a component, not a core module.
	ErrComponent = errors.New("a WebAssembly component, not a core module")
)

// The numbers of the sections that are read.
const (
	secCustom   = 0
	secType     = 1
	secImport   = 2
	secFunction = 3
	secTable    = 4
	secMemory   = 5
	secExport   = 7
	secCode     = 10
	secData     = 11
)

// Kind says what an import or export is.
type Kind byte

// The kinds.
const (
	Func   Kind = 0
	Table  Kind = 1
	Memory Kind = 2
	Global Kind = 3
)

// String is the word of the text format.
func (k Kind) String() string {
	switch k {
	case Func:
		return "func"
	case Table:
		return "table"
	case Memory:
		return "memory"
	case Global:
		return "global"
	}
	return "unknown"
}

// Signature is the type of a function, written as "(i32 i32)->(i64)".
type Signature string

// Import is one import.
type Import struct {
	Module, Name string
	Kind         Kind
	Type         Signature // functions only
}

// Export is one export.
type Export struct {
	Name string
	Kind Kind
	Type Signature // functions only
}

// Outline is what a module says about itself.
type Outline struct {
	Imports   []Import
	Exports   []Export
	Custom    map[string][]byte // the first of each name; slices of the file
	Functions int               // defined, not imported
	CodeBytes int
	Body      int // largest body
	Locals    int // most locals in one function
	DataBytes int
	Memories  int
	Pages     uint32 // least pages of the largest memory
	Tables    int
	Entries   uint32 // least entries of the largest table

	types     []Signature
	functions []Signature // imported first
}

// Export returns the export of that name.
func (o *Outline) Export(name string) (Export, bool) {
	for _, e := range o.Exports {
		if e.Name == name {
			return e, true
		}
	}
	return Export{}, false
}

// magic is "\0asm" and version 1; a component has another layer in the upper half of the version.
var magic = []byte{0, 'a', 's', 'm', 1, 0, 0, 0}

// Parse reads the outline of b. It fails on what is cut off or contradicts itself.
func Parse(b []byte) (*Outline, error) {
	switch {
	case len(b) < 8 || !bytes.Equal(b[:4], magic[:4]):
		return nil, ErrNotWasm
	case b[6] != 0 || b[7] != 0:
		return nil, ErrComponent
	case !bytes.Equal(b[:8], magic):
		return nil, fmt.Errorf("unknown version %d of the module format", b[4])
	}
	o := &Outline{Custom: map[string][]byte{}}
	r := &reader{b: b, at: 8}
	for r.at < len(b) && r.err == nil {
		id := r.byte()
		body := r.take(r.u32())
		if r.err != nil {
			break
		}
		s := &reader{b: body}
		o.section(id, s)
		if s.err != nil {
			return nil, fmt.Errorf("section %d: %w", id, s.err)
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	return o, nil
}

func (o *Outline) section(id byte, r *reader) {
	switch id {
	case secCustom:
		name := r.name()
		if _, had := o.Custom[name]; !had && r.err == nil {
			o.Custom[name] = r.b[r.at:]
		}
	case secType:
		r.each(func() { o.types = append(o.types, r.signature()) })
	case secImport:
		r.each(func() { o.imported(r) })
	case secFunction:
		r.each(func() { o.Functions++; o.functions = append(o.functions, o.typeAt(r, r.u32())) })
	case secTable:
		r.each(func() { o.table(r) })
	case secMemory:
		r.each(func() { o.memory(r) })
	case secExport:
		r.each(func() { o.exported(r) })
	case secCode:
		o.CodeBytes = len(r.b)
		r.each(func() { o.code(r) })
	case secData:
		o.DataBytes = len(r.b)
	}
}

func (o *Outline) typeAt(r *reader, i uint32) Signature {
	if int64(i) >= int64(len(o.types)) {
		r.fail("type %d does not exist", i)
		return ""
	}
	return o.types[i]
}

func (o *Outline) imported(r *reader) {
	im := Import{Module: r.name(), Name: r.name(), Kind: Kind(r.byte())}
	switch im.Kind {
	case Func:
		im.Type = o.typeAt(r, r.u32())
		o.functions = append(o.functions, im.Type)
	case Table:
		o.table(r)
	case Memory:
		o.memory(r)
	case Global:
		r.byte()
		r.byte()
	default:
		r.fail("import of unknown kind %d", im.Kind)
	}
	o.Imports = append(o.Imports, im)
}

func (o *Outline) exported(r *reader) {
	e := Export{Name: r.name(), Kind: Kind(r.byte())}
	i := r.u32()
	if e.Kind == Func && r.err == nil {
		if int64(i) >= int64(len(o.functions)) {
			r.fail("export %q: function %d does not exist", e.Name, i)
			return
		}
		e.Type = o.functions[i]
	}
	o.Exports = append(o.Exports, e)
}

func (o *Outline) table(r *reader) {
	r.byte() // reference type
	o.Tables++
	o.Entries = max(o.Entries, r.limits())
}

func (o *Outline) memory(r *reader) {
	o.Memories++
	o.Pages = max(o.Pages, r.limits())
}

// code reads one body: its size and how many locals it declares.
func (o *Outline) code(r *reader) {
	body := r.take(r.u32())
	o.Body = max(o.Body, len(body))
	b := &reader{b: body}
	locals := uint64(0)
	b.each(func() {
		locals += uint64(b.u32())
		b.byte()
	})
	if b.err != nil {
		r.err = b.err
	}
	o.Locals = max(o.Locals, int(min(locals, math.MaxInt32)))
}
