// Package record owns the journal of the gateway: it writes what the gates emit, behind the requests and in batches
// (OV-8), takes snapshots so that a start need not replay everything, restores the gates on start (OV-5), and reads the
// journal for people (OBJ-23).
package record

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/store"
)

// Snapshotter is what the recorder asks of a gate; resilience.Gate satisfies it. All methods are safe for concurrent use.
type Snapshotter interface {
	Name() string
	// Apply brings the state of one key to what e says; an older revision and an unknown kind change nothing.
	Apply(e store.Event) error
	Snapshot() ([]byte, error)
	Restore(b []byte) error
}

// Options of a recorder. Only Store is required.
type Options struct {
	Store store.Store
	Gates []Snapshotter
	Log   *slog.Logger     // silent when nil
	Now   func() time.Time // stamps events; time.Now when nil
	Node  string           // stamped on events that carry none

	Delay          time.Duration // how late an event may be written; 50 ms when 0 (OV-8)
	Buffer         int           // events that may wait for the store; 10,000 when 0
	SnapshotEvents int           // events after which a snapshot is taken; 5,000 when 0
	SnapshotEvery  time.Duration // time after which one is taken if anything happened; 5 minutes when 0
	Patience       time.Duration // how long a live reader may leave its channel full; 5 s when 0
}

// Recorder journals events. Safe for concurrent use.
type Recorder struct {
	o       Options
	wake    chan struct{} // the first event waits
	full    chan struct{} // the buffer is half full: do not wait for the delay
	resync  chan struct{} // the store came back: write a snapshot
	stop    chan struct{}
	done    chan struct{}
	readers sync.WaitGroup // live readers; Add only under mu and before stopping
	dropped atomic.Uint64

	mu       sync.Mutex
	buffer   []store.Event // guarded by mu
	oldest   time.Time     // guarded by mu: since when the first event waits
	started  bool          // guarded by mu
	stopping bool          // guarded by mu
	written  chan struct{} // guarded by mu: closed and replaced when the journal has grown
	last     store.Seq     // guarded by mu: newest event that is in the journal and in the gates

	writing  sync.Mutex // one flush or snapshot at a time, so that batches keep their order
	since    int        // guarded by writing: events written since the last snapshot
	missing  bool       // guarded by writing: events were lost that only a snapshot can make good
	reported uint64     // guarded by writing: how many of dropped were noticed
}

// New returns a recorder that keeps events until Start.
func New(o Options) *Recorder {
	if o.Log == nil {
		o.Log = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	orDefault(&o.Delay, 50*time.Millisecond)
	orDefault(&o.Buffer, 10_000)
	orDefault(&o.SnapshotEvents, 5_000)
	orDefault(&o.SnapshotEvery, 5*time.Minute)
	orDefault(&o.Patience, 5*time.Second)
	return &Recorder{
		o: o, wake: make(chan struct{}, 1), full: make(chan struct{}, 1), resync: make(chan struct{}, 1),
		stop: make(chan struct{}), done: make(chan struct{}), written: make(chan struct{}),
	}
}

func orDefault[T int | time.Duration](v *T, value T) {
	if *v <= 0 {
		*v = value
	}
}

// Append takes events for the journal. It never blocks: what does not fit into the buffer, or is larger than a store
// takes, is dropped and counted, and the next snapshot makes good for it.
func (r *Recorder) Append(es ...store.Event) {
	if len(es) == 0 {
		return
	}
	now := r.o.Now().UnixMilli()
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range es {
		if r.stopping || len(r.buffer) >= r.o.Buffer || e.Size() > store.MaxEvent {
			r.dropped.Add(1)
			signal(r.wake) // so that it is noticed
			continue
		}
		if e.At == 0 {
			e.At = now
		}
		if e.Node == "" {
			e.Node = r.o.Node
		}
		if e.Version == 0 {
			e.Version = 1
		}
		if len(r.buffer) == 0 {
			r.oldest = time.Now()
			signal(r.wake)
		}
		r.buffer = append(r.buffer, e)
	}
	if len(r.buffer) > r.o.Buffer/2 {
		signal(r.full)
	}
}

// Dropped counts events that never reached the journal.
func (r *Recorder) Dropped() uint64 { return r.dropped.Load() }

// Last is the newest event in the journal.
func (r *Recorder) Last() store.Seq {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.last
}

// Start writes in the background until Stop. A second call does nothing.
func (r *Recorder) Start() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.started || r.stopping {
		return
	}
	r.started = true
	unwatch := r.watchStore()
	go func() {
		defer close(r.done)
		defer unwatch()
		r.run()
	}()
}

// Stop writes what is buffered and a last snapshot, ends the live readers, and waits for all of them, or for ctx. Events
// that arrive later are dropped and counted. A second call only waits.
func (r *Recorder) Stop(ctx context.Context) error {
	r.mu.Lock()
	if !r.stopping {
		r.stopping = true
		close(r.stop)
		if !r.started {
			close(r.done)
		}
	}
	r.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		<-r.done
		r.readers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return errors.Join(errors.New("the journal was not written to its end in the time given"), ctx.Err())
	}
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
