package errorlog

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// Filter says which records are meant; the zero value means all.
type Filter struct {
	Provider     string // in any letter case
	Reason       wire.Reason
	Since, Until time.Time // of the arrival: from Since, before Until
}

func (f *Filter) match(r *Record) bool {
	return (f.Provider == "" || strings.EqualFold(f.Provider, r.Provider)) && (f.Reason == "" || f.Reason == r.Verdict.Reason) &&
		!r.Now.Before(f.Since) && (f.Until.IsZero() || r.Now.Before(f.Until))
}

// skew is how much later than its arrival an answer may be recorded: rows are in the order of writing.
const skew = time.Minute

// List returns the records that f means, newest first, without the first offset of them and at most limit, and how many there are.
// While the store is degraded it is store.ErrDegraded.
func (l *Log) List(ctx context.Context, f Filter, limit, offset int) (records []Record, total int, err error) {
	records = []Record{}
	for row, err := range l.o.Rows.NewestRows(ctx, Table, 0) {
		if err != nil {
			return nil, 0, err
		}
		if row.At < f.Since.Add(-skew).UnixMilli() && !f.Since.IsZero() {
			break
		}
		r, err := decode(row)
		if err != nil || !f.match(&r) {
			continue // a line that cannot be read helps nobody; it goes with its age
		}
		if total++; total > offset && len(records) < limit {
			records = append(records, r)
		}
	}
	return records, total, nil
}

// Clear removes all records and returns how many they were.
func (l *Log) Clear(ctx context.Context) (int, error) {
	return l.o.Rows.PruneRows(ctx, Table, store.Keep{})
}

func decode(row store.Row) (Record, error) {
	var r Record
	if err := json.Unmarshal(row.Data, &r); err != nil {
		return r, err
	}
	r.ID = fmt.Sprintf("e-%d", row.Seq)
	return r, nil
}
