package ledger

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/store"
)

// Filter says which requests are meant; the zero value means all. Texts are compared whole, those of providers in any letter case.
type Filter struct {
	Since, Until time.Time // of the beginning: from Since, before Until
	Provider     string
	ConnectionID string
	Model        string // of the answer, or as the client named it
	APIKeyID     string
	Outcome      string
	Reason       string
}

// match looks only at what the filter asks for.
func (f *Filter) match(data []byte) bool {
	field := func(name string) string { return gjson.GetBytes(data, name).Str }
	if !f.Since.IsZero() || !f.Until.IsZero() {
		at, err := time.Parse(time.RFC3339, field("at"))
		if err != nil || at.Before(f.Since) || !f.Until.IsZero() && !at.Before(f.Until) {
			return false
		}
	}
	return (f.Provider == "" || strings.EqualFold(f.Provider, field("provider"))) &&
		(f.ConnectionID == "" || f.ConnectionID == field("connectionId")) &&
		(f.Model == "" || f.Model == field("model") || f.Model == field("requestedModel")) &&
		(f.APIKeyID == "" || f.APIKeyID == field("apiKeyId")) &&
		(f.Outcome == "" || f.Outcome == field("outcome")) &&
		(f.Reason == "" || f.Reason == field("reason"))
}

// skew is how much later than its end a request may be written: rows are in the order of writing.
const skew = time.Minute

// List returns the requests that f means, newest first, without the first offset of them and at most limit, and how many there are.
// Kept texts and gates are not among it. While the store is degraded it is store.ErrDegraded.
func (l *Log) List(ctx context.Context, f Filter, limit, offset int) (rows []Row, total int, err error) {
	l.flush(ctx)
	rows = []Row{}
	all := f == Filter{}
	if all {
		if total, err = l.o.Rows.CountRows(ctx, Table); err != nil {
			return nil, 0, err
		}
	}
	seen := 0
	for stored, err := range l.o.Rows.NewestRows(ctx, Table, 0) {
		if err != nil {
			return nil, 0, err
		}
		if !f.Since.IsZero() && stored.At < f.Since.Add(-skew).UnixMilli() || all && len(rows) == limit {
			break
		}
		if !all && !f.match(stored.Data) {
			continue
		}
		if seen++; seen <= offset || len(rows) == limit {
			continue
		}
		r, err := decode(stored)
		if err != nil {
			seen-- // a line that cannot be read helps nobody; it goes with its age
			continue
		}
		r.Bodies = nil
		rows = append(rows, r)
	}
	if !all {
		total = seen
	}
	return rows, total, nil
}

// Get returns one request with its kept texts, and its gates while they are remembered; false: there is none.
func (l *Log) Get(ctx context.Context, requestID string) (Row, bool, error) {
	l.flush(ctx)
	head := append(jsonw.AppendString([]byte(`{"requestId":`), requestID), ',')
	for stored, err := range l.o.Rows.NewestRows(ctx, Table, 0) {
		if err != nil {
			return Row{}, false, err
		}
		if !bytes.HasPrefix(stored.Data, head) {
			continue
		}
		r, err := decode(stored)
		if err != nil {
			return Row{}, false, err
		}
		r.Gates = l.traces.get(requestID)
		return r, true, nil
	}
	return Row{}, false, nil
}

func decode(stored store.Row) (Row, error) {
	var r Row
	err := json.Unmarshal(stored.Data, &r)
	return r, err
}
