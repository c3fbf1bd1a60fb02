package manage

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/weirgate/weir/host/errorlog"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

type errorList struct {
	Errors  []errorlog.Record `json:"errors"`
	Total   int               `json:"total"`
	Dropped int64             `json:"dropped"` // since the start: the queue was full, or the store does not write
}

// listErrors answers recorded upstream errors, newest first (OBJ-19): as a list, or as bare lines of the corpus.
func listErrors(s *Server, c *call) (any, error) {
	f, err := c.errorFilter()
	if err != nil {
		return nil, err
	}
	p, err := c.page()
	if err != nil {
		return nil, err
	}
	lines, err := c.wantsLines()
	if err != nil {
		return nil, err
	}
	records, total, err := s.ports.Errors.List(c.ctx(), f, p.limit, p.offset)
	if err != nil {
		return nil, unreadableRecord(err)
	}
	if !lines {
		return errorList{records, total, s.ports.Errors.Dropped()}, nil
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	for i := range records {
		if err := e.Encode(&records[i]); err != nil {
			return nil, err
		}
	}
	h := c.w.Header()
	h.Set("Content-Type", "application/jsonl")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	_, _ = c.w.Write(b.Bytes()) // a client that went away is no fault of ours
	return answered{}, nil
}

// wantsLines says whether the caller wants JSON Lines in place of a list.
func (c *call) wantsLines() (bool, error) {
	switch format := c.r.URL.Query().Get("format"); format {
	case "jsonl":
		return true, nil
	case "json":
		return false, nil
	case "":
		accept := c.r.Header.Get("Accept")
		return strings.Contains(accept, "application/jsonl") || strings.Contains(accept, "application/x-ndjson"), nil
	}
	return false, invalid(Detail{"format", "must be json or jsonl"})
}

func (c *call) errorFilter() (errorlog.Filter, error) {
	q := c.r.URL.Query()
	f := errorlog.Filter{Provider: q.Get("provider")}
	if text := q.Get("reason"); text != "" {
		reason, known := wire.ParseReason(text)
		if !known {
			return f, invalid(Detail{"reason", "must be a reason such as quota_exhausted"})
		}
		f.Reason = reason
	}
	var err error
	if f.Since, err = c.moment("since"); err == nil {
		f.Until, err = c.moment("until")
	}
	return f, err
}

// moment reads a time from the query: RFC 3339, or how long ago it was.
func (c *call) moment(name string) (time.Time, error) {
	text := c.r.URL.Query().Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return at, nil
	}
	if ago, err := time.ParseDuration(text); err == nil && ago >= 0 {
		return c.now.Add(-ago), nil
	}
	return time.Time{}, invalid(Detail{name, "must be a time such as 2026-07-01T12:00:00Z, or how long ago, such as 24h"})
}

type clearedErrors struct {
	OK      bool `json:"ok"`
	Removed int  `json:"removed"`
}

func clearErrors(s *Server, c *call) (any, error) {
	n, err := s.ports.Errors.Clear(c.ctx())
	if err != nil {
		return nil, err
	}
	return clearedErrors{true, n}, nil
}

// unreadableRecord says that the store that holds the record is closed for want of room (DATA-6).
func unreadableRecord(err error) error {
	if errors.Is(err, store.ErrDegraded) {
		return problem(http.StatusInsufficientStorage,
			"The record of errors cannot be read while the store is degraded (disk full or failing); free some space and repeat.")
	}
	return err
}
