package devkit

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weirgate/weir/sdk/wire"
)

// Grants is what a plugin may do, in the words of the management API (PLG-15).
type Grants struct {
	HTTP      *HTTPGrant `json:"http,omitempty"`
	KV        *KVGrant   `json:"kv,omitempty"`
	Secrets   []string   `json:"secrets,omitempty"`
	Terminate bool       `json:"terminate"`
	Providers []string   `json:"providers,omitempty"`
}

// HTTPGrant are the hosts that a plugin may call.
type HTTPGrant struct {
	Hosts []string `json:"hosts"`
}

// KVGrant is the room that a plugin has.
type KVGrant struct {
	Bytes int `json:"bytes"`
}

// Ask is one permission that a manifest asks for (PLG-12).
type Ask struct {
	Name   string // http, kv, secrets, terminate or providers
	What   string
	Reason string
}

// String is what: reason.
func (a Ask) String() string {
	if a.Reason == "" {
		return a.What + " (no reason given)"
	}
	return a.What + ": " + a.Reason
}

// Asked lists what a manifest asks for, with the reasons, in a fixed order.
func Asked(p wire.Permissions) []Ask {
	var all []Ask
	if p.HTTP != nil {
		all = append(all, Ask{"http", "call " + strings.Join(p.HTTP.Hosts, ", "), p.HTTP.Reason})
	}
	if p.KV != nil {
		all = append(all, Ask{"kv", fmt.Sprintf("keep up to %d bytes of its own", p.KV.Bytes), p.KV.Reason})
	}
	for _, s := range p.Secrets {
		all = append(all, Ask{"secrets", "name the secret " + s.Name + ", without seeing it", s.Reason})
	}
	if p.Terminate != nil {
		all = append(all, Ask{"terminate", "take a connection out of rotation for good", p.Terminate.Reason})
	}
	if p.Providers != nil {
		all = append(all, Ask{"providers", "describe, call and read the key variables of " + strings.Join(p.Providers.IDs, ", "), p.Providers.Reason})
	}
	return all
}

// Grant grants those of the permissions that are named, or all, or none. A name that is not asked for is an error.
func Grant(p wire.Permissions, names []string) (Grants, error) {
	asked := map[string]bool{}
	var known []string
	for _, a := range Asked(p) {
		if !asked[a.Name] {
			known = append(known, a.Name)
		}
		asked[a.Name] = true
	}
	has := func(name string) bool {
		return asked[name] && (slices.Contains(names, name) || slices.Contains(names, "all"))
	}
	for _, name := range names {
		if (name == "all" || name == "none") && len(names) > 1 {
			return Grants{}, fmt.Errorf("%s stands alone; leave out the other names", name)
		}
		if name != "all" && name != "none" && !asked[name] {
			return Grants{}, fmt.Errorf("the plugin does not ask for %q; it asks for %s", name, strings.Join(append(known, "nothing else"), ", "))
		}
	}
	var g Grants
	if has("http") {
		g.HTTP = &HTTPGrant{p.HTTP.Hosts}
	}
	if has("kv") {
		g.KV = &KVGrant{p.KV.Bytes}
	}
	if has("secrets") {
		for _, s := range p.Secrets {
			g.Secrets = append(g.Secrets, s.Name)
		}
	}
	g.Terminate = has("terminate")
	if has("providers") {
		g.Providers = p.Providers.IDs
	}
	return g, nil
}
