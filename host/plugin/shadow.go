package plugin

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// What shadows may cost (PLG-4).
const (
	maxWaiting     = 256             // calls whose failures wait to be compared; others are dropped and counted
	maxKept        = 50              // differences of one shadow
	maxExcerpt     = 300             // bytes of an error's text in a difference
	comparisonTime = 5 * time.Second // for one failure and one shadow
)

// tally counts for one shadow version. Safe for concurrent use.
type tally struct {
	agreed, differed, failed, dropped atomic.Int64

	mu   sync.Mutex
	last []Difference // the newest last, guarded by mu
}

func (t *tally) read() *Tally {
	return &Tally{Agreed: t.agreed.Load(), Differed: t.differed.Load(), Failed: t.failed.Load(), Dropped: t.dropped.Load()}
}

func (t *tally) keep(d Difference) {
	t.differed.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, d)
	t.last = t.last[max(0, len(t.last)-maxKept):]
}

// differences are the kept ones, the newest first.
func (t *tally) differences() []Difference {
	t.mu.Lock()
	defer t.mu.Unlock()
	list := slices.Clone(t.last)
	slices.Reverse(list)
	return list
}

// Judging says what a failed answer means: a Judge, or one that is listened to.
type Judging interface {
	Restate(ctx context.Context, r *rules.Reply) (wire.Restatement, bool)
	Classify(ctx context.Context, r *rules.Reply) (wire.Verdict, bool)
}

// Shadowed says whether plugins of the set run in shadow, so that calls are to be watched.
func (s *Set) Shadowed() bool { return len(s.shadows) > 0 }

// Watch is the set as one call sees it, which notes what the judges said so that shadows can be compared with it afterwards.
type Watch struct {
	*Set
	queue *shadowQueue

	mu    sync.Mutex
	heard []*hearing // guarded by mu
}

// Watch begins to watch a call, which ends with the Release of the Watch in place of the set's.
func (r *Runtime) Watch(s *Set) *Watch { return &Watch{Set: s, queue: &r.shadows} }

// Judge is that of the set, listened to when a shadow has a say for the provider.
func (w *Watch) Judge(p *catalog.Provider) Judging {
	j := w.Set.Judge(p)
	if !slices.ContainsFunc(w.shadows, func(v *version) bool { return v.judges(p.ID) }) {
		return j
	}
	h := &hearing{memory: memory{restated: map[*version]saidRestatement{}, classified: map[*version]saidVerdict{}}}
	h.judge = j.asking(&h.memory)
	w.mu.Lock()
	w.heard = append(w.heard, h)
	w.mu.Unlock()
	return h
}

// Release gives the set back. The answer was sent by now, so that the shadows are asked: in the background, and not at all when
// too many calls wait.
func (w *Watch) Release() {
	var heard []*hearing
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, h := range w.heard {
		if h.decided {
			heard = append(heard, h)
		}
	}
	if len(heard) == 0 || !w.queue.offer(comparison{w.Set, heard}) {
		for _, h := range heard {
			for _, v := range w.shadows {
				if v.judges(h.judge.provider) {
					v.tally.dropped.Add(1)
				}
			}
		}
		w.Set.Release()
	}
}

// hearing is one failed answer, and what the chain in force made of it.
type hearing struct {
	judge   *Judge
	memory  memory
	before  rules.Reply // as it came to the judge
	taken   bool
	after   rules.Reply // restated
	verdict wire.Verdict
	decided bool
}

// Restate is that of the judge.
func (h *hearing) Restate(ctx context.Context, r *rules.Reply) (wire.Restatement, bool) {
	h.take(r)
	return h.judge.Restate(ctx, r)
}

// Classify is that of the judge. Where nobody has an opinion the host decides by status, for the shadows as well (CLS-13).
func (h *hearing) Classify(ctx context.Context, r *rules.Reply) (wire.Verdict, bool) {
	h.take(r)
	v, ok := h.judge.Classify(ctx, r)
	counted := v
	if !ok {
		counted = rules.ByStatus(r)
	}
	h.after, h.verdict, h.decided = *r, waiting(counted, r), true
	return v, ok
}

// take keeps the answer as it is before anybody restates it. Body and header belong to the call, which ends before they are read.
func (h *hearing) take(r *rules.Reply) {
	if h.taken {
		return
	}
	h.taken, h.before = true, *r
	h.before.Body, h.before.Header = slices.Clone(r.Body), maps.Clone(r.Header)
}

// memory asks the guests in force as live does, and remembers what they said, so that the comparison asks none of them twice.
type memory struct {
	live
	restated   map[*version]saidRestatement
	classified map[*version]saidVerdict
}

type saidRestatement struct {
	said wire.Restatement
	ok   bool
}

type saidVerdict struct {
	said wire.Verdict
	ok   bool
}

func (m *memory) restate(ctx context.Context, v *version, r *rules.Reply, now time.Time) (wire.Restatement, bool) {
	said, ok := m.live.restate(ctx, v, r, now)
	m.restated[v] = saidRestatement{said, ok}
	return said, ok
}

func (m *memory) classify(ctx context.Context, v *version, r *rules.Reply, now time.Time) (wire.Verdict, bool) {
	said, ok := m.live.classify(ctx, v, r, now)
	m.classified[v] = saidVerdict{said, ok}
	return said, ok
}

// beside asks the shadow as it would be asked in force, the others by what they said already. One that was not asked then, since
// the version of the shadow's name decided before it, is asked on an instance of its own: nothing of it is counted or kept.
type beside struct {
	memory *memory
	shadow *version
	failed bool
}

func (b *beside) restate(ctx context.Context, v *version, r *rules.Reply, now time.Time) (wire.Restatement, bool) {
	if v == b.shadow {
		said, ok, err := v.restate(ctx, r, now)
		b.fail(err)
		return said, ok
	}
	if m, asked := b.memory.restated[v]; asked {
		return m.said, m.ok
	}
	return quiet{}.restate(ctx, v, r, now)
}

func (b *beside) classify(ctx context.Context, v *version, r *rules.Reply, now time.Time) (wire.Verdict, bool) {
	if v == b.shadow {
		said, ok, err := v.classify(ctx, r, now)
		b.fail(err)
		return said, ok
	}
	if m, asked := b.memory.classified[v]; asked {
		return m.said, m.ok
	}
	return quiet{}.classify(ctx, v, r, now)
}

// fail notes a fault of the shadow. Declining on purpose is none.
func (b *beside) fail(err error) {
	if _, declined := errors.AsType[*rules.Declined](err); err != nil && !declined {
		b.failed = true
	}
}

func (b *beside) ruled(v *version) {
	if v == b.shadow {
		v.counters.rules.Add(1)
	}
}

// comparison is what one call has for the shadows of its set, which it holds.
type comparison struct {
	set   *Set
	heard []*hearing
}

// run asks every shadow that has a say. Nothing of it is applied.
func (c comparison) run(ctx context.Context, redact func(string) string) {
	defer c.set.Release()
	for _, h := range c.heard {
		for _, v := range c.set.shadows {
			if ctx.Err() == nil && v.judges(h.judge.provider) {
				c.compare(ctx, h, v, redact)
			}
		}
	}
}

// compare has the answer judged by the chain as it would be with the shadow in force, in the place of the version of its name.
func (c comparison) compare(ctx context.Context, h *hearing, v *version, redact func(string) string) {
	ctx, stop := context.WithTimeout(ctx, comparisonTime)
	defer stop()
	with := []*version{v}
	for _, other := range c.set.plugins {
		if other.name != v.name {
			with = append(with, other)
		}
	}
	b := &beside{memory: &h.memory, shadow: v}
	reply := h.before
	verdict := decide(ctx, judgeOf(h.judge.provider, with, &tables{}, c.set.now).asking(b), &reply)
	if b.failed {
		v.tally.failed.Add(1)
		return
	}
	if sameMeaning(&h.after, &reply, h.verdict, verdict) {
		v.tally.agreed.Add(1)
		return
	}
	text := h.before.Facts.Message
	if text == "" {
		text = h.before.Facts.Text
	}
	if redact == nil {
		redact = func(s string) string { return s }
	}
	v.tally.keep(Difference{
		At: h.before.Now, Provider: h.before.Provider, Model: h.before.Model, Endpoint: h.before.Endpoint, Status: h.before.Original,
		Excerpt: cut(redact(text), maxExcerpt), Counted: opinion(&h.after, h.verdict, redact), Shadow: opinion(&reply, verdict, redact),
	})
}

// shadowQueue holds the calls that wait to be compared. One goroutine compares them, so that shadows never have more of the
// machine than that. Safe for concurrent use.
type shadowQueue struct {
	jobs chan comparison

	mu     sync.Mutex
	closed bool // guarded by mu
}

func (q *shadowQueue) init() { q.jobs = make(chan comparison, maxWaiting) }

// offer queues a comparison, false when there is no room. It never waits.
func (q *shadowQueue) offer(c comparison) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return false
	}
	select {
	case q.jobs <- c:
		return true
	default:
		return false
	}
}

// run compares until ctx ends.
func (q *shadowQueue) run(ctx context.Context, r *Runtime) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-q.jobs:
			c.run(ctx, r.o.Ports.Redact)
		}
	}
}

// close gives back what was not compared. run has ended by now.
func (q *shadowQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	for {
		select {
		case c := <-q.jobs:
			c.set.Release()
		default:
			return
		}
	}
}
