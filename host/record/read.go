package record

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/weirgate/weir/store"
)

// Bounds of Filter.Limit (OBJ-3).
const (
	DefaultLimit = 200
	MaxLimit     = 1000
)

// Filter chooses events; an empty field chooses all.
type Filter struct {
	After                        store.Seq
	Since                        time.Time
	Kind, Provider, ConnectionID string
	Limit                        int // DefaultLimit when 0, at most MaxLimit
}

// Match says whether e is chosen, whatever its Seq.
func (f Filter) Match(e store.Event) bool {
	return (f.Kind == "" || e.Kind == f.Kind) &&
		(f.Provider == "" || e.Provider == f.Provider) &&
		(f.ConnectionID == "" || e.ConnectionID == f.ConnectionID) &&
		(f.Since.IsZero() || e.At >= f.Since.UnixMilli())
}

// Events returns the first events that f chooses, oldest first, and next, the After of the call that goes on from there
// (OBJ-23).
func (r *Recorder) Events(ctx context.Context, f Filter) (events []store.Event, next store.Seq, err error) {
	limit := f.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	limit = min(limit, MaxLimit)
	events, next = []store.Event{}, f.After
	for e, err := range r.o.Store.Replay(ctx, f.After) {
		if err != nil {
			return nil, f.After, fmt.Errorf("read the journal after event %d: %w", next, err)
		}
		next = e.Seq
		if f.Match(e) {
			if events = append(events, e); len(events) == limit {
				break
			}
		}
	}
	return events, next, nil
}

// Subscribe sends every event after after, old ones first and then as they are written. The channel closes when the reader
// leaves it full for longer than Patience (it is cut off, nobody waits for it), at Stop, and after cancel, which a reader
// calls when it is done. A reader that was cut off may subscribe again after the last event it saw.
func (r *Recorder) Subscribe(after store.Seq) (events <-chan store.Event, cancel func()) {
	out := make(chan store.Event, 64)
	ctx, cancel := context.WithCancel(context.Background())
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stopping {
		close(out)
		return out, cancel
	}
	r.readers.Go(func() {
		defer close(out)
		defer cancel()
		r.follow(ctx, after, out)
	})
	return out, cancel
}

func (r *Recorder) follow(ctx context.Context, after store.Seq, out chan<- store.Event) {
	for {
		r.mu.Lock()
		written := r.written
		r.mu.Unlock()
		for e, err := range r.o.Store.Replay(ctx, after) {
			if errors.Is(err, store.ErrClosed) || ctx.Err() != nil {
				return
			}
			if err != nil {
				r.o.Log.Warn("a live reader waits for the journal", "after", after, "error", err)
				break
			}
			if !r.hand(ctx, e, out) {
				return
			}
			after = e.Seq
		}
		select {
		case <-written:
		case <-ctx.Done():
			return
		case <-r.stop:
			return
		}
	}
}

// hand gives e to a reader that has Patience left.
func (r *Recorder) hand(ctx context.Context, e store.Event, out chan<- store.Event) bool {
	select {
	case out <- e:
		return true
	default:
	}
	timer := time.NewTimer(r.o.Patience)
	defer timer.Stop()
	select {
	case out <- e:
		return true
	case <-timer.C:
	case <-ctx.Done():
	case <-r.stop:
	}
	return false
}
