package record

import (
	"context"
	"errors"
	"fmt"

	"github.com/weirgate/weir/store"
)

// Restore brings the gates to where the journal ends: the latest snapshot, then the events after it. It is called once,
// before Start. A part that cannot be restored does not keep the others from it; all faults are returned together.
func (r *Recorder) Restore(ctx context.Context) error {
	from, faults := r.restoreSnapshot(ctx)
	return errors.Join(faults, r.replay(ctx, from))
}

func (r *Recorder) restoreSnapshot(ctx context.Context) (store.Seq, error) {
	snap, err := r.o.Store.Latest(ctx)
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read the latest snapshot: %w", err)
	}
	var faults []error
	for _, g := range r.o.Gates {
		data, ok := snap.Data[g.Name()]
		if !ok {
			continue
		}
		if err := g.Restore(data); err != nil {
			faults = append(faults, fmt.Errorf("restore gate %s from the snapshot at event %d: %w", g.Name(), snap.Seq, err))
		}
	}
	return snap.Seq, errors.Join(faults...)
}

func (r *Recorder) replay(ctx context.Context, from store.Seq) error {
	var faults []error
	warned, last := map[string]bool{}, from
	for e, err := range r.o.Store.Replay(ctx, from) {
		if err != nil {
			faults = append(faults, fmt.Errorf("replay after event %d: %w", last, err))
			break
		}
		last = e.Seq
		switch useOf(e.Kind) {
		case applied:
			faults = append(faults, r.apply(e)...)
		case unknown:
			if !warned[e.Kind] {
				warned[e.Kind] = true
				r.o.Log.Warn("events of an unknown kind are skipped; a newer version may have written them", "kind", e.Kind, "seq", e.Seq)
			}
		case forPeople:
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.last, last)
	return errors.Join(faults...)
}

func (r *Recorder) apply(e store.Event) (faults []error) {
	for _, g := range r.o.Gates {
		if err := g.Apply(e); err != nil {
			faults = append(faults, fmt.Errorf("apply event %d (%s of %s) to gate %s: %w", e.Seq, e.Kind, e.Key, g.Name(), err))
		}
	}
	return faults
}
