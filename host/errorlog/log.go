package errorlog

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// Table is the name of the record's table of rows.
const Table = "upstream-errors"

// Bounds of the way to the store.
const (
	maxQueued      = 1024                   // records that wait
	maxQueuedBytes = 16 << 20               // of their bodies
	gather         = 250 * time.Millisecond // that a record waits for others, of the second that it may be late (OV-8)
	pruneEvery     = 30 * time.Second       // at least once a minute (OBJ-18)
	pruneStep      = 500                    // rows in one transaction
	saidEvery      = time.Minute            // between two log lines about dropped records
)

// Options of a Log; all but Log are required.
type Options struct {
	Rows     store.Rows
	Settings func() settings.ErrorRecord // in force now
	Redact   func(string) string         // removes known secrets
	Now      func() time.Time
	Log      *slog.Logger
}

// Log is the record of upstream errors. Its methods are safe for concurrent use; Start is called once, and Stop once after it.
type Log struct {
	o       Options
	queue   chan entry
	waiting atomic.Int64 // bytes of the bodies in queue
	dropped atomic.Int64
	stop    chan struct{}
	done    sync.WaitGroup

	said time.Time // of the last line about dropped records; only run uses it
}

// entry is what Failed takes along; nothing of it is shared with the request any more.
type entry struct {
	reply               rules.Reply
	verdict             wire.Verdict
	connection, request string
	body                []byte
	cut                 bool // the body was longer
}

// New makes a Log that takes records; they are written from Start on.
func New(o Options) *Log {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return &Log{o: o, queue: make(chan entry, maxQueued), stop: make(chan struct{})}
}

// Failed records a reply and its verdict. It never blocks: what does not fit into the queue is dropped and counted.
func (l *Log) Failed(reply *rules.Reply, v wire.Verdict, connection, requestID string) {
	if !l.o.Settings().Enabled {
		return
	}
	e := entry{verdict: v, connection: connection, request: requestID, body: bytes.Clone(reply.Body)}
	e.cut = reply.BodyBytes > len(reply.Body)
	e.reply = *reply
	e.reply.Body, e.reply.Header = nil, maps.Clone(reply.Header)
	e.reply.Facts = rules.Facts{Code: reply.Facts.Code, Message: reply.Facts.Message}
	if l.waiting.Add(int64(len(e.body))) > maxQueuedBytes {
		l.waiting.Add(-int64(len(e.body)))
		l.dropped.Add(1)
		return
	}
	select {
	case l.queue <- e:
	default:
		l.waiting.Add(-int64(len(e.body)))
		l.dropped.Add(1)
	}
}

// Dropped is how many records were not written: the queue was full, or the store does not write.
func (l *Log) Dropped() int64 { return l.dropped.Load() }

// Start begins to write and to prune, until Stop.
func (l *Log) Start() { l.done.Go(l.run) }

// Stop writes what waits, and ends. What comes later is not written.
func (l *Log) Stop(ctx context.Context) error {
	close(l.stop)
	ended := make(chan struct{})
	go func() { l.done.Wait(); close(ended) }()
	select {
	case <-ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *Log) run() {
	ctx := context.Background() // a write that began is ended
	tick := time.NewTicker(pruneEvery)
	defer tick.Stop()
	for {
		select {
		case e := <-l.queue:
			l.write(ctx, l.gathered(e))
			l.prune(ctx, 1) // as fast as it grows
		case <-tick.C:
			l.prune(ctx, maxQueued)
		case <-l.stop:
			l.write(ctx, l.drained(nil))
			return
		}
	}
}

// gathered lets more records join the first one.
func (l *Log) gathered(first entry) []entry {
	timer := time.NewTimer(gather)
	defer timer.Stop()
	batch := []entry{first}
	for len(batch) < pruneStep/2 {
		select {
		case e := <-l.queue:
			batch = append(batch, e)
		case <-timer.C:
			return batch
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

func (l *Log) write(ctx context.Context, batch []entry) {
	rows := make([]store.Row, 0, len(batch))
	limit := l.o.Settings().MaxBodyBytes
	for i := range batch {
		l.waiting.Add(-int64(len(batch[i].body)))
		r := l.record(&batch[i], limit)
		line, err := r.encode(store.MaxRow)
		if err != nil { // plain values always encode
			l.dropped.Add(1)
			continue
		}
		rows = append(rows, store.Row{At: r.Now.UnixMilli(), Data: line})
	}
	if len(rows) == 0 {
		return
	}
	if _, err := l.o.Rows.AppendRows(ctx, Table, rows...); err != nil {
		l.dropped.Add(int64(len(rows)))
		l.say(err)
	}
}

// say logs that records are lost, now and then. A degraded store has said so itself (DATA-5).
func (l *Log) say(err error) {
	now := l.o.Now()
	if errors.Is(err, store.ErrDegraded) || errors.Is(err, store.ErrClosed) || now.Sub(l.said) < saidEvery {
		return
	}
	l.said = now
	l.o.Log.Warn("upstream errors were not recorded", "dropped", l.dropped.Load(), "error", err.Error())
}

// record makes the line of an entry. Secrets are taken out of the whole text before it is cut, so that no half of one stays.
func (l *Log) record(e *entry, limit int) *Record {
	clean := func(s string) string { return redact(s, l.o.Redact) }
	r := &Record{
		Provider: e.reply.Provider, Auth: e.reply.Auth, Model: e.reply.Model, Endpoint: e.reply.Endpoint, Status: e.reply.Original,
		Stream: e.reply.Source == wire.SourceStream, Now: e.reply.Now.UTC().Truncate(time.Millisecond), RequestID: e.request,
		ConnectionID: e.connection, Plugin: e.verdict.Plugin, Rule: e.verdict.Rule, Verdict: verdictOf(&e.reply, e.verdict),
		Headers: headers(e.reply.Header, clean),
	}
	if e.reply.Source == wire.SourceTransport {
		r.Status, r.Code, r.Body = 0, e.reply.Facts.Code, clean(e.reply.Facts.Message)
		return r
	}
	text := string(e.body)
	if e.cut {
		text = whole(text)
	}
	if r.Body = clean(text); len(r.Body) > limit {
		r.Body = whole(r.Body[:limit])
	}
	return r
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
			l.o.Log.Warn("the record of upstream errors was not pruned", "error", err.Error())
		}
		if err != nil || n < pruneStep {
			return
		}
	}
}
