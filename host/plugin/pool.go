package plugin

import (
	"context"
	"slices"
	"sync"
	"time"
)

// pool holds the instances of one version: at most size at work, made when they are needed, and besides a few that are only
// kept for the streams that are bound to them (ABI-5, ABI-7). Safe for concurrent use.
type pool struct {
	size int

	mu      sync.Mutex
	idle    []*instance // free; the last used is last
	live    int         // instances of the pool: free, in use or being made; without the retired
	retired []*instance // they take no new stream and end with their last one
	waiting []*waiter   // in the order in which they came
	closed  bool
}

// ties are what the pool knows about an instance; guarded by its lock.
type ties struct {
	busy    bool
	streams int       // bound to it
	retires bool      // among the retired
	gone    bool      // closed, or about to be
	used    time.Time // when it was given back
}

// waiter is a call that waits, for any instance or for a certain one.
type waiter struct {
	want *instance
	got  chan grant
}

// grant is what a waiter gets: an instance, the permission to make one (neither), or a fault.
type grant struct {
	in  *instance
	err error
}

func (p *pool) init(size int) { p.size = size }

// get returns a free instance, and whether the call had to wait for it; nil without an error means that the caller makes one, and then calls put or lost. It waits no
// longer than wait.
func (p *pool) get(ctx context.Context, wait time.Duration) (in *instance, waited bool, err error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, false, errDrained
	}
	if n := len(p.idle); n > 0 {
		in := p.idle[n-1]
		p.idle = p.idle[:n-1]
		in.busy = true
		p.mu.Unlock()
		return in, false, nil
	}
	if p.live < p.size {
		p.live++
		p.mu.Unlock()
		return nil, false, nil
	}
	return p.wait(ctx, wait, nil)
}

// bind is get for a new stream, which stays with the instance until unbind: the free one with the fewest streams, or a new
// one, so that streams spread.
func (p *pool) bind(ctx context.Context, wait time.Duration) (in *instance, waited bool, err error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, false, errDrained
	}
	var best *instance
	for _, in := range p.idle {
		if best == nil || in.streams < best.streams {
			best = in
		}
	}
	switch {
	case best != nil && (best.streams == 0 || p.live >= p.size):
		p.take(best)
		p.mu.Unlock()
		return best, false, nil
	case p.live < p.size:
		p.live++
		p.mu.Unlock()
		return nil, false, nil
	}
	return p.wait(ctx, wait, nil)
}

// again returns the instance that a stream is bound to, when it is free.
func (p *pool) again(ctx context.Context, wait time.Duration, in *instance) (_ *instance, waited bool, err error) {
	p.mu.Lock()
	switch {
	case in.gone:
		p.mu.Unlock()
		return nil, false, errGone
	case in.busy:
		return p.wait(ctx, wait, in)
	}
	p.take(in)
	p.mu.Unlock()
	return in, false, nil
}

// take needs mu held.
func (p *pool) take(in *instance) {
	if i := slices.Index(p.idle, in); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	in.busy = true
}

// wait queues the call. It takes over mu and gives it up.
func (p *pool) wait(ctx context.Context, limit time.Duration, want *instance) (_ *instance, waited bool, err error) {
	w := &waiter{want: want, got: make(chan grant, 1)}
	p.waiting = append(p.waiting, w)
	p.mu.Unlock()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case g := <-w.got:
		return g.in, true, g.err
	case <-timer.C:
	case <-ctx.Done():
	}
	p.mu.Lock()
	i := slices.Index(p.waiting, w)
	if i >= 0 {
		p.waiting = slices.Delete(p.waiting, i, i+1)
	}
	p.mu.Unlock()
	if i < 0 { // it came in the last moment
		g := <-w.got
		return g.in, true, g.err
	}
	return nil, true, errBusy
}

// put takes an instance back. One that is broken or worn is closed, or, for the streams that are bound to it, kept apart.
// The answer says whether the pool has lost one.
func (p *pool) put(in *instance, broken bool, now time.Time) (lost bool) {
	p.mu.Lock()
	in.busy, in.used = false, now
	switch {
	case broken || p.closed || in.streams == 0 && (in.retires || in.worn()):
		lost = p.drop(in)
	case !in.retires && in.worn() && len(p.retired) < p.size:
		in.retires, lost = true, true
		p.retired = append(p.retired, in)
		p.live--
		p.next(nil)
		p.next(in)
	default:
		p.next(in)
	}
	gone := in.gone
	p.mu.Unlock()
	if gone {
		in.close()
	}
	return lost
}

// lost gives back the permission to make an instance that get or bind gave.
func (p *pool) lost() {
	p.mu.Lock()
	p.live--
	p.next(nil)
	p.mu.Unlock()
}

// drop takes an instance out of the pool; its streams go on unhooked. It needs mu held.
func (p *pool) drop(in *instance) (counted bool) {
	in.gone = true
	if i := slices.Index(p.idle, in); i >= 0 {
		p.idle = slices.Delete(p.idle, i, i+1)
	}
	if i := slices.Index(p.retired, in); i >= 0 {
		p.retired = slices.Delete(p.retired, i, i+1)
	} else {
		p.live--
		counted = true
	}
	p.waiting = slices.DeleteFunc(p.waiting, func(w *waiter) bool {
		if w.want == in {
			w.got <- grant{err: errGone}
		}
		return w.want == in
	})
	p.next(nil)
	return counted
}

// next hands a free instance to the first waiter that may have it, or makes it idle; without one it lets a waiter make one.
// It needs mu held.
func (p *pool) next(in *instance) {
	for i, w := range p.waiting {
		if w.want != nil && w.want != in || w.want == nil && in != nil && in.retires {
			continue
		}
		if in == nil {
			if p.live >= p.size {
				return
			}
			p.live++
		} else {
			in.busy = true
		}
		p.waiting = slices.Delete(p.waiting, i, i+1)
		w.got <- grant{in: in}
		return
	}
	if in != nil && !in.retires {
		p.idle = append(p.idle, in)
	}
}

// tie binds a stream to the instance that the caller holds.
func (p *pool) tie(in *instance) {
	p.mu.Lock()
	in.streams++
	p.mu.Unlock()
}

// untie ends the stream's hold. The caller does not hold the instance.
func (p *pool) untie(in *instance) {
	p.mu.Lock()
	in.streams--
	last := in.streams == 0 && in.retires && !in.busy && !in.gone
	if last {
		p.drop(in)
	}
	p.mu.Unlock()
	if last {
		in.close()
	}
}

// trim closes the idle instances that were not used since then, but one (ABI-7).
func (p *pool) trim(since time.Time) {
	p.mu.Lock()
	var old []*instance
	for _, in := range slices.Clone(p.idle[:max(len(p.idle)-1, 0)]) { // the last used is last, and stays
		if in.used.Before(since) && in.streams == 0 {
			p.drop(in)
			old = append(old, in)
		}
	}
	p.mu.Unlock()
	for _, in := range old {
		in.close()
	}
}

// reserve is the permission to make a spare instance when there is none, given once.
func (p *pool) reserve() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.idle) > 0 || p.live >= p.size {
		return false
	}
	p.live++
	return true
}

// count is how many instances there are.
func (p *pool) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.live + len(p.retired)
}

// close closes the instances that are free and, when they come back, those in use.
func (p *pool) close() {
	p.mu.Lock()
	p.closed = true
	var old []*instance
	for _, in := range slices.Concat(p.idle, p.retired) {
		if !in.busy {
			p.drop(in)
			old = append(old, in)
		}
	}
	for _, w := range p.waiting {
		w.got <- grant{err: errDrained}
	}
	p.waiting = nil
	p.mu.Unlock()
	for _, in := range old {
		in.close()
	}
}
