package gateway

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dialect"
)

// clientKey reads the client's key from the places of INF-10. Two different ones are refused, not guessed.
func clientKey(r *http.Request) (key string, conflict bool) {
	take := func(s string) {
		s = strings.TrimSpace(s)
		switch {
		case s == "" || s == key:
		case key == "":
			key = s
		default:
			conflict = true
		}
	}
	for _, v := range r.Header["X-Api-Key"] {
		take(v)
	}
	for _, v := range r.Header["X-Goog-Api-Key"] {
		take(v)
	}
	for _, v := range r.Header["Authorization"] {
		if scheme, rest, ok := strings.Cut(v, " "); ok && strings.EqualFold(scheme, "bearer") {
			take(rest)
		}
	}
	if r.URL.RawQuery != "" && strings.Contains(r.URL.RawQuery, "key=") {
		take(r.URL.Query().Get("key"))
	}
	return key, conflict
}

// authorize is gate 2: the client's key is known, active and may do inference (SEC-2, OBJ-15). A nil key with a nil failure
// means that inference is open.
func (g *Gateway) authorize(r *http.Request, s *catalog.Snapshot) (*catalog.Key, *dialect.Failure) {
	if f := adoptHeaders(r.Header); f != nil {
		return nil, f
	}
	text, conflict := clientKey(r)
	if conflict {
		return nil, &dialect.Failure{Status: 400, Code: "conflicting_credentials", NoRetry: true,
			Message: "The request carries two different keys; send one, as Authorization: Bearer, x-api-key or x-goog-api-key."}
	}
	if !s.NeedKey() && g.o.Loopback {
		if f := g.sameSite(r); f != nil {
			return nil, f
		}
		return nil, nil
	}
	if text == "" {
		return nil, unauthorized("This gateway needs a client key; send it as Authorization: Bearer. `weir keys create` makes one.")
	}
	k, ok := s.KeyByText(text)
	now := g.o.Now()
	switch {
	case !ok && g.guesses.blocked(r.RemoteAddr):
		return nil, &dialect.Failure{Status: 429, Code: "too_many_failures", RetryAfter: time.Minute,
			Message: "Too many requests with an unknown key came from this address; try again in a minute."}
	case !ok:
		g.guesses.failed(r.RemoteAddr)
		return nil, unauthorized("The client key is not known here; `weir keys list` shows the keys that are.")
	case !k.Active:
		return nil, unauthorized("The client key is revoked or switched off.")
	case k.Expired(now):
		return nil, unauthorized("The client key has expired.")
	case !k.HasScope("inference"):
		return nil, &dialect.Failure{Status: 403, Type: "permission_error", Code: "missing_scope", NoRetry: true,
			Message: "The client key lacks the scope inference."}
	}
	if g.o.KeyUsed != nil {
		g.o.KeyUsed(k, now)
	}
	return k, nil
}

func unauthorized(message string) *dialect.Failure {
	return &dialect.Failure{Status: 401, NoRetry: true, Message: message}
}

// sameSite keeps web pages from spending the operator's accounts while inference is open (SEC-7).
func (g *Gateway) sameSite(r *http.Request) *dialect.Failure {
	if origin := r.Header.Get("Origin"); origin != "" {
		u, err := url.Parse(origin)
		if err != nil || !g.near(u.Hostname()) {
			return &dialect.Failure{Status: 403, Type: "permission_error", Code: "origin_not_allowed", NoRetry: true,
				Message: "Requests from web pages of other hosts are refused while this gateway needs no client key; make one with `weir keys create`."}
		}
	}
	host := r.Host
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if !g.near(strings.Trim(host, "[]")) {
		return &dialect.Failure{Status: 403, Type: "permission_error", Code: "origin_not_allowed", NoRetry: true,
			Message: fmt.Sprintf("The host name %q is not this gateway's while it needs no client key; use its listen address.", host)}
	}
	return nil
}

func (g *Gateway) near(host string) bool {
	if strings.EqualFold(host, "localhost") || strings.HasSuffix(strings.ToLower(host), ".localhost") {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && (ip.Unmap().IsLoopback() || ip == g.listenIP)
}

// guesses limits wrong keys per address (INF-47): above ten in a minute the rest is told to wait. A good key passes all the
// same, since many clients can share one address behind a proxy, and one of them must not lock out the others.
type guesses struct {
	now func() time.Time
	mu  sync.Mutex
	of  map[string]guess // guarded by mu
}

type guess struct {
	since time.Time
	n     int
}

const (
	maxGuesses   = 10
	guessWindow  = time.Minute
	maxAddresses = 10_000
)

func newGuesses(now func() time.Time) *guesses { return &guesses{now: now, of: map[string]guess{}} }

func (g *guesses) blocked(remote string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	x := g.of[address(remote)]
	return x.n >= maxGuesses && g.now().Sub(x.since) < guessWindow
}

func (g *guesses) failed(remote string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.of) >= maxAddresses {
		clear(g.of)
	}
	a, now := address(remote), g.now()
	x := g.of[a]
	if now.Sub(x.since) >= guessWindow {
		x = guess{since: now}
	}
	x.n++
	g.of[a] = x
}

func address(remote string) string {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return remote
	}
	return host
}
