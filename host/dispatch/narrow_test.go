package dispatch_test

import (
	"slices"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/lockout"
)

// LOCK-11, LOCK-15, LOCK-16, LOCK-19: a failure of one model is narrowed before anything acts on it: the model is locked on that
// connection, which does not cool and serves other models, and the next request for the model goes by it.
func TestFailuresOfOneModel(t *testing.T) {
	for _, row := range []struct {
		name     string
		status   int
		body     string
		perModel bool
		locked   time.Duration // 0: the connection cools instead
	}{
		{"429 of a provider with a quota per model", 429, `{"error":{"message":"slow down"}}`, true, 2 * time.Second},
		{"429 of any other", 429, `{"error":{"message":"slow down"}}`, false, 0},
		{"404 of a local backend", 404, `{"error":{"message":"no such thing"}}`, false, 2 * time.Second},
		{"410 of a retired model", 410, `{"error":{"message":"This model has been retired."}}`, false, 24 * time.Hour},
		{"410 of something else", 410, `{"error":{"message":"This page has been moved."}}`, false, 0},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBench(t).with("a1", fails(row.status, row.body)).with("a2", answers)
			b.prov.PerModel = row.perModel
			b.clock = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
			if c, _ := b.do(b.direct(), false); c.status != 200 || !slices.Equal(b.seen(), []string{"a1", "a2"}) {
				t.Fatalf("the client saw %d", c.status)
			}
			if got := b.cooled(); (got == 0) != (row.locked > 0) {
				t.Errorf("%d cooldowns", got)
			}
			at := resilience.Moment{Now: b.clock, Catalog: b.snap}
			target := catalog.Target{Provider: b.prov, Connection: b.prov.Connections[0], Model: "m"}
			refusal := b.d.Ladder.Peek(at, target)
			target.Model = "other"
			other := b.d.Ladder.Peek(at, target)
			switch {
			case refusal == nil:
				t.Error("nothing refuses the model")
			case row.locked == 0:
				if refusal.Gate == lockout.Name || other == nil {
					t.Errorf("refused by %s", refusal.Gate)
				}
			case refusal.Gate != lockout.Name || !refusal.RetryAt.Equal(b.clock.Add(row.locked)) || other != nil:
				t.Errorf("refused by %s until %v; another model: %+v", refusal.Gate, refusal.RetryAt, other)
			}
			if b.do(b.direct(), false); !slices.Equal(b.seen(), []string{"a2"}) {
				t.Error("it was asked again")
			}
		})
	}
}
