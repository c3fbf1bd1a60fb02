package gateway

import (
	"maps"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/sdk/wire"
)

// sink writes one answer to one client.
type sink struct {
	w      http.ResponseWriter
	c      *dispatch.Call
	expose exposure
	wrote  bool
	armed  time.Time // when the client was last given its time; zero: never
}

const (
	// clientTime is how long a client may leave what was sent to it unread, before its connection is closed. Without it, one
	// that stops reading would hold its connection upstream for ever.
	clientTime = 2 * time.Minute
	rearm      = 30 * time.Second
)

// exposure says when an answer tells how it was come by (OBS-5).
type exposure uint8

const (
	exposeNever  exposure = iota
	exposeDetour          // when it took more than one attempt
	exposeAlways
)

func exposes(setting, remote string) exposure {
	switch setting {
	case "on":
		return exposeAlways
	case "off":
		return exposeNever
	}
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return exposeNever
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.Unmap().IsLoopback() {
		return exposeNever
	}
	return exposeDetour
}

// Commit sends the head.
func (s *sink) Commit(status int, h http.Header, t *dispatch.Trail) {
	own := s.w.Header()
	maps.Copy(own, h)
	own["X-Request-Id"] = []string{s.c.RequestID}
	if s.c.Dialect == wire.AnthropicMessages { // INF-18
		own["Request-Id"] = []string{s.c.RequestID}
	}
	if d := degraded(t); d != "" {
		s.set(own, "Degraded", d)
	}
	if t.Rescue != "" { // OTH-23
		s.set(own, "Emergency-Fallback", latin(t.Rescue))
	}
	if t.Committed { // not to keep a client waiting, before anybody answered
		s.describe(own, t)
	}
	s.w.WriteHeader(status)
}

// describe adds the X-Weir-* headers of OBS-5 and RST-7.
func (s *sink) describe(h http.Header, t *dispatch.Trail) {
	tried := len(t.Attempts)
	last := t.Last()
	if t.Committed && (last == nil || !last.OK) {
		tried++ // the attempt that is answering is noted when it ends
	}
	if t.Restated != "" && (s.expose != exposeNever || !t.Committed) {
		s.set(h, "Restated", t.Restated)
	}
	if d := degraded(t); d != "" && !t.Committed {
		s.set(h, "Degraded", d)
	}
	if s.expose == exposeNever || s.expose == exposeDetour && tried < 2 {
		return
	}
	s.set(h, "Attempts", strconv.Itoa(tried))
	if p, c, m, ok := served(t, last); ok {
		s.set(h, "Provider", p)
		s.set(h, "Connection", c)
		s.set(h, "Model", m)
		s.set(h, "Selected-Connection-Id", c) // CMB-24
	}
}

// tell adds what a failure says in headers as well as in its body (BRK-44, CMB-53).
func (s *sink) tell(h http.Header, t *dispatch.Trail) {
	for _, x := range t.Tell {
		s.set(h, x.Name, latin1(x.Value))
	}
}

// latin1 replaces what is outside of Latin-1, and control characters, by question marks (CMB-53).
func latin1(s string) string {
	b := []byte(nil)
	for _, r := range s {
		if r < ' ' || r == 0x7f || r > 0xff {
			r = '?'
		}
		b = append(b, byte(r))
	}
	return string(b)
}

// set writes a header of ours, and under its older name too while WEIR_COMPAT_HEADERS is on (OV-11).
func (s *sink) set(h http.Header, name, value string) {
	h.Set("X-Weir-"+name, value)
	if s.c.Catalog.Settings.CompatHeaders {
		h.Set("X-Omniroute-"+name, value)
	}
}

func served(t *dispatch.Trail, last *dispatch.Attempt) (provider, connection, model string, ok bool) {
	if target := t.Serving(); target.Provider != nil {
		return target.Provider.ID, target.Connection.ID, latin(target.Model), true
	}
	if last != nil {
		return last.Provider, last.Connection, latin(last.Model), true
	}
	return "", "", "", false
}

// latin replaces what a header value cannot hold.
func latin(s string) string {
	b := []byte(nil)
	for _, r := range s {
		if r < ' ' || r > '~' {
			r = '?'
		}
		b = append(b, byte(r))
	}
	return string(b)
}

// Write sends body bytes. The first ones always find room in the buffers; from then on the client must keep up.
func (s *sink) Write(p []byte) error {
	if s.wrote {
		s.arm()
	}
	s.wrote = true
	_, err := s.w.Write(p)
	return err
}

func (s *sink) arm() {
	now := time.Now()
	if now.Sub(s.armed) < rearm {
		return
	}
	s.armed = now
	_ = http.NewResponseController(s.w).SetWriteDeadline(now.Add(clientTime)) // a writer that knows no deadlines has another guard
}

// close takes the client's time back, since the next request on the connection has its own.
func (s *sink) close() {
	if !s.armed.IsZero() {
		_ = http.NewResponseController(s.w).SetWriteDeadline(time.Time{}) // as in arm
	}
}

// Flush sends what was written.
func (s *sink) Flush() error {
	if f, ok := s.w.(http.Flusher); ok {
		f.Flush()
		return nil
	}
	return http.NewResponseController(s.w).Flush()
}

var _ dispatch.Sink = (*sink)(nil)

// allows is here so that models.go and chat.go ask a key in one way; a nil key may use everything.
func allows(k *catalog.Key, model string) bool { return k == nil || k.AllowsModel(model) }
