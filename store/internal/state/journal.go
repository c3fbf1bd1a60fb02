package state

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"math"
	"slices"
	"sync"

	"github.com/weirgate/weir/store"
)

// Journal keeps the newest events in memory, at most Limit of them. Safe for concurrent use.
type Journal struct {
	limit int

	mu     sync.RWMutex
	events []store.Event // ascending by Seq
	last   store.Seq
	bytes  int64
	closed bool
}

// NewJournal returns a journal whose first event gets the Seq after last and that drops the oldest above limit.
func NewJournal(last store.Seq, limit int) *Journal {
	return &Journal{last: last, limit: limit}
}

// CheckEvents returns ErrTooLarge when one of es is above the limit.
func CheckEvents(es []store.Event) error {
	for i := range es {
		if size := es[i].Size(); size > store.MaxEvent {
			return fmt.Errorf("event %.60s of %.60q with %d bytes is %w: the limit is %d", es[i].Kind, es[i].Key, size, store.ErrTooLarge, store.MaxEvent)
		}
	}
	return nil
}

// Append numbers es and keeps copies; it returns the Seq of the last.
func (j *Journal) Append(es ...store.Event) (store.Seq, error) {
	if err := CheckEvents(es); err != nil {
		return 0, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return 0, store.ErrClosed
	}
	for _, e := range es {
		j.last++
		e.Seq, e.Data = j.last, slices.Clone(e.Data)
		j.events = append(j.events, e)
		j.bytes += int64(e.Size())
	}
	j.drop(len(j.events) - j.limit)
	return j.last, nil
}

// Load takes events that are numbered already, oldest first, before anything else happens.
func (j *Journal) Load(es []store.Event) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i := range es {
		j.last = es[i].Seq
		j.bytes += int64(es[i].Size())
	}
	j.events = append(j.events, es...)
	j.drop(len(j.events) - j.limit)
}

// drop forgets the n oldest. The array behind moves on by itself when it is full.
func (j *Journal) drop(n int) {
	if n <= 0 {
		return
	}
	for i := range j.events[:n] {
		j.bytes -= int64(j.events[i].Size())
		j.events[i] = store.Event{}
	}
	j.events = j.events[n:]
}

// Replay yields the events after after that are still kept.
func (j *Journal) Replay(ctx context.Context, after store.Seq) iter.Seq2[store.Event, error] {
	return Pages(ctx, after, j.Read)
}

// Read returns the first events after after, at most one page.
func (j *Journal) Read(after store.Seq) ([]store.Event, error) {
	j.mu.RLock()
	defer j.mu.RUnlock()
	if j.closed {
		return nil, store.ErrClosed
	}
	i, _ := slices.BinarySearchFunc(j.events, after+1, func(e store.Event, seq store.Seq) int { return cmp.Compare(e.Seq, seq) })
	out := slices.Clone(j.events[i:min(len(j.events), i+page)])
	for k := range out {
		out[k].Data = slices.Clone(out[k].Data)
	}
	return out, nil
}

// Pages makes an iterator of read, which returns the first events after a Seq, and none at the end. No lock of read is
// held while the caller works.
func Pages(ctx context.Context, after store.Seq, read func(after store.Seq) ([]store.Event, error)) iter.Seq2[store.Event, error] {
	return func(yield func(store.Event, error) bool) {
		for after < math.MaxUint64 { // the Seq behind that would be 0, where the journal begins
			es, err := read(after)
			if err == nil {
				err = ctx.Err()
			}
			if err != nil {
				yield(store.Event{}, err)
				return
			}
			if len(es) == 0 {
				return
			}
			for _, e := range es {
				if !yield(e, nil) {
					return
				}
				after = e.Seq
			}
		}
	}
}

// Last is the Seq of the newest event ever appended.
func (j *Journal) Last() store.Seq {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.last
}

// Bytes is the size of the events kept.
func (j *Journal) Bytes() int64 {
	j.mu.RLock()
	defer j.mu.RUnlock()
	return j.bytes
}

// Prune drops up to limit events that are no newer than snapshot and that are either among the first up to beyond or from
// before before.
func (j *Journal) Prune(snapshot, beyond store.Seq, before int64, limit int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := 0
	for n < len(j.events) && n < limit && Expired(&j.events[n], snapshot, beyond, before) {
		n++
	}
	j.drop(n)
}

// Expired says whether an event may go: no newer than the snapshot, and either up to beyond or from before before.
func Expired(e *store.Event, snapshot, beyond store.Seq, before int64) bool {
	return e.Seq <= snapshot && (e.Seq <= beyond || e.At < before)
}

// Close has later calls return ErrClosed.
func (j *Journal) Close() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.closed = true
}
