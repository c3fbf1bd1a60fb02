package fetch

import (
	"fmt"
	"net/url"
	"slices"

	"github.com/weirgate/weir/host/allow"
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
	host, port := allow.Place(u)
	at := slices.IndexFunc(g.Hosts, func(pattern string) bool { return allow.Covers(pattern, host, port) })
	if at < 0 {
		return false, fmt.Errorf("%w: the host %s, port %s, is not granted", ErrDenied, host, port)
	}
	return slices.ContainsFunc(g.Private, func(pattern string) bool { return allow.Covers(pattern, host, port) }), nil
}
