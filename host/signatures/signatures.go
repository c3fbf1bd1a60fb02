// Package signatures owns what a model wants back with its call of a tool although the client's dialect has no place for it (TR-19). It
// remembers by the id of the call, bounded, and writes behind.
package signatures

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/weirgate/weir/store"
)

// Bounds of the memory: the calls that were used last stay.
const (
	maxCalls = 5000
	maxBytes = 8 << 20
	maxValue = 64 << 10
)

// kind is that of the documents; an id is the digest of a call's.
const kind = "call-signature"

// period is how often what is new is written.
const period = 5 * time.Second

// Memory holds signatures by the ids of calls. Safe for concurrent use.
type Memory struct {
	docs store.Documents
	now  func() time.Time
	warn func(text string, args ...any)

	mu    sync.Mutex
	of    map[string]*list.Element // by digest; guarded by mu
	order *list.List               // of *entry, the latest used first; guarded by mu
	bytes int                      // guarded by mu
	dirty map[string]bool          // digests whose documents are not as the memory is; guarded by mu
}

type entry struct{ id, value string }

// New makes an empty memory that keeps its documents in docs. warn hears of writes that failed.
func New(docs store.Documents, now func() time.Time, warn func(text string, args ...any)) *Memory {
	return &Memory{docs: docs, now: now, warn: warn, of: map[string]*list.Element{}, order: list.New(), dirty: map[string]bool{}}
}

// Load reads what an earlier run kept.
func (m *Memory) Load(ctx context.Context) error {
	for doc, err := range m.docs.List(ctx, kind) {
		if err != nil {
			return err
		}
		m.mu.Lock()
		m.put(doc.ID, string(doc.Data))
		m.mu.Unlock()
	}
	return nil
}

// Keep remembers the signature of a call. It does not block on the store.
func (m *Memory) Keep(call, value string) {
	if value == "" || len(value) > maxValue {
		return
	}
	id := digest(call)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.put(id, value)
	m.dirty[id] = true
}

// put sets a value and drops those that were not used for longest. The caller holds mu.
func (m *Memory) put(id, value string) {
	if e, ok := m.of[id]; ok {
		m.bytes += len(value) - len(e.Value.(*entry).value)
		e.Value.(*entry).value = value
		m.order.MoveToFront(e)
	} else {
		m.of[id] = m.order.PushFront(&entry{id, value})
		m.bytes += len(value)
	}
	for len(m.of) > maxCalls || m.bytes > maxBytes {
		last := m.order.Back()
		e := m.order.Remove(last).(*entry)
		delete(m.of, e.id)
		m.bytes -= len(e.value)
		m.dirty[e.id] = true
	}
}

// Find returns the signature of a call.
func (m *Memory) Find(call string) (value string, ok bool) {
	id := digest(call)
	m.mu.Lock()
	defer m.mu.Unlock()
	e, ok := m.of[id]
	if !ok {
		return "", false
	}
	m.order.MoveToFront(e)
	return e.Value.(*entry).value, true
}

// Run writes behind the requests until ctx ends, and then once more.
func (m *Memory) Run(ctx context.Context) {
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			m.Save(context.WithoutCancel(ctx))
			return
		case <-tick.C:
			m.Save(ctx)
		}
	}
}

// batch bounds one write.
const batch = 200

// Save writes what changed since the last time. What could not be written is tried again the next time.
func (m *Memory) Save(ctx context.Context) {
	for {
		ws := m.changes()
		if len(ws) == 0 {
			return
		}
		if _, err := m.docs.Change(ctx, ws...); err != nil {
			m.mu.Lock()
			for _, w := range ws {
				m.dirty[w.ID] = true
			}
			m.mu.Unlock()
			m.warn("signatures of tool calls were not stored", "error", err.Error())
			return
		}
	}
}

func (m *Memory) changes() (ws []store.Write) {
	at := m.now().UnixMilli()
	m.mu.Lock()
	defer m.mu.Unlock()
	for id := range m.dirty {
		if len(ws) == batch {
			break
		}
		delete(m.dirty, id)
		w := store.Write{Kind: kind, ID: id, Delete: true, At: at}
		if e, ok := m.of[id]; ok {
			w.Delete, w.Data = false, []byte(e.Value.(*entry).value)
		}
		ws = append(ws, w)
	}
	return ws
}

func digest(call string) string {
	sum := sha256.Sum256([]byte(call))
	return hex.EncodeToString(sum[:16])
}
