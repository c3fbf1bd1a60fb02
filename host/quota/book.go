package quota

import (
	"math"
	"slices"
	"sync"
	"time"
)

// Headers is the source of a snapshot that was learned from answers.
const Headers = "headers"

// Snapshot is what is known of one connection (OBJ-20).
type Snapshot struct {
	ConnectionID string   `json:"connectionId"`
	At           string   `json:"at"`
	Source       string   `json:"source"`
	Windows      []Window `json:"windows"` // by name
}

// Window is one limit of an account.
type Window struct {
	Name        string   `json:"name"` // 5h, 7d, 7d:<model>, daily, weekly, monthly, credits; requests, tokens and the like of rate limits
	UsedPercent *float64 `json:"usedPercent"`
	Remaining   *float64 `json:"remaining"`
	Limit       *float64 `json:"limit"`
	ResetsAt    *string  `json:"resetsAt"`
}

// maxWindows bounds what is kept of one connection, maxConnections of how many: names come from outside.
const (
	maxWindows     = 16
	maxConnections = 10_000
)

// unknown is a number that nobody stated.
const unknown = -1

// window is a Window as it is kept.
type window struct {
	name                   string
	used, remaining, limit float64 // unknown: not stated
	resets                 int64   // Unix milliseconds; 0: not stated
	at                     int64   // Unix milliseconds of the answer that said so
}

// Book is the snapshots of all connections. The zero value is ready; safe for concurrent use. Nothing in it waits for a disk.
type Book struct {
	mu sync.RWMutex
	of map[string]*page // by connection; guarded by mu
}

// page is one connection's windows.
type page struct {
	mu    sync.Mutex
	n     int
	w     [maxWindows]window
	at    int64
	dirty bool // not stored as it is; guarded by mu, as are the others
}

// page returns a connection's page; nil when there is none and none is to be made.
func (b *Book) page(connection string, create bool) *page {
	b.mu.RLock()
	p := b.of[connection]
	b.mu.RUnlock()
	if p != nil || !create {
		return p
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.of == nil {
		b.of = map[string]*page{}
	}
	if p = b.of[connection]; p == nil {
		if len(b.of) >= maxConnections {
			return nil
		}
		p = &page{}
		b.of[connection] = p
	}
	return p
}

// named is the window of that name, made when there is room; else nil. It needs mu held.
func (p *page) named(name string) *window {
	for i := range p.n {
		if p.w[i].name == name {
			return &p.w[i]
		}
	}
	if p.n == maxWindows {
		return nil
	}
	p.w[p.n] = window{name: name, used: unknown, remaining: unknown, limit: unknown}
	p.n++
	return &p.w[p.n-1]
}

// usedPercent is how much of a window is used, unknown when it cannot be told.
func (w *window) usedPercent() float64 {
	switch {
	case w.used >= 0:
		return min(w.used, 100)
	case w.limit > 0 && w.remaining >= 0:
		return min(max(100*(1-w.remaining/w.limit), 0), 100)
	case w.remaining == 0:
		return 100
	}
	return unknown
}

// fresh is how long a window that names no end is believed.
const fresh = time.Hour

// Headroom is the percentage that is left in the tightest window of a connection, 0 to 100; false: nothing is known. A window whose end
// has passed is full again.
func (b *Book) Headroom(connection string, now time.Time) (percent float64, known bool) {
	p := b.page(connection, false)
	if p == nil {
		return 0, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	at := now.UnixMilli()
	percent = 100
	for i := range p.n {
		w := &p.w[i]
		used := w.usedPercent()
		switch {
		case used < 0, w.resets == 0 && at-w.at > fresh.Milliseconds():
			continue
		case w.resets != 0 && w.resets <= at:
			used = 0
		}
		known, percent = true, min(percent, 100-used)
	}
	return percent, known
}

// Snapshot is what is known of a connection; false: nothing.
func (b *Book) Snapshot(connection string) (Snapshot, bool) {
	p := b.page(connection, false)
	if p == nil {
		return Snapshot{}, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.snapshot(connection), true
}

func (p *page) snapshot(connection string) Snapshot {
	s := Snapshot{ConnectionID: connection, At: stamp(p.at), Source: Headers, Windows: []Window{}}
	for i := range p.n {
		w := &p.w[i]
		out := Window{Name: w.name, Remaining: stated(w.remaining), Limit: stated(w.limit)}
		if used := w.usedPercent(); used >= 0 {
			out.UsedPercent = stated(math.Round(used*10) / 10)
		}
		if w.resets != 0 {
			at := stamp(w.resets)
			out.ResetsAt = &at
		}
		s.Windows = append(s.Windows, out)
	}
	slices.SortFunc(s.Windows, func(a, b Window) int {
		if a.Name < b.Name {
			return -1
		}
		return 1
	})
	return s
}

// Changed returns the snapshots that were learned since the last call, for who stores them.
func (b *Book) Changed() []Snapshot {
	b.mu.RLock()
	defer b.mu.RUnlock()
	var list []Snapshot
	for id, p := range b.of {
		p.mu.Lock()
		if p.dirty {
			p.dirty = false
			list = append(list, p.snapshot(id))
		}
		p.mu.Unlock()
	}
	return list
}

// Restore puts back a snapshot of an earlier run. What has been learned since stays.
func (b *Book) Restore(s Snapshot) {
	at, err := time.Parse(time.RFC3339, s.At)
	p := b.page(s.ConnectionID, true)
	if err != nil || p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n > 0 {
		return
	}
	p.at = at.UnixMilli()
	for _, x := range s.Windows {
		w := p.named(x.Name)
		if w == nil {
			return
		}
		w.used, w.remaining, w.limit, w.at = read(x.UsedPercent), read(x.Remaining), read(x.Limit), p.at
		if x.ResetsAt != nil {
			if t, err := time.Parse(time.RFC3339, *x.ResetsAt); err == nil {
				w.resets = t.UnixMilli()
			}
		}
	}
}

// Forget drops what is known of a connection (OBJ-7).
func (b *Book) Forget(connection string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.of, connection)
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

func stated(v float64) *float64 {
	if v < 0 {
		return nil
	}
	return &v
}

func read(v *float64) float64 {
	if v == nil || *v < 0 || math.IsNaN(*v) {
		return unknown
	}
	return *v
}
