package host

import (
	"cmp"
	"context"
	"hash/fnv"
	"log/slog"
	"slices"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/store"
)

const (
	// recheckTick is how often it is looked whether a test is due.
	recheckTick = 15 * time.Second
	// recheckSpread is how much later than its time a test may come, so that accounts that ended together are not tested
	// together.
	recheckSpread = time.Minute
)

// rechecker tests connections in terminal states that may have healed: accounts without credit, and expired credentials
// (COOL-53, COOL-59). Only it does; requests of clients never go there. One test runs at a time.
type rechecker struct {
	book    *account.Book
	catalog func() *catalog.Snapshot
	test    func(ctx context.Context, connection string) (passed bool, err error) // heals the connection itself when it passes
	journal func(...store.Event)
	sweep   func(now time.Time) // of what else expires by itself
	now     func() time.Time
	log     *slog.Logger
}

// recheck runs the re-checks of this host until ctx ends, and the sweep of the lockouts (LOCK-31).
func (h *Host) recheck(ctx context.Context) {
	r := h.rechecker()
	r.run(ctx)
}

func (h *Host) rechecker() rechecker {
	return rechecker{
		book: h.book, catalog: h.catalog.Current, journal: h.journal, sweep: h.lockouts.Sweep, now: h.o.Now, log: h.o.Log,
		test: func(ctx context.Context, connection string) (bool, error) {
			result, err := h.test(ctx, connection)
			return result.OK, err
		},
	}
}

func (r *rechecker) run(ctx context.Context) {
	ticker := time.NewTicker(recheckTick)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		r.sweep(r.now())
		for _, c := range r.due() {
			if ctx.Err() != nil {
				return
			}
			r.check(ctx, c)
		}
	}
}

// due lists the connections whose test is due, the longest overdue first.
func (r *rechecker) due() []*catalog.Connection {
	s := r.catalog()
	interval := s.Settings.CredentialCheckInterval
	if interval <= 0 {
		return nil
	}
	now := r.now()
	at := resilience.Moment{Now: now, Catalog: s}
	type check struct {
		connection *catalog.Connection
		at         int64
	}
	var checks []check
	for id, state := range r.book.All() {
		c := s.Connection(id)
		if c == nil || !c.Active || state.Outdated(c) {
			continue
		}
		r.journal(r.book.Schedule(at, c, interval)...)
		next := state.NextCheck(c)
		if next != 0 && next+spread(id).Milliseconds() <= now.UnixMilli() {
			checks = append(checks, check{c, next})
		}
	}
	slices.SortFunc(checks, func(a, b check) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.connection.ID, b.connection.ID))
	})
	out := make([]*catalog.Connection, len(checks))
	for i, x := range checks {
		out[i] = x.connection
	}
	return out
}

// check runs one test. What passes it is active again, anything else is tested later.
func (r *rechecker) check(ctx context.Context, c *catalog.Connection) {
	passed, err := r.test(ctx, c.ID)
	if ctx.Err() != nil {
		return // the host stops; that says nothing about the account
	}
	if passed {
		r.log.Info("a connection in a terminal state passed its test and is active again", "connection", c.ID, "provider", c.Provider)
		return
	}
	s := r.catalog()
	r.journal(r.book.Unhealed(resilience.Moment{Now: r.now(), Catalog: s}, c, s.Settings.CredentialCheckInterval)...)
	if err != nil {
		r.log.Warn("a connection in a terminal state could not be tested", "connection", c.ID, "error", err.Error())
	}
}

// spread is how much later the tests of a connection come. It is always the same for one connection.
func spread(connection string) time.Duration {
	h := fnv.New32a()
	h.Write([]byte(connection))
	return time.Duration(h.Sum32()) % recheckSpread
}
