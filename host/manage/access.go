package manage

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/weirgate/weir/host/catalog"
)

// scope is what an endpoint asks of its caller (OBJ-15).
type scope uint8

const (
	open    scope = iota // anybody
	read                 // the admin key, or a key with manage or manage:read
	write                // the admin key, or a key with manage
	metrics              // open while the listener is loopback, else read (OBS-2)
)

// Failures of one address in a window, after which it has to wait (SEC-1).
const (
	failureLimit  = 10
	failureWindow = time.Minute
	maxAddresses  = 4096
)

// gatekeeper decides who may call. Safe for concurrent use.
type gatekeeper struct {
	admin    [32]byte // SHA-256 of the admin key
	hasAdmin bool
	keys     func(text string) (scopes []string, ok bool) // ok: known, active, not expired
	now      func() time.Time

	mu       sync.Mutex // guards failures
	failures map[string]failures
}

type failures struct {
	began time.Time
	count int
}

func newGatekeeper(admin string, keys func(text string) ([]string, bool), now func() time.Time) *gatekeeper {
	return &gatekeeper{
		admin: sha256.Sum256([]byte(admin)), hasAdmin: admin != "", keys: keys, now: now, failures: map[string]failures{},
	}
}

// admit returns nil when the caller of r may do what needs asks (API-1, SEC-1, OBJ-15).
func (g *gatekeeper) admit(r *http.Request, needs scope) *Problem {
	if needs == open {
		return nil
	}
	text, given := bearer(r)
	if !given {
		return problem(http.StatusUnauthorized, "Management needs the admin key, or a key with the scope %s, as Authorization: Bearer.",
			catalog.ScopeManage)
	}
	address := callerAddress(r)
	if wait := g.blocked(address); wait > 0 {
		p := problem(http.StatusTooManyRequests, "Too many wrong keys from this address; wait a minute.")
		p.RetryAfter = wait
		return p
	}
	hash := sha256.Sum256([]byte(text))
	if g.hasAdmin && subtle.ConstantTimeCompare(hash[:], g.admin[:]) == 1 {
		return nil
	}
	scopes, known := g.keys(text)
	if !known {
		g.failed(address)
		return problem(http.StatusUnauthorized, "The key is not known, switched off or expired.")
	}
	for _, s := range scopes {
		if s == catalog.ScopeManage || s == catalog.ScopeManageRead && needs != write {
			return nil
		}
	}
	return problem(http.StatusForbidden, "The key has not the scope that this call needs: %s%s.", catalog.ScopeManage,
		map[bool]string{true: " or " + catalog.ScopeManageRead}[needs != write])
}

func bearer(r *http.Request) (string, bool) {
	kind, text, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	text = strings.TrimSpace(text)
	return text, strings.EqualFold(kind, "bearer") && text != ""
}

// callerAddress is the address of the peer; of IPv6 the /64, since one caller has all of it.
func callerAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	a, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	a = a.Unmap().WithZone("")
	if a.Is4() || a.IsLoopback() {
		return a.String()
	}
	p, _ := a.Prefix(64)
	return p.String()
}

// blocked returns how long the address has to wait.
func (g *gatekeeper) blocked(address string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	f, ok := g.failures[address]
	if !ok || f.count < failureLimit {
		return 0
	}
	return max(failureWindow-g.now().Sub(f.began), 0)
}

func (g *gatekeeper) failed(address string) {
	now := g.now()
	g.mu.Lock()
	defer g.mu.Unlock()
	f, ok := g.failures[address]
	if !ok || now.Sub(f.began) >= failureWindow {
		f = failures{began: now}
	}
	f.count++
	if !ok && len(g.failures) >= maxAddresses {
		g.forget(now)
	}
	g.failures[address] = f
}

// forget makes room: first what is over, else the address that failed first. The caller holds mu.
func (g *gatekeeper) forget(now time.Time) {
	var oldest string
	for a, f := range g.failures {
		if now.Sub(f.began) >= failureWindow {
			delete(g.failures, a)
		} else if oldest == "" || f.began.Before(g.failures[oldest].began) {
			oldest = a
		}
	}
	if len(g.failures) >= maxAddresses {
		delete(g.failures, oldest)
	}
}

// Listener says where the host listens, for the checks of Host and Origin (SEC-3) and the rule of OBS-2.
type Listener struct {
	Host  string   // as configured, without the port; empty or 0.0.0.0 is every address
	Hosts []string // further names by which the gateway may be called
}

// loopback says whether only this machine can connect.
func (l Listener) loopback() bool {
	if l.Host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(l.Host)
	return err == nil && a.Unmap().IsLoopback()
}

// admits refuses a call that a web page may have tricked a browser into: a Host that could be anybody's name for this
// address, or an Origin that is not this gateway's own (SEC-3).
func (l Listener) admits(r *http.Request) *Problem {
	if !l.knows(hostname(r.Host)) {
		return problem(http.StatusForbidden, "The Host header %q is not a name of this gateway; call it by its address.", r.Host).
			coded("origin_not_allowed")
	}
	origin := r.Header.Get("Origin")
	if origin == "" {
		return nil
	}
	if u, err := url.Parse(origin); err != nil || u.Host == "" || !strings.EqualFold(u.Host, r.Host) {
		return problem(http.StatusForbidden, "Calls from pages of %q are not allowed.", origin).coded("origin_not_allowed")
	}
	return nil
}

// knows says whether a browser that was led here by this name was led by its owner. Any name that a public name server
// could answer for is not: it could be an attacker's.
func (l Listener) knows(name string) bool {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if name == "localhost" || strings.HasSuffix(name, ".localhost") || name == strings.ToLower(l.Host) && name != "" {
		return true
	}
	for _, h := range l.Hosts {
		if strings.EqualFold(h, name) {
			return true
		}
	}
	if a, err := netip.ParseAddr(name); err == nil {
		return a.Unmap().IsLoopback() || !l.loopback()
	}
	if l.loopback() || name == "" {
		return false
	}
	return !strings.Contains(name, ".") || strings.HasSuffix(name, ".local") || strings.HasSuffix(name, ".internal")
}

func hostname(hostport string) string {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	return strings.Trim(host, "[]")
}
