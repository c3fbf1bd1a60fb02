package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// stat counts what came in under one API key.
type stat struct {
	byStatus sync.Map // int -> *atomic.Int64
	total    atomic.Int64
	inflight atomic.Int64
	peak     atomic.Int64
	bytesIn  atomic.Int64
	models   sync.Map // string -> *atomic.Int64
}

// begin counts one request in and returns the function that counts it out.
func (s *stat) begin(bytes int) (end func()) {
	s.total.Add(1)
	s.bytesIn.Add(int64(bytes))
	n := s.inflight.Add(1)
	for {
		old := s.peak.Load()
		if n <= old || s.peak.CompareAndSwap(old, n) {
			break
		}
	}
	return func() { s.inflight.Add(-1) }
}

func (m *mock) statFor(key string) *stat {
	if s, ok := m.stats.Load(key); ok {
		return s.(*stat)
	}
	s, _ := m.stats.LoadOrStore(key, new(stat))
	return s.(*stat)
}

func bump[K comparable](m *sync.Map, k K) {
	c, ok := m.Load(k)
	if !ok {
		c, _ = m.LoadOrStore(k, new(atomic.Int64))
	}
	c.(*atomic.Int64).Add(1)
}

// row is how one key's counters are shown.
type row struct {
	Total    int64            `json:"total"`
	InFlight int64            `json:"in_flight"`
	Peak     int64            `json:"peak_in_flight"`
	BytesIn  int64            `json:"bytes_in"`
	Status   map[string]int64 `json:"status"`
	Models   map[string]int64 `json:"models"`
}

// The outcomes that are no status.
const (
	wasReset = 0
	wasHung  = -1
)

func (s *stat) row() row {
	o := row{s.total.Load(), s.inflight.Load(), s.peak.Load(), s.bytesIn.Load(), map[string]int64{}, map[string]int64{}}
	s.byStatus.Range(func(c, n any) bool {
		name := strconv.Itoa(c.(int))
		switch c.(int) {
		case wasReset:
			name = "reset"
		case wasHung:
			name = "hang"
		}
		o.Status[name] = n.(*atomic.Int64).Load()
		return true
	})
	s.models.Range(func(c, n any) bool { o.Models[c.(string)] = n.(*atomic.Int64).Load(); return true })
	return o
}

func (m *mock) serveStats(w *conn, r *request) {
	if r.method == "DELETE" || strings.Contains(r.rawQuery, "reset=1") {
		m.stats.Clear()
	}
	out := map[string]row{}
	m.stats.Range(func(k, v any) bool {
		out[k.(string)] = v.(*stat).row()
		return true
	})
	b, err := json.Marshal(out)
	if err != nil {
		w.sized(500, "", []byte(err.Error()))
		return
	}
	w.sized(200, "", b)
}
