package badger

import "sync"

// group shares one run of a slow function among all who ask while another run is under way (DATA-7). A caller's run always
// starts after its call, so what it wrote before is covered.
type group struct {
	turn sync.Mutex // held by the run

	mu   sync.Mutex
	next *round // guarded by mu; has not started yet
}

type round struct {
	done chan struct{}
	err  error
}

// do returns the outcome of a run of f that started after the call.
func (g *group) do(f func() error) error {
	g.mu.Lock()
	r, leader := g.next, g.next == nil
	if leader {
		r = &round{done: make(chan struct{})}
		g.next = r
	}
	g.mu.Unlock()
	if !leader {
		<-r.done
		return r.err
	}
	g.turn.Lock()
	defer g.turn.Unlock()
	g.mu.Lock()
	g.next = nil
	g.mu.Unlock()
	defer close(r.done)
	r.err = f()
	return r.err
}
