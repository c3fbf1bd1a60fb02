package ledger

import (
	"strings"
	"sync"

	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/pricing"
)

// maxTraces is how many requests' gates are remembered (OBJ-18).
const maxTraces = 1000

// traces are the gates of the last requests. The zero value is ready.
type traces struct {
	mu   sync.Mutex
	of   map[string][]dispatch.Gate // by request; guarded by mu
	ids  [maxTraces]string          // a ring; guarded by mu
	next int                        // guarded by mu
}

func (t *traces) add(id string, gates []dispatch.Gate) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[string][]dispatch.Gate{}
	}
	delete(t.of, t.ids[t.next])
	t.ids[t.next], t.of[id] = id, gates
	t.next = (t.next + 1) % maxTraces
}

func (t *traces) get(id string) []dispatch.Gate {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[id]
}

// maxRates bounds the prices that are remembered; models of clients are only passed through.
const maxRates = 4096

// rates remembers the prices of models, since a table is long. The zero value is ready; not for concurrent use.
type rates struct {
	of    *pricing.Table
	known map[priced]*pricing.Rate
}

// priced is what has a price.
type priced struct{ provider, model string }

// find returns the price of a model in the table; nil: it has none.
func (r *rates) find(table *pricing.Table, provider, model string) *pricing.Rate {
	if r.of != table || len(r.known) >= maxRates {
		r.of, r.known = table, map[priced]*pricing.Rate{}
	}
	id := priced{provider, model}
	rate, known := r.known[id]
	if !known {
		rate = table.Find(provider, model)
		r.known[id] = rate
	}
	return rate
}

// half is the first half of a text.
func half(s string) string { return strings.ToValidUTF8(s[:len(s)/2], "") }
