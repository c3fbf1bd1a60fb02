package manage

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/host/record"
	"github.com/weirgate/weir/store"
)

// Event is one entry of the journal as people see it (OBJ-22). Keys, revisions and nodes are the machines' business.
type Event struct {
	Seq          store.Seq       `json:"seq"`
	At           *string         `json:"at"`
	Kind         string          `json:"kind"`
	Provider     string          `json:"provider,omitempty"`
	ConnectionID string          `json:"connectionId,omitempty"`
	Model        string          `json:"model,omitempty"`
	RequestID    string          `json:"requestId,omitempty"`
	Data         json.RawMessage `json:"data"`
	Version      int             `json:"v"`
}

func shownEvent(e store.Event) Event {
	data := eventData(e.Data)
	return Event{
		Seq: e.Seq, At: stamp(time.UnixMilli(e.At)), Kind: e.Kind, Provider: e.Provider, ConnectionID: e.ConnectionID,
		Model: e.Model, RequestID: e.RequestID, Data: data, Version: max(e.Version, 1),
	}
}

// eventData shows what an event holds: the machines' times, which are Unix milliseconds, as OBJ-1 wants them.
func eventData(b []byte) json.RawMessage {
	var v map[string]any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if d.Decode(&v) != nil || v == nil {
		return json.RawMessage("{}")
	}
	readable(v)
	shown, err := json.Marshal(v)
	if err != nil {
		return json.RawMessage("{}")
	}
	return shown
}

// readable turns the times in v into text, also those of nested objects. A time of 0 is none.
func readable(v map[string]any) {
	for name, x := range v {
		switch x := x.(type) {
		case map[string]any:
			readable(x)
		case []any:
			for _, item := range x {
				if m, ok := item.(map[string]any); ok {
					readable(m)
				}
			}
		case string: // of a time.Time, with nanoseconds
			if at, err := time.Parse(time.RFC3339, x); err == nil && isTime(name) {
				v[name] = stamp(at)
			}
		case json.Number:
			if ms, err := x.Int64(); err == nil && isTime(name) {
				v[name] = nil
				if ms != 0 {
					v[name] = stamp(time.UnixMilli(ms))
				}
			}
		}
	}
}

func isTime(name string) bool {
	return name == "at" || name == "since" || name == "until" || strings.HasSuffix(name, "At") || strings.HasSuffix(name, "Until") ||
		strings.HasSuffix(name, "Time")
}

type eventList struct {
	Events []Event   `json:"events"`
	Next   store.Seq `json:"next"`
}

func (c *call) eventFilter() (record.Filter, error) {
	q := c.r.URL.Query()
	f := record.Filter{Kind: q.Get("kind"), Provider: q.Get("provider"), ConnectionID: q.Get("connectionId")}
	limit, err := c.number("limit", record.DefaultLimit, 1, record.MaxLimit)
	if err != nil {
		return f, err
	}
	f.Limit = limit
	if text := q.Get("after"); text != "" {
		after, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return f, invalid(Detail{"after", "must be the seq of an event"})
		}
		f.After = store.Seq(after)
	}
	return f, nil
}

// listEvents answers a part of the journal, or the live feed when the caller wants a stream (OBJ-23).
func listEvents(s *Server, c *call) (any, error) {
	f, err := c.eventFilter()
	if err != nil {
		return nil, err
	}
	if strings.Contains(c.r.Header.Get("Accept"), "text/event-stream") {
		return answered{}, s.feed(c, f)
	}
	events, next, err := s.ports.Events.Events(c.ctx(), f)
	if err != nil {
		return nil, err
	}
	shown := make([]Event, len(events))
	for i, e := range events {
		shown[i] = shownEvent(e)
	}
	return eventList{shown, next}, nil
}

// Pace of the feed: a line that keeps proxies from closing it, and how long one write may take.
const (
	heartbeat    = 15 * time.Second
	feedPatience = 5 * time.Second
)

// feed sends events as they come, until the reader leaves, is too slow, or the host stops.
func (s *Server) feed(c *call, f record.Filter) error {
	after := s.ports.Events.Last()
	if c.r.URL.Query().Has("after") {
		after = f.After
	}
	if text := c.r.Header.Get("Last-Event-ID"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return invalid(Detail{"Last-Event-ID", "must be the seq of an event"})
		}
		after = store.Seq(n)
	}
	events, cancel := s.ports.Events.Subscribe(after)
	defer cancel()
	h := c.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	out := http.NewResponseController(c.w)
	send := func(text string) bool {
		_ = out.SetWriteDeadline(time.Now().Add(feedPatience)) // a writer without deadlines has its own patience
		if _, err := c.w.Write([]byte(text)); err != nil {
			return false
		}
		return out.Flush() == nil
	}
	if !send(": weir events\n\n") {
		return nil
	}
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		select {
		case e, open := <-events:
			if !open {
				return nil
			}
			if !f.Match(e) {
				continue
			}
			b, err := json.Marshal(shownEvent(e))
			if err != nil || !send(fmt.Sprintf("id: %d\ndata: %s\n\n", e.Seq, b)) {
				return nil
			}
		case <-beat.C:
			if !send(": still here\n\n") {
				return nil
			}
		case <-c.ctx().Done():
			return nil
		case <-s.ports.Stopping:
			return nil
		}
	}
}
