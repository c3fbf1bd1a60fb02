package ledger

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/pricing"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/store"
)

// Table is the name of the ledger's table of rows.
const Table = "requests"

// Bounds of the way to the store.
const (
	maxQueued      = 8192                   // rows that wait
	maxQueuedBytes = 32 << 20               // of the texts that are kept with them
	maxBatch       = 1000                   // rows that are written at once
	gather         = 250 * time.Millisecond // that a row waits for others, of the second that it may be late (OV-8)
	pruneEvery     = 30 * time.Second       // at least once a minute (OBJ-18)
	pruneStep      = 1000                   // rows in one transaction
	saidEvery      = time.Minute            // between two log lines about dropped rows
)

// Options of a Log; all but Log are required.
type Options struct {
	Rows     store.Rows
	Settings func() settings.RequestLog // in force now
	Prices   func() *pricing.Table      // in force now
	Redact   func(string) string        // removes secrets from kept texts
	Now      func() time.Time
	Log      *slog.Logger
}

// Log is the ledger. Its methods are safe for concurrent use; Start is called once, and Stop once after it.
type Log struct {
	o       Options
	queue   chan entry
	asked   chan chan struct{} // for what waits to be written now
	waiting atomic.Int64       // bytes of the texts in queue
	dropped atomic.Int64
	stop    chan struct{}
	ended   chan struct{}
	done    sync.WaitGroup
	running atomic.Bool
	traces  traces

	// Only run uses these.
	rates rates
	batch []entry   // room for the next one
	said  time.Time // of the last line about dropped rows
}

// New makes a Log that takes requests; they are written from Start on.
func New(o Options) *Log {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Log{
		o: o, queue: make(chan entry, maxQueued), asked: make(chan chan struct{}), stop: make(chan struct{}), ended: make(chan struct{}),
	}
}

// Add records a request that is over. The trail must not be changed afterwards. It never blocks: what does not fit into the queue is
// dropped and counted.
func (l *Log) Add(c *dispatch.Call, t *dispatch.Trail, outcome string) {
	if !c.Catalog.Settings.RequestLog.Enabled {
		return
	}
	if t.Gates != nil {
		l.traces.add(c.RequestID, t.Gates)
	}
	size := textBytes(t)
	if size > 0 && l.waiting.Add(size) > maxQueuedBytes {
		l.waiting.Add(-size)
		l.dropped.Add(1)
		return
	}
	select {
	case l.queue <- newEntry(c, t, outcome):
	default:
		l.waiting.Add(-size)
		l.dropped.Add(1)
	}
}

func textBytes(t *dispatch.Trail) int64 {
	if t.Kept == nil {
		return 0
	}
	return int64(len(t.Kept.Request) + len(t.Kept.Answer))
}

// Dropped is how many rows were not written: the queue was full, or the store does not write.
func (l *Log) Dropped() int64 { return l.dropped.Load() }

// Start begins to write and to prune, until Stop.
func (l *Log) Start() {
	l.running.Store(true)
	l.done.Go(l.run)
}

// Stop writes what waits, and ends. What comes later is not written.
func (l *Log) Stop(ctx context.Context) error {
	close(l.stop)
	over := make(chan struct{})
	go func() { l.done.Wait(); close(over) }()
	select {
	case <-over:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Log) run() {
	defer close(l.ended)
	ctx := context.Background() // a write that began is ended
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		select {
		case e := <-l.queue:
			l.write(ctx, l.gathered(e))
			l.prune(ctx, 1) // as fast as it grows
		case written := <-l.asked:
			l.write(ctx, l.drained(nil))
			close(written)
		case <-tick.C:
			l.prune(ctx, maxQueued)
		case <-l.stop:
			l.write(ctx, l.drained(nil))
			return
		}
	}
}

// gathered lets more entries join the first one.
func (l *Log) gathered(first entry) []entry {
	timer := time.NewTimer(gather)
	defer timer.Stop()
	batch := append(l.batch[:0], first)
	defer func() { l.batch = batch }()
	for len(batch) < maxBatch {
		select {
		case e := <-l.queue:
			batch = append(batch, e)
		case <-timer.C:
			return batch
		case written := <-l.asked:
			batch = l.drained(batch)
			l.write(context.Background(), batch)
			close(written)
			return nil
		case <-l.stop:
			return l.drained(batch)
		}
	}
	return batch
}

// drained adds everything that waits now.
func (l *Log) drained(batch []entry) []entry {
	for {
		select {
		case e := <-l.queue:
			batch = append(batch, e)
		default:
			return batch
		}
	}
}

// flush returns when everything that was added before is written, so that who reads finds it. A ledger that does not run writes nothing.
func (l *Log) flush(ctx context.Context) {
	if !l.running.Load() {
		return
	}
	written := make(chan struct{})
	select {
	case l.asked <- written:
	case <-l.ended:
		return
	case <-ctx.Done():
		return
	}
	select {
	case <-written:
	case <-ctx.Done():
	}
}

func (l *Log) write(ctx context.Context, batch []entry) {
	for len(batch) > 0 {
		part := batch[:min(len(batch), maxBatch)]
		batch = batch[len(part):]
		lines := make([]byte, 0, len(part)*usualLine)
		rows := make([]store.Row, 0, len(part))
		for i := range part {
			start := len(lines)
			lines = l.line(lines, &part[i])
			t := part[i].trail
			rows = append(rows, store.Row{At: t.Began.Add(t.Took).UnixMilli(), Data: lines[start:len(lines):len(lines)]})
		}
		clear(part) // the trails may go
		if _, err := l.o.Rows.AppendRows(ctx, Table, rows...); err != nil {
			l.dropped.Add(int64(len(rows)))
			l.say(err)
		}
	}
}

// usualLine is a little more than most rows have.
const usualLine = 768

// line appends the row of an entry as it is stored.
func (l *Log) line(dst []byte, e *entry) []byte {
	v := l.price(e)
	l.waiting.Add(-textBytes(e.trail))
	if k := e.trail.Kept; k != nil {
		v.bodies = &Bodies{Request: l.o.Redact(string(k.Request)), Answer: l.o.Redact(string(k.Answer)), Cut: k.Cut}
		if f := e.trail.Failure; f != nil && len(k.Answer) == 0 {
			v.bodies.Answer = l.o.Redact(f.Message)
		}
	}
	start := len(dst)
	dst = e.encode(dst, v)
	for len(dst)-start > store.MaxRow && v.bodies != nil { // escapes can make a text six times as long
		b := v.bodies
		b.Request, b.Answer, b.Cut = half(b.Request), half(b.Answer), true
		dst = e.encode(dst[:start], v)
	}
	return dst
}

// price says what the tokens of a request cost (OBJ-21). A request that brought nothing costs nothing that could be stated.
func (l *Log) price(e *entry) (v worth) {
	provider, _, model := e.served()
	if !e.trail.Usage.Stated() || provider == "" {
		return v
	}
	rate := l.rates.find(l.o.Prices(), provider, model)
	if v.nano, v.known = rate.Cost(e.trail.Usage); v.known {
		v.prices = rate.Origin
	}
	return v
}

// say logs that rows are lost, now and then. A degraded store has said so itself (DATA-5).
func (l *Log) say(err error) {
	now := l.o.Now()
	if errors.Is(err, store.ErrDegraded) || errors.Is(err, store.ErrClosed) || now.Sub(l.said) < saidEvery {
		return
	}
	l.said = now
	l.o.Log.Warn("requests were not recorded", "dropped", l.dropped.Load(), "error", err.Error())
}

// prune removes what the settings no longer keep, in at most that many small steps.
func (l *Log) prune(ctx context.Context, steps int) {
	s := l.o.Settings()
	keep := store.Keep{
		Since: l.o.Now().Add(-time.Duration(s.RetentionDays) * 24 * time.Hour).UnixMilli(), Rows: s.MaxRows, Limit: pruneStep,
	}
	for range steps {
		n, err := l.o.Rows.PruneRows(ctx, Table, keep)
		if err != nil && !errors.Is(err, store.ErrDegraded) && !errors.Is(err, store.ErrClosed) {
			l.o.Log.Warn("the ledger was not pruned", "error", err.Error())
		}
		if err != nil || n < pruneStep {
			return
		}
	}
}
