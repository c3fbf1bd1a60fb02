package plugin

import (
	"slices"

	"github.com/weirgate/weir/sdk/wire"
)

// Grants is what a plugin may do (PLG-12). The grant is never wider than what the manifest asks for.
type Grants struct {
	HTTPHosts []string `json:"http_hosts,omitempty"` // hosts that plans may name
	KVBytes   int      `json:"kv_bytes,omitempty"`
	Terminate bool     `json:"terminate,omitempty"` // may end a connection (RUL-14)
	Providers []string `json:"providers,omitempty"` // may describe, execute, and read the key variables of (ABI-2.2)
}

// asked is all that a manifest asks for: the grant of a built-in plugin.
func asked(p wire.Permissions) Grants {
	var g Grants
	if p.HTTP != nil {
		g.HTTPHosts = p.HTTP.Hosts
	}
	if p.KV != nil {
		g.KVBytes = p.KV.Bytes
	}
	if p.Providers != nil {
		g.Providers = p.Providers.IDs
	}
	g.Terminate = p.Terminate != nil
	return g
}

// within is what of g the manifest asks for.
func (g Grants) within(p wire.Permissions) Grants {
	most := asked(p)
	both := func(a, b []string) []string {
		return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return !slices.Contains(b, s) })
	}
	return Grants{
		HTTPHosts: both(g.HTTPHosts, most.HTTPHosts),
		KVBytes:   min(g.KVBytes, most.KVBytes),
		Terminate: g.Terminate && most.Terminate,
		Providers: both(g.Providers, most.Providers),
	}
}
