package host

import (
	"context"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/store"
)

// journal takes what the gates changed. A ban that is to take its account out of use for good goes to its own job, since it
// writes a document (COOL-63).
func (h *Host) journal(es ...store.Event) {
	h.record.Append(es...)
	for _, e := range es {
		if e.Kind != account.KindTerminal || !h.catalog.Current().Settings.AutoDisableBanned {
			continue
		}
		select {
		case h.banned <- e.ConnectionID:
		default:
			h.o.Log.Warn("too many bans at once; a banned connection was not set inactive", "connection", e.ConnectionID)
		}
	}
}

// disableBanned sets banned connections inactive while autoDisableBannedAccounts is on. Only what the API made can be changed;
// others stay in their terminal state, which keeps them out as well.
func (h *Host) disableBanned(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case id := <-h.banned:
			if err := h.disable(ctx, id); err != nil {
				h.o.Log.Warn("a banned connection could not be set inactive", "connection", id, "error", err.Error())
			}
		}
	}
}

func (h *Host) disable(ctx context.Context, id string) error {
	c := h.catalog.Current().Connection(id)
	if s, ok := h.book.State(id); !ok || s.TestStatus != account.Banned || c == nil || c.ManagedBy != catalog.ByAPI || !c.Active {
		return nil
	}
	doc, err := h.store.Get(ctx, catalog.DocConnection, id)
	if err != nil {
		return err
	}
	entry, err := catalog.DecodeConnection(doc, h.vault)
	if err != nil {
		return err
	}
	inactive := false
	entry.Object.IsActive = &inactive
	data, err := catalog.EncodeConnection(entry.Object, entry.CredentialRevision, h.vault)
	if err != nil {
		return err
	}
	_, err = h.change(ctx, store.Write{Kind: catalog.DocConnection, ID: id, Data: data, If: &doc.Revision})
	return err
}
