package host

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/store"
)

// The kinds of documents for what changes by itself. They are apart from the objects, so that a use or a test moves no
// revision.
const (
	docKeyUse = "key-use"
	docTest   = "connection-test"
)

// notes remembers when keys were used and what connection tests heard. It writes behind, at most once a minute per key.
type notes struct {
	store store.Store
	warn  func(text string, args ...any)

	mu    sync.Mutex
	used  map[string]time.Time // by key id; guarded by mu
	saved map[string]time.Time // what the store has; guarded by mu
	tests map[string]testNote  // by connection id; guarded by mu
}

type testNote struct {
	At     time.Time `json:"at"`
	Models []string  `json:"models"`
}

type useNote struct {
	At time.Time `json:"at"`
}

// loadNotes reads what an earlier run noted.
func loadNotes(ctx context.Context, st store.Store, warn func(string, ...any)) (*notes, error) {
	n := &notes{store: st, warn: warn, used: map[string]time.Time{}, saved: map[string]time.Time{}, tests: map[string]testNote{}}
	for doc, err := range st.List(ctx, docKeyUse) {
		if err != nil {
			return nil, err
		}
		var u useNote
		if json.Unmarshal(doc.Data, &u) == nil {
			n.used[doc.ID], n.saved[doc.ID] = u.At, u.At
		}
	}
	for doc, err := range st.List(ctx, docTest) {
		if err != nil {
			return nil, err
		}
		var t testNote
		if json.Unmarshal(doc.Data, &t) == nil {
			n.tests[doc.ID] = t
		}
	}
	return n, nil
}

func (n *notes) use(k *catalog.Key, now time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.used[k.ID] = now
}

func (n *notes) keyUsed(id string) time.Time {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.used[id]
}

// usePeriod is how often a key's last use is written (OBJ-14).
const usePeriod = time.Minute

// keep writes the uses behind the requests until ctx ends, and then once more.
func (n *notes) keep(ctx context.Context) {
	tick := time.NewTicker(usePeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			n.save(context.WithoutCancel(ctx))
			return
		case <-tick.C:
			n.save(ctx)
		}
	}
}

func (n *notes) save(ctx context.Context) {
	var ws []store.Write
	n.mu.Lock()
	for id, at := range n.used {
		if at.After(n.saved[id]) {
			ws = append(ws, noteWrite(docKeyUse, id, at, useNote{at}))
			n.saved[id] = at
		}
	}
	n.mu.Unlock()
	if len(ws) == 0 {
		return
	}
	if _, err := n.store.Change(ctx, ws...); err != nil {
		n.warn("the last use of client keys was not stored", "error", err.Error())
	}
}

func noteWrite(kind, id string, at time.Time, v any) store.Write {
	b, err := json.Marshal(v)
	if err != nil { // times and texts always encode
		b = []byte("{}")
	}
	return store.Write{Kind: kind, ID: id, Data: b, At: at.UnixMilli()}
}

func (n *notes) test(ctx context.Context, id string, at time.Time, models []string) {
	n.mu.Lock()
	t := testNote{At: at, Models: models}
	if models == nil {
		t.Models = n.tests[id].Models
	}
	n.tests[id] = t
	n.mu.Unlock()
	if _, err := n.store.Change(ctx, noteWrite(docTest, id, at, t)); err != nil {
		n.warn("the result of a connection test was not stored", "connection", id, "error", err.Error())
	}
}

func (n *notes) tested(id string) (at time.Time, models int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	t := n.tests[id]
	return t.At, len(t.Models)
}

// heard are the model ids that the last test of a connection brought.
func (n *notes) heard(id string) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.tests[id].Models
}
