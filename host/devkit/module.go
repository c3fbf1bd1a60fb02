package devkit

import (
	"encoding/binary"
	"errors"
	"slices"
)

// errCut says that a module that was read before cannot be read now.
var errCut = errors.New("the module's sections cannot be read; copy or build it again")

// without returns the module without its custom sections of that name.
func without(module []byte, name string) ([]byte, error) {
	const header = 8
	if len(module) < header {
		return nil, errCut
	}
	out, rest := slices.Clone(module[:header]), module[header:]
	for len(rest) > 0 {
		size, n := binary.Uvarint(rest[1:])
		if n <= 0 || size > uint64(len(rest)-1-n) {
			return nil, errCut
		}
		end := 1 + n + int(size)
		if rest[0] != 0 || customName(rest[1+n:end]) != name {
			out = append(out, rest[:end]...)
		}
		rest = rest[end:]
	}
	return out, nil
}

// customName is the name that a custom section begins with.
func customName(body []byte) string {
	size, n := binary.Uvarint(body)
	if n <= 0 || size > uint64(len(body)-n) {
		return ""
	}
	return string(body[n : n+int(size)])
}
