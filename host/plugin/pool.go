package plugin

import (
	"context"
	"errors"
	"sync"
	"time"
)

// errBusy means that all instances were busy for as long as the call could wait.
var errBusy = errors.New("all instances are busy")

// pool holds the instances of one version: at most as many as its tokens, made when they are needed.
type pool struct {
	tokens chan struct{} // one is held for each instance in use

	mu     sync.Mutex
	idle   []*instance // guarded by mu; the last used is last
	closed bool        // guarded by mu
}

func (p *pool) init(size int) { p.tokens = make(chan struct{}, size) }

// get returns an idle instance or makes one. The caller gives it back with put.
func (p *pool) get(ctx context.Context, fresh func() (*instance, error)) (*instance, error) {
	select {
	case p.tokens <- struct{}{}:
	default:
		select {
		case p.tokens <- struct{}{}:
		case <-ctx.Done():
			return nil, errBusy
		}
	}
	p.mu.Lock()
	if n := len(p.idle); n > 0 {
		in := p.idle[n-1]
		p.idle = p.idle[:n-1]
		p.mu.Unlock()
		return in, nil
	}
	p.mu.Unlock()
	in, err := fresh()
	if err != nil {
		<-p.tokens
	}
	return in, err
}

// put takes an instance back, or closes it.
func (p *pool) put(in *instance, discard bool) {
	p.mu.Lock()
	discard = discard || p.closed
	if !discard {
		in.used = time.Now() //nolint:forbidigo // how long an instance is idle is measured here only
		p.idle = append(p.idle, in)
	}
	p.mu.Unlock()
	if discard {
		in.close()
	}
	<-p.tokens
}

// trim closes the idle instances that were not used since then, but one.
func (p *pool) trim(since time.Time) {
	p.mu.Lock()
	var old, rest []*instance
	for i, in := range p.idle { // the last used is last, and stays
		if i < len(p.idle)-1 && in.used.Before(since) {
			old = append(old, in)
		} else {
			rest = append(rest, in)
		}
	}
	p.idle = rest
	p.mu.Unlock()
	for _, in := range old {
		in.close()
	}
}

// close closes the idle instances and, when they come back, those in use.
func (p *pool) close() {
	p.mu.Lock()
	old := p.idle
	p.idle, p.closed = nil, true
	p.mu.Unlock()
	for _, in := range old {
		in.close()
	}
}
