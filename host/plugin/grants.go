package plugin

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// Grants is what a plugin may do (PLG-12). The grant is never wider than what the manifest asks for.
type Grants struct {
	HTTPHosts   []string `json:"http_hosts,omitempty"`   // hosts that plans and http_fetch may name
	HTTPPrivate []string `json:"http_private,omitempty"` // those of them that http_fetch may find at private addresses
	KVBytes     int      `json:"kv_bytes,omitempty"`
	Secrets     Secrets  `json:"secrets,omitempty"`
	Terminate   bool     `json:"terminate,omitempty"` // may end a connection (RUL-14)
	Providers   []string `json:"providers,omitempty"` // may describe, execute, and read the key variables of (ABI-2.2)
}

// Secrets are the secrets that one plugin may name, with the values that the operator gave; no value means that it is not set
// yet. In JSON they are a list of names: values go nowhere but into the header of a request (ABI-6).
type Secrets map[string]catalog.Secret

// MarshalJSON writes the names in order.
func (s Secrets) MarshalJSON() ([]byte, error) { return json.Marshal(slices.Sorted(maps.Keys(s))) }

// UnmarshalJSON reads names; they have no values.
func (s *Secrets) UnmarshalJSON(b []byte) error {
	var names []string
	if err := json.Unmarshal(b, &names); err != nil {
		return err
	}
	*s = Secrets{}
	for _, name := range names {
		(*s)[name] = catalog.Secret{}
	}
	return nil
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
	for _, s := range p.Secrets {
		if g.Secrets == nil {
			g.Secrets = Secrets{}
		}
		g.Secrets[s.Name] = catalog.Secret{}
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
	hosts, secrets := both(g.HTTPHosts, most.HTTPHosts), maps.Clone(g.Secrets)
	maps.DeleteFunc(secrets, func(name string, _ catalog.Secret) bool {
		_, wanted := most.Secrets[name]
		return !wanted
	})
	return Grants{
		HTTPHosts:   hosts,
		HTTPPrivate: both(g.HTTPPrivate, hosts),
		KVBytes:     min(g.KVBytes, most.KVBytes),
		Secrets:     secrets,
		Terminate:   g.Terminate && most.Terminate,
		Providers:   both(g.Providers, most.Providers),
	}
}

// with is what both allow together.
func (g Grants) with(o Grants) Grants {
	both := func(a, b []string) []string {
		out := slices.Clone(a)
		for _, s := range b {
			if !slices.Contains(out, s) {
				out = append(out, s)
			}
		}
		return out
	}
	secrets := maps.Clone(g.Secrets)
	for name, value := range o.Secrets {
		if _, has := secrets[name]; !has {
			if secrets == nil {
				secrets = Secrets{}
			}
			secrets[name] = value
		}
	}
	return Grants{
		HTTPHosts: both(g.HTTPHosts, o.HTTPHosts), HTTPPrivate: both(g.HTTPPrivate, o.HTTPPrivate), KVBytes: max(g.KVBytes, o.KVBytes),
		Secrets: secrets, Terminate: g.Terminate || o.Terminate, Providers: both(g.Providers, o.Providers),
	}
}

// beyond names what of g the manifest does not ask for, empty: nothing.
func (g Grants) beyond(p wire.Permissions) []string {
	in := g.within(p)
	var list []string
	missing := func(what string, given, kept []string) {
		for _, s := range given {
			if !slices.Contains(kept, s) {
				list = append(list, what+" "+s)
			}
		}
	}
	missing("the host", g.HTTPHosts, in.HTTPHosts)
	missing("the private host", g.HTTPPrivate, in.HTTPPrivate)
	missing("the secret", slices.Sorted(maps.Keys(g.Secrets)), slices.Sorted(maps.Keys(in.Secrets)))
	missing("the provider", g.Providers, in.Providers)
	if g.KVBytes > in.KVBytes {
		list = append(list, fmt.Sprintf("%d bytes of kv", g.KVBytes))
	}
	if g.Terminate && !in.Terminate {
		list = append(list, "terminate")
	}
	return list
}

// grants is what this guest was told that it may do, nothing before configure.
func (g *guest) grants() Grants {
	var told struct {
		Granted Grants `json:"granted"`
	}
	if json.Unmarshal(g.settings, &told) != nil {
		return Grants{}
	}
	return told.Granted
}

// secret is the value that the operator gives now.
func (r *Runtime) secret(plugin, name string) catalog.Secret {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.settings[plugin].Grants.Secrets[name]
}
