package account

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// document is a State as events and snapshots hold it.
type document struct {
	State
	RateLimitedUntil any `json:"rateLimitedUntil"`
}

func encode(s State) []byte {
	d := document{State: s}
	if s.Until != 0 {
		d.RateLimitedUntil = s.Until
	}
	b, err := json.Marshal(d)
	if err != nil {
		panic(err) // a State has nothing that could not be encoded
	}
	return b
}

// decode reads a stored record. Only its rateLimitedUntil is read tolerantly (COOL-3).
func (b *Book) decode(connection string, data []byte) (State, error) {
	var raw struct {
		State
		RateLimitedUntil json.RawMessage `json:"rateLimitedUntil"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return State{}, fmt.Errorf("record of connection %s: %w", connection, err)
	}
	s := raw.State
	until, ok := parseUntil(raw.RateLimitedUntil)
	if !ok {
		b.warn(fmt.Sprintf("connection %s: stored rateLimitedUntil %s is neither an RFC 3339 time nor epoch milliseconds: read as no cooldown",
			connection, cut(string(raw.RateLimitedUntil), maxError)))
	}
	s.Until = until
	s.Level = max(s.Level, 0)
	s.Probes, s.Rechecks = max(s.Probes, 0), max(s.Rechecks, 0)
	for i := range s.Rejected {
		s.Rejected[i].Count = max(s.Rejected[i].Count, 0)
	}
	return s, nil
}

// parseUntil reads RFC 3339 text, epoch milliseconds as a number, or epoch milliseconds as text; null, an empty text or
// nothing at all is no cooldown. False: anything else (COOL-3).
func parseUntil(raw []byte) (int64, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return 0, true
	}
	if raw[0] != '"' {
		return parseMillis(string(raw))
	}
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return 0, false
	}
	text = strings.TrimSpace(text)
	if text == "" {
		return 0, true
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return max(t.UnixMilli(), 0), true
	}
	return parseMillis(text)
}

// parseMillis reads a count of milliseconds; other writers may have used a decimal point or an exponent.
func parseMillis(text string) (int64, bool) {
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return max(n, 0), n >= 0
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0 && f < 1<<53) {
		return 0, false
	}
	return int64(f), true
}

// entry is one record of a snapshot.
type entry struct {
	Connection string          `json:"connectionId"`
	Revision   uint64          `json:"revision"`
	Record     json.RawMessage `json:"record"`
}

// Snapshot returns all records as one JSON document, by connection id.
func (b *Book) Snapshot() ([]byte, error) {
	all := []entry{}
	for id, c := range b.cells.All() {
		if s := c.state.Load(); s != nil {
			all = append(all, entry{Connection: id, Revision: s.Revision, Record: encode(*s)})
		}
	}
	slices.SortFunc(all, func(x, y entry) int { return cmp.Compare(x.Connection, y.Connection) })
	return json.Marshal(all)
}

// Restore takes over the records of a snapshot, each unless a newer revision of it is here. A record that cannot be read
// is left out and reported; the others hold.
func (b *Book) Restore(data []byte) error {
	var all []entry
	if err := json.Unmarshal(data, &all); err != nil {
		return fmt.Errorf("records of connections: %w", err)
	}
	ids := make([]string, len(all))
	for i, e := range all {
		ids[i] = e.Connection
	}
	b.cells.MakeAll(ids...)
	var faults []error
	for _, e := range all {
		s, err := b.decode(e.Connection, e.Record)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		s.Revision = e.Revision
		b.put(e.Connection, s)
	}
	return errors.Join(faults...)
}
