// Package allow says which hosts a grant names. It owns the one rule for plans and for http_fetch (ABI-3, ABI-6): a plugin reaches the
// same places whichever way it asks.
package allow

import (
	"net/url"
	"slices"
	"strings"
)

// Place is the host and port of an https address, in one spelling.
func Place(u *url.URL) (host, port string) {
	host, port = strings.TrimSuffix(strings.ToLower(u.Hostname()), "."), u.Port()
	if port == "" {
		port = "443"
	}
	return host, port
}

// Covers says whether a granted host is this one. A grant is a name such as api.example.com, or *.example.com for all names below
// it; with :port it is for that port, else for 443. Letter case does not count.
func Covers(granted, host, port string) bool {
	name, at, given := strings.Cut(strings.ToLower(granted), ":")
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

// URL says whether any of the granted hosts is that of the address.
func URL(granted []string, u *url.URL) bool {
	host, port := Place(u)
	return slices.ContainsFunc(granted, func(g string) bool { return Covers(g, host, port) })
}
