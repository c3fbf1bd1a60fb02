package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/weirgate/weir/store"
)

// run is the one goroutine that writes.
func (r *Recorder) run() {
	ctx := context.Background()
	tick := time.NewTicker(r.o.SnapshotEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.wake:
			r.gather()
			r.flush(ctx)
		case <-r.resync:
			r.snapshotOrWarn(ctx)
		case <-tick.C:
			if r.stale(1) {
				r.snapshotOrWarn(ctx)
			}
		case <-r.stop:
			if r.flush(ctx); r.stale(1) {
				r.snapshotOrWarn(ctx)
			}
			return
		}
	}
}

// gather lets more events join the first one, which has waited since oldest.
func (r *Recorder) gather() {
	r.mu.Lock()
	wait := time.Until(r.oldest.Add(r.o.Delay))
	r.mu.Unlock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.full:
	case <-r.stop:
	}
}

// flush writes the buffer as one batch, and a snapshot when enough has happened since the last one.
func (r *Recorder) flush(ctx context.Context) {
	r.writing.Lock()
	err := r.write(ctx)
	r.writing.Unlock()
	if err == nil && r.stale(r.o.SnapshotEvents) {
		r.snapshotOrWarn(ctx)
	}
}

// write is called with writing held.
func (r *Recorder) write(ctx context.Context) error {
	r.mu.Lock()
	batch := r.buffer
	r.buffer = nil
	r.mu.Unlock()
	if dropped := r.dropped.Load(); dropped != r.reported {
		r.o.Log.Warn("events did not reach the journal; a snapshot makes good for them", "events", dropped-r.reported)
		r.reported, r.missing = dropped, true
	}
	if len(batch) == 0 {
		return nil
	}
	last, err := r.o.Store.Append(ctx, batch...)
	if err != nil {
		r.reported += uint64(len(batch))
		r.dropped.Add(uint64(len(batch)))
		r.missing = true
		r.o.Log.Warn("events could not be written to the journal", "events", len(batch), "error", err)
		return err
	}
	r.since += len(batch)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.last = max(r.last, last)
	close(r.written)
	r.written = make(chan struct{})
	return nil
}

// stale says that events events, or lost ones, are not in the last snapshot.
func (r *Recorder) stale(events int) bool {
	r.writing.Lock()
	defer r.writing.Unlock()
	return r.missing || r.since >= events
}

func (r *Recorder) snapshotOrWarn(ctx context.Context) {
	if err := r.Snapshot(ctx); err != nil && !errors.Is(err, store.ErrClosed) {
		r.o.Log.Warn("no snapshot was taken", "error", err)
	}
}

// Snapshot writes the buffer, and then the state of all gates. The state is read after the journal was written, so it
// holds at least what the journal says up to there; what it holds beyond is replayed once more and changes nothing.
func (r *Recorder) Snapshot(ctx context.Context) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	journaled := r.write(ctx)
	snap := store.Snapshot{Seq: r.Last(), At: r.o.Now().UnixMilli(), Data: make(map[string][]byte, len(r.o.Gates))}
	for _, g := range r.o.Gates {
		data, err := g.Snapshot()
		if err != nil {
			return fmt.Errorf("snapshot of gate %s: %w", g.Name(), err)
		}
		snap.Data[g.Name()] = data
	}
	if err := r.o.Store.Save(ctx, snap); err != nil {
		return errors.Join(journaled, err)
	}
	r.since, r.missing = 0, false
	return journaled
}

// watchStore has the recorder told when the store stops and resumes writing to disk: people see it in the journal, and
// after a time in memory the disk needs a snapshot (DATA-5).
func (r *Recorder) watchStore() (stop func()) {
	n, ok := r.o.Store.(store.Notifier)
	if !ok {
		return func() {}
	}
	return n.Notify(func(h store.Health) {
		data, err := json.Marshal(h)
		if err != nil {
			data = []byte("{}")
		}
		r.Append(store.Event{Kind: KindStoreDegraded, Key: "store", Data: data})
		if h.State == store.StateOK {
			signal(r.resync)
		}
	})
}
