// Package pack turns a manifest into a plugin without a compiler (ABI-2.3): a complete core module of a few kilobytes whose
// describe answers the manifest. It owns the shape of that module and the two custom sections that carry its texts.
package pack

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/weirgate/weir/host/plugin/binary"
)

// The custom sections of a pack.
const (
	SourceSection   = "weir.source"   // the YAML as it was written
	ManifestSection = "weir.manifest" // the manifest as JSON: what describe answers
)

// MaxManifest is the largest answer of describe (ABI-8).
const MaxManifest = 1 << 20

const (
	jsonAt   = 16      // the manifest's address; 0 would read as "no opinion"
	maxInput = 1 << 20 // larger buffers are refused by weir_alloc; the host never needs one
	page     = 1 << 16
)

// Pack writes the module for a manifest in JSON; sourceYAML is kept beside it when it is not empty. The result depends on
// nothing else, so that equal sources have equal digests.
func Pack(manifestJSON, sourceYAML []byte) ([]byte, error) {
	if !json.Valid(manifestJSON) {
		return nil, errors.New("pack: the manifest is not JSON")
	}
	if len(manifestJSON) > MaxManifest {
		return nil, fmt.Errorf("pack: the manifest has %d bytes, at most %d are allowed", len(manifestJSON), MaxManifest)
	}
	buffer := (jsonAt + len(manifestJSON) + 15) &^ 15
	b := []byte{0, 'a', 's', 'm', 1, 0, 0, 0}
	b = section(b, 1, vector(
		[]byte{0x60, 0, 1, i32},            // 0: () -> i32
		[]byte{0x60, 1, i32, 1, i32},       // 1: (i32) -> i32
		[]byte{0x60, 2, i32, i32, 1, i64})) // 2: (i32, i32) -> i64
	b = section(b, 3, []byte{3, 0, 1, 2})
	b = section(b, 5, append([]byte{1, 0}, uleb(nil, uint64(buffer/page+1))...))
	b = section(b, 7, vector(
		export("memory", 2, 0),
		export("weir_abi", 0, 0),
		export("weir_alloc", 0, 1),
		export("weir_call", 0, 2)))
	b = section(b, 10, vector(
		body(constant(nil, 1)),
		body(alloc(buffer)),
		body(call(len(manifestJSON)))))
	data := constant([]byte{0}, jsonAt) // active, memory 0
	data = append(data, end)
	data = append(uleb(data, uint64(len(manifestJSON))), manifestJSON...)
	b = section(b, 11, vector(data))
	b = custom(b, ManifestSection, manifestJSON)
	if len(sourceYAML) > 0 {
		b = custom(b, SourceSection, sourceYAML)
	}
	return b, nil
}

// Manifest returns the manifest that a module carries as data, false when it carries none.
func Manifest(wasm []byte) ([]byte, bool) { return read(wasm, ManifestSection) }

// Source returns the YAML that a pack was made of, false when it carries none.
func Source(wasm []byte) ([]byte, bool) { return read(wasm, SourceSection) }

func read(wasm []byte, name string) ([]byte, bool) {
	o, err := binary.Parse(wasm)
	if err != nil {
		return nil, false
	}
	b, ok := o.Custom[name]
	return b, ok
}
