package host

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/quota"
	"github.com/weirgate/weir/store"
)

// docQuota is the kind of the documents that hold the last snapshot of a connection's quota (OBJ-20).
const docQuota = "quota"

// quotaPeriod is how often what was learned is stored. In memory it is there at once.
const quotaPeriod = 30 * time.Second

// learnQuota hears the head of every answer (gate 18).
func (h *Host) learnQuota(t catalog.Target, head http.Header, now time.Time) {
	h.quota.Learn(t.Connection.ID, head, now)
}

// loadQuota reads what an earlier run learned. What cannot be read is learned again.
func (h *Host) loadQuota(ctx context.Context) {
	for doc, err := range h.store.List(ctx, docQuota) {
		if err != nil {
			h.o.Log.Warn("the quota of connections could not be read; it is learned again", "error", err.Error())
			return
		}
		var s quota.Snapshot
		if json.Unmarshal(doc.Data, &s) == nil && s.ConnectionID == doc.ID && h.catalog.Current().Connection(doc.ID) != nil {
			h.quota.Restore(s)
		}
	}
}

// keepQuota stores what was learned, until ctx ends, and then once more.
func (h *Host) keepQuota(ctx context.Context) {
	tick := time.NewTicker(quotaPeriod)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			h.saveQuota(context.WithoutCancel(ctx))
			return
		case <-tick.C:
			h.saveQuota(ctx)
		}
	}
}

func (h *Host) saveQuota(ctx context.Context) {
	var ws []store.Write
	for _, s := range h.quota.Changed() {
		ws = append(ws, noteWrite(docQuota, s.ConnectionID, h.o.Now(), s))
	}
	if len(ws) == 0 {
		return
	}
	if _, err := h.store.Change(ctx, ws...); err != nil {
		h.o.Log.Debug("the quota of connections was not stored", "error", err.Error())
	}
}

// forgetQuota drops what was learned about a deleted connection (OBJ-7).
func (h *Host) forgetQuota(connection string) {
	h.quota.Forget(connection)
	w := store.Write{Kind: docQuota, ID: connection, Delete: true, At: h.o.Now().UnixMilli()}
	if _, err := h.store.Change(h.life, w); err != nil {
		h.o.Log.Debug("the quota of a deleted connection was not removed", "connection", connection, "error", err.Error())
	}
}
