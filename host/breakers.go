package host

import (
	"context"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/breaker"
)

// breakerTick is how often counts that no transition carried reach the journal, and idle breakers are dropped (BRK-41).
const breakerTick = 5 * time.Second

// keepBreakers journals what the breakers held back, and sweeps what the provider cooldown no longer needs (PCD-7).
func (h *Host) keepBreakers(ctx context.Context) {
	tick := time.NewTicker(breakerTick)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			at := resilience.Moment{Now: h.o.Now(), Catalog: h.catalog.Current()}
			h.record.Append(h.breakers.Pending(at)...)
			h.windows.Sweep(at)
		}
	}
}

// hintsInForce resets all breakers when the operator changed whether 429s are believed (BRK-23).
func (h *Host) hintsInForce(at resilience.Moment, previous *catalog.Snapshot) {
	if !breaker.HintsChanged(previous.Settings, at.Catalog.Settings) {
		return
	}
	n, changed := h.breakers.ResetAll(at)
	h.record.Append(changed...)
	h.o.Log.Info("useUpstream429BreakerHints was changed: all breakers are reset", "breakers", n)
}
