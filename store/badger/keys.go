package badger

import (
	"bytes"
	"encoding/binary"
	"errors"

	"github.com/weirgate/weir/store"
)

// Every key begins with one byte that says what it is.
const (
	prefixDocument = 'd' // kind, 0, id
	prefixEvent    = 'e' // seq
	prefixSnapshot = 's' // generation, part
	prefixMeta     = 'm' // name
	prefixRow      = 'r' // table, 0, seq
	prefixTable    = 't' // table: the Seq up to which its rows are gone
)

var (
	metaSchema   = []byte("mschema")
	metaSnapshot = []byte("msnapshot")
	metaPruned   = []byte("mpruned")
	metaFence    = []byte("mfence")
	metaLastDoc  = []byte("mlastdoc")
)

var errDamaged = errors.New("a record of the store is damaged")

func documentKey(kind, id string) []byte {
	return append(append(append([]byte{prefixDocument}, kind...), 0), id...)
}

func eventKey(seq store.Seq) []byte {
	return binary.BigEndian.AppendUint64([]byte{prefixEvent}, uint64(seq))
}

func eventSeq(key []byte) store.Seq {
	return store.Seq(binary.BigEndian.Uint64(key[1:]))
}

func partKey(generation uint64, part uint32) []byte {
	return binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint64([]byte{prefixSnapshot}, generation), part)
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func parseNumber(b []byte) (uint64, error) {
	if len(b) != 8 {
		return 0, errDamaged
	}
	return binary.BigEndian.Uint64(b), nil
}

// Records begin with the version of their layout.
const layout = 1

func encodeDocument(d store.Document) []byte {
	b := make([]byte, 0, 48+len(d.Data))
	b = append(b, layout, flag(d.Deleted))
	b = binary.AppendUvarint(b, d.Revision)
	b = binary.AppendUvarint(b, uint64(d.Seq))
	b = binary.AppendVarint(b, d.Created)
	b = binary.AppendVarint(b, d.Updated)
	return append(b, d.Data...)
}

func flag(v bool) byte {
	if v {
		return 1
	}
	return 0
}

func decodeDocument(key, value []byte) (store.Document, error) {
	kind, id, ok := bytes.Cut(key[1:], []byte{0})
	r := reader{b: value}
	if version := r.byte(); !ok || version != layout {
		return store.Document{}, errDamaged
	}
	d := store.Document{Kind: string(kind), ID: string(id), Deleted: r.byte() == 1}
	d.Revision, d.Seq = r.uvarint(), store.Seq(r.uvarint())
	d.Created, d.Updated = r.varint(), r.varint()
	if !d.Deleted {
		d.Data = append([]byte{}, r.b...)
	}
	return d, r.err
}

func encodeEvent(e *store.Event) []byte {
	b := make([]byte, 0, 64+e.Size())
	b = append(b, layout)
	b = binary.AppendVarint(b, e.At)
	b = binary.AppendUvarint(b, e.Revision)
	b = binary.AppendVarint(b, int64(e.Version))
	for _, text := range []string{e.Kind, e.Key, e.Node, e.Provider, e.ConnectionID, e.Model, e.RequestID} {
		b = appendBytes(b, text)
	}
	return append(b, e.Data...)
}

func decodeEvent(key, value []byte) (store.Event, error) {
	r := reader{b: value}
	if version := r.byte(); len(key) != 9 || version != layout {
		return store.Event{}, errDamaged
	}
	e := store.Event{Seq: eventSeq(key), At: r.varint(), Revision: r.uvarint(), Version: int(r.varint())}
	for _, text := range []*string{&e.Kind, &e.Key, &e.Node, &e.Provider, &e.ConnectionID, &e.Model, &e.RequestID} {
		*text = string(r.bytes())
	}
	e.Data = bytes.Clone(r.b)
	return e, r.err
}

func encodeSnapshot(s store.Snapshot) []byte {
	b := []byte{layout}
	b = binary.AppendUvarint(b, uint64(s.Seq))
	b = binary.AppendVarint(b, s.At)
	for name, data := range s.Data {
		b = appendBytes(appendBytes(b, name), data)
	}
	return b
}

func decodeSnapshot(value []byte) (store.Snapshot, error) {
	r := reader{b: value}
	if r.byte() != layout {
		return store.Snapshot{}, errDamaged
	}
	s := store.Snapshot{Seq: store.Seq(r.uvarint()), At: r.varint(), Data: map[string][]byte{}}
	for len(r.b) > 0 && r.err == nil {
		name := string(r.bytes())
		s.Data[name] = append([]byte{}, r.bytes()...)
	}
	return s, r.err
}

func appendBytes[T string | []byte](b []byte, text T) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// reader takes a record apart; after the first fault everything is empty.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail() { r.b, r.err = nil, errDamaged }

func (r *reader) byte() byte {
	if len(r.b) == 0 {
		r.fail()
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	if n <= 0 {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	v := r.b[:n]
	r.b = r.b[n:]
	return v
}
