// Package store owns the shape of everything that Weir keeps: documents, the journal of events, snapshots and locks, as
// small interfaces that an embedding program or a later cluster store may implement. It imports the standard library
// only. Implementations pass the suite in store/storetest.
package store

import (
	"context"
	"errors"
	"io"
	"iter"
	"time"
)

// Errors that callers branch on.
var (
	// ErrNotFound: no such document or snapshot.
	ErrNotFound = errors.New("not found")
	// ErrConflict: a document has another revision than the write expected (OBJ-4).
	ErrConflict = errors.New("revision conflict")
	// ErrDegraded: the store has stopped writing to disk and does not acknowledge documents (DATA-5).
	ErrDegraded = errors.New("store degraded")
	// ErrTooLarge: a document or event above the store's limit (DATA-7).
	ErrTooLarge = errors.New("too large")
	// ErrLocked: another process holds this folder (DATA-2), or this lock.
	ErrLocked = errors.New("locked")
	// ErrClosed: the store is closed.
	ErrClosed = errors.New("store closed")
)

// Limits of what a store takes (DATA-7). They are those of the embedded store, whose transaction has to hold a change, and
// every store keeps to them so that a program does not fit one store only.
const (
	// MaxDocument is the most bytes that one document may hold.
	MaxDocument = 1 << 20
	// MaxChange is the most bytes that the documents of one change may hold together.
	MaxChange = 1200 << 10
	// MaxWrites is the most documents in one change.
	MaxWrites = 4096
	// MaxName is the most bytes of a kind and an id together, and of the name of a lock.
	MaxName = 1024
	// MaxEvent is the most bytes that one event may hold, by Event.Size.
	MaxEvent = 256 << 10
)

// Seq numbers what was written, in the order of the store. 0 is before everything.
type Seq uint64

// Document is one stored object. Data is opaque to the store; secrets in it are sealed by the writer.
type Document struct {
	Kind, ID string
	Revision uint64 // from 1, raised by each write of this document
	Data     []byte // nil when Deleted
	Created  int64  // Unix milliseconds
	Updated  int64  // Unix milliseconds
	Deleted  bool   // only in Watch
	Seq      Seq    // place in the order of all document writes
}

// Write is one part of a Change. Deleting what is not there does nothing, unless If says that it must be there.
type Write struct {
	Kind, ID string
	Data     []byte
	Delete   bool
	If       *uint64 // expected revision; 0: must not exist; nil: any
	At       int64   // Unix milliseconds, from the caller's clock
}

// Event is one entry of the journal (OBJ-22). It carries the complete new state of one key, so that applying it twice
// changes nothing, and that key's own revision, so that an older one is dropped.
type Event struct {
	Seq          Seq    `json:"seq"`
	At           int64  `json:"at"` // Unix milliseconds
	Kind         string `json:"kind"`
	Key          string `json:"key"` // which state; unique within the gate that owns Kind
	Revision     uint64 `json:"revision"`
	Node         string `json:"node,omitempty"`
	Provider     string `json:"provider,omitempty"`
	ConnectionID string `json:"connectionId,omitempty"`
	Model        string `json:"model,omitempty"`
	RequestID    string `json:"requestId,omitempty"`
	Data         []byte `json:"data"` // a JSON object
	Version      int    `json:"v"`
}

// Size is how many bytes of text and data the event holds; a store refuses more than MaxEvent.
func (e *Event) Size() int {
	return len(e.Kind) + len(e.Key) + len(e.Node) + len(e.Provider) + len(e.ConnectionID) + len(e.Model) + len(e.RequestID) + len(e.Data)
}

// Snapshot is the state of all gates at one point of the journal.
type Snapshot struct {
	Seq  Seq
	At   int64             // Unix milliseconds
	Data map[string][]byte // by gate name
}

// Journal keeps events in order. Safe for concurrent use.
type Journal interface {
	// Append writes es as one batch and returns the Seq of the last. It is not synced to the disk (DATA-7). The store gives
	// out Seq; that in es is ignored. An event above MaxEvent refuses the whole batch with ErrTooLarge.
	Append(ctx context.Context, es ...Event) (Seq, error)
	// Replay yields the events after after, oldest first.
	Replay(ctx context.Context, after Seq) iter.Seq2[Event, error]
}

// Snapshots keeps the latest snapshot. Safe for concurrent use.
type Snapshots interface {
	Save(ctx context.Context, s Snapshot) error
	// Latest returns ErrNotFound when there is none.
	Latest(ctx context.Context) (Snapshot, error)
}

// Documents keeps documents. Safe for concurrent use. A Change that returned nil survives a kill (DATA-2).
type Documents interface {
	Get(ctx context.Context, kind, id string) (Document, error)
	// Change writes all of ws or none; a stale revision returns ErrConflict. The documents as written are returned in order.
	Change(ctx context.Context, ws ...Write) ([]Document, error)
	List(ctx context.Context, kind string) iter.Seq2[Document, error]
	// Watch yields documents as they change after after, own writes included, until ctx ends. A watcher that is too slow
	// sees the newest state of each document, not every step.
	Watch(ctx context.Context, after Seq) iter.Seq2[Document, error]
}

// Locks fences jobs that may run once only. A fence number rises with every grant.
type Locks interface {
	// Lock returns ErrLocked while another holder's time has not ended.
	Lock(ctx context.Context, name string, ttl time.Duration) (fence uint64, err error)
	// Unlock gives the lock back when fence is the present one; otherwise it does nothing.
	Unlock(ctx context.Context, name string, fence uint64) error
}

// Retention is how long events older than the last snapshot are kept: for Age or for Count events, whichever is less.
type Retention struct {
	Age   time.Duration
	Count int
}

// OrDefault returns r with 7 days and 100,000 events where it says nothing (OBJ-22).
func (r Retention) OrDefault() Retention {
	if r.Age <= 0 {
		r.Age = 7 * 24 * time.Hour
	}
	if r.Count <= 0 {
		r.Count = 100_000
	}
	return r
}

// States of Health.
const (
	StateOK       = "ok"
	StateDegraded = "degraded" // writing to disk has stopped, work goes on in memory (DATA-5)
)

// Notifier is what a store also implements when its health changes by itself. Notify has f called, one call at a time,
// with each new health until stop is called; f must not block and must not call the store's Close.
type Notifier interface {
	Notify(f func(Health)) (stop func())
}

// Health is what /readyz, status and metrics show of a store.
type Health struct {
	Kind  string `json:"kind"`  // memory, badger
	State string `json:"state"` // ok, degraded
	Fault string `json:"fault,omitempty"`
	Bytes int64  `json:"bytes"`
}

// Store is everything together.
type Store interface {
	Journal
	Snapshots
	Documents
	Locks
	Health() Health
	// Prune drops events older than the retention, as the implementation was configured; it does a bounded amount of work.
	Prune(ctx context.Context) error
	io.Closer
}
