package plugin

import (
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/host/plugin/manifest"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// Origin says where a plugin came from.
type Origin string

// The origins. Third-party is everything but Builtin.
const (
	OriginBuiltin Origin = "builtin"
	OriginFolder  Origin = "folder"
)

// The loaders.
const (
	loaderPack = "pack" // data only; no code of the module runs
	loaderRaw  = "raw"
)

// version is one loaded version of a plugin. It is immutable but for its counters, and closed when nobody holds it.
type version struct {
	name     string
	digest   string // sha256 of the module, hex
	origin   Origin
	loader   string
	size     int
	pages    uint32 // of memory at its start
	loadedAt time.Time
	manifest *manifest.Manifest
	raw      []byte // the manifest as JSON
	warnings []manifest.Problem
	table    *rules.Table
	guest    *guest // nil: data only
	order    int    // the operator's
	config   wire.Raw
	granted  Grants
	counters *counters

	holders atomic.Int64 // sets, and the slot
	closed  chan struct{}
}

func (v *version) hold() { v.holders.Add(1) }

// release closes the version when the last holder let go.
func (v *version) release() {
	if v.holders.Add(-1) == 0 {
		if v.guest != nil {
			v.guest.close()
		}
		close(v.closed)
	}
}

// hosts are the granted hosts.
func (v *version) hosts() []string {
	if v.manifest.Permissions.HTTP == nil {
		return nil
	}
	return v.granted.HTTPHosts
}

// matches returns the best specificity of the plugin for a request, 0 when it has no say.
func (v *version) matches(provider, model, endpoint string) int {
	if len(v.manifest.Matches) == 0 {
		return specificity(wire.Match{}, provider, model, endpoint)
	}
	best := 0
	for _, m := range v.manifest.Matches {
		best = max(best, specificity(m, provider, model, endpoint))
	}
	return best
}

// speaksFor says whether the plugin could have a say for any request to the provider.
func (v *version) speaksFor(provider string) bool {
	for _, m := range v.manifest.Matches {
		if closeness(m.Providers, provider) > 0 {
			return true
		}
	}
	return len(v.manifest.Matches) == 0
}

// steady says whether the plugin's say depends on the provider alone.
func (v *version) steady() bool {
	for _, m := range v.manifest.Matches {
		if len(m.Models) > 0 || len(m.Endpoints) > 0 {
			return false
		}
	}
	return true
}
