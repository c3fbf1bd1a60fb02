package host

import (
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/errorlog"
	"github.com/weirgate/weir/host/ledger"
	"github.com/weirgate/weir/host/pricing"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/memory"
)

// rows is where tables of rows are kept: in the store when that keeps rows, else in memory.
func (h *Host) rows() store.Rows {
	if rows, ok := h.store.(store.Rows); ok {
		return rows
	}
	return memory.New(memory.Options{Now: h.o.Now})
}

// newLedger makes the record of requests (OBJ-17).
func (h *Host) newLedger() *ledger.Log {
	return ledger.New(ledger.Options{
		Rows: h.rows(), Now: h.o.Now, Log: h.o.Log, Prices: h.prices.Load,
		Redact:   func(s string) string { return errorlog.Clean(s, h.redact.Text) },
		Settings: func() settings.RequestLog { return h.catalog.Current().Settings.RequestLog },
	})
}

// readPrices puts the prices of the plugins in force into use (OBJ-21).
func (h *Host) readPrices() {
	var list []pricing.Source
	for _, p := range h.plugins.Prices() {
		list = append(list, pricing.Source{Plugin: p.Plugin, Version: p.Version, Prices: p.Prices})
	}
	h.prices.Store(pricing.New(list...))
}

// refused records a request that the gateway answered by itself (OBJ-17). It is about no provider, so it moves no metric of one.
func (h *Host) refused(c *dispatch.Call, t *dispatch.Trail) { h.ledger.Add(c, t, string(outcomeOf(t))) }
