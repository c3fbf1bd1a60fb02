package record_test

import (
	"context"
	"encoding/json"
	"maps"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirgate/weir/host/record"
	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// gate keeps the newest revision of each key.
type gate struct {
	mu    sync.Mutex
	state map[string]cell
	fault error
}

type cell struct {
	Revision uint64
	Text     string
}

func newGate() *gate { return &gate{state: map[string]cell{}} }

func (g *gate) Name() string { return "gate" }

// move changes the state, as Settle would, and returns the event.
func (g *gate) move(key, text string) store.Event {
	g.mu.Lock()
	defer g.mu.Unlock()
	c := cell{Revision: g.state[key].Revision + 1, Text: text}
	g.state[key] = c
	return store.Event{Kind: record.KindCooldown, Key: key, Revision: c.Revision, Provider: "openai", ConnectionID: key, Data: []byte(text)}
}

func (g *gate) Apply(e store.Event) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if e.Revision > g.state[e.Key].Revision {
		g.state[e.Key] = cell{e.Revision, string(e.Data)}
	}
	return g.fault
}

func (g *gate) Snapshot() ([]byte, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fault != nil {
		return nil, g.fault
	}
	return json.Marshal(g.state)
}

func (g *gate) Restore(b []byte) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fault != nil {
		return g.fault
	}
	return json.Unmarshal(b, &g.state)
}

func (g *gate) now() map[string]cell {
	g.mu.Lock()
	defer g.mu.Unlock()
	return maps.Clone(g.state)
}

// spy is a store that remembers when which batch came, and fails, hangs and degrades on command.
type spy struct {
	store.Store
	mu      sync.Mutex
	batches []batch
	saves   []store.Snapshot
	fault   error
	hang    chan struct{}
	notify  func(store.Health)
}

type batch struct {
	at     time.Time
	events []store.Event
}

func newSpy() *spy { return &spy{Store: memory.New(memory.Options{})} }

func (s *spy) Append(ctx context.Context, es ...store.Event) (store.Seq, error) {
	s.mu.Lock()
	fault, hang := s.fault, s.hang
	s.batches = append(s.batches, batch{time.Now(), es})
	s.mu.Unlock()
	if hang != nil {
		<-hang
	}
	if fault != nil {
		return 0, fault
	}
	return s.Store.Append(ctx, es...)
}

func (s *spy) Save(ctx context.Context, snap store.Snapshot) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fault != nil {
		return s.fault
	}
	s.saves = append(s.saves, snap)
	return s.Store.Save(ctx, snap)
}

func (s *spy) Notify(f func(store.Health)) (stop func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.notify = f
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.notify = nil
	}
}

func (s *spy) setFault(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = err
}

func (s *spy) written() (batches []batch, saves []store.Snapshot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]batch{}, s.batches...), append([]store.Snapshot{}, s.saves...)
}

func stop(t *testing.T, r *record.Recorder) {
	t.Helper()
	if err := r.Stop(context.Background()); err != nil {
		t.Fatalf("stop: %v", err)
	}
}
