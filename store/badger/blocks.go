package badger

import (
	"encoding/binary"

	"github.com/klauspost/compress/s2"

	"github.com/weirgate/weir/store"
)

// Rows are kept in blocks, packed: a row by itself would cost more to keep than the request that it tells of. A block's key is the
// place of its first row.
const (
	packed     = 2        // layout of a block
	blockBytes = 64 << 10 // of rows before they are packed; a larger row has a block of its own
	// maxBlock bounds what a damaged block may claim to hold.
	maxBlock = 2 * (store.MaxRow + blockBytes)
)

// cutBlock returns how many of rows make one block, at least one.
func cutBlock(rows []store.Row) int {
	size := 0
	for i := range rows {
		if size += len(rows[i].Data) + 16; i > 0 && size > blockBytes {
			return i
		}
	}
	return len(rows)
}

// encodeBlock packs rows behind a head that says how many they are and when the latest was.
func encodeBlock(rows []store.Row) []byte {
	size, latest := 0, rows[0].At
	for i := range rows {
		size += len(rows[i].Data) + 16
		latest = max(latest, rows[i].At)
	}
	plain := make([]byte, 0, size)
	for i := range rows {
		plain = binary.AppendVarint(plain, rows[i].At)
		plain = binary.AppendUvarint(plain, uint64(len(rows[i].Data)))
		plain = append(plain, rows[i].Data...)
	}
	head := binary.AppendUvarint([]byte{packed}, uint64(len(rows)))
	head = binary.AppendVarint(head, latest)
	return append(head, s2.Encode(nil, plain)...)
}

// block is a block as it was read; its rows are unpacked only when they are asked for.
type block struct {
	first  store.Seq
	count  int
	latest int64 // Unix milliseconds of the latest row
	body   []byte
}

func (b *block) last() store.Seq { return b.first + store.Seq(b.count) - 1 }

// readBlock reads the head. The body is value's own memory.
func readBlock(key, value []byte) (b block, err error) {
	r := reader{b: value}
	version := r.byte()
	b.count, b.latest = int(r.uvarint()), r.varint()
	if r.err != nil || len(key) < 10 || version != packed || b.count < 1 || b.count > maxBlock {
		return block{}, errDamaged
	}
	b.first, b.body = store.Seq(binary.BigEndian.Uint64(key[len(key)-8:])), r.b
	return b, nil
}

// rows unpacks the rows, oldest first.
func (b *block) rows() ([]store.Row, error) {
	n, err := s2.DecodedLen(b.body)
	if err != nil || n > maxBlock {
		return nil, errDamaged
	}
	plain, err := s2.Decode(nil, b.body)
	if err != nil {
		return nil, errDamaged
	}
	r := reader{b: plain}
	rows := make([]store.Row, 0, min(b.count, len(plain)))
	for i := range b.count {
		row := store.Row{Seq: b.first + store.Seq(i), At: r.varint()}
		row.Data = r.bytes()
		if r.err != nil {
			return nil, errDamaged
		}
		rows = append(rows, row)
	}
	return rows, nil
}
