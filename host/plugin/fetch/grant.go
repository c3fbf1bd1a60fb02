package fetch

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/weirgate/weir/host/catalog"
)

// Grant is what one plugin may reach.
type Grant struct {
	// Hosts are names such as api.example.com, or *.example.com for all names below; with :port for another port than 443.
	Hosts []string
	// Private are those of Hosts, spelled alike, that may be at loopback, private and shared addresses. Link-local and
	// metadata addresses are never dialled.
	Private []string
	// Secret returns a secret by name; false when the plugin may not use it.
	Secret func(name string) (catalog.Secret, bool)
}

// admit says whether u may be fetched, and whether it may be at a private address.
func (g Grant) admit(u *url.URL) (private bool, err error) {
	if u.Scheme != "https" {
		return false, fmt.Errorf("%w: %s is not asked over https", ErrDenied, u.Hostname())
	}
	if u.User != nil {
		return false, fmt.Errorf("%w: the address of %s carries a user name; give credentials in a header", ErrInvalid, u.Hostname())
	}
	host, port := place(u)
	at := slices.IndexFunc(g.Hosts, func(pattern string) bool { return covers(pattern, host, port) })
	if at < 0 {
		return false, fmt.Errorf("%w: the host %s, port %s, is not granted", ErrDenied, host, port)
	}
	return slices.ContainsFunc(g.Private, func(pattern string) bool { return covers(pattern, host, port) }), nil
}

// place is the host and port of u, in one spelling.
func place(u *url.URL) (host, port string) {
	host, port = strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	if port == "" {
		port = "443"
	}
	return host, port
}

// covers says whether a granted host is this one.
func covers(pattern, host, port string) bool {
	name, at, given := strings.Cut(strings.ToLower(pattern), ":")
	if !given {
		at = "443"
	}
	if at != port || host == "" {
		return false
	}
	if below, wild := strings.CutPrefix(name, "*"); wild {
		return strings.HasPrefix(below, ".") && len(host) > len(below) && strings.HasSuffix(host, below)
	}
	return name == host
}
