package plugin

import (
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/host/plugin/fuel"
	"github.com/weirgate/weir/host/plugin/manifest"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// Origin says where a plugin came from.
type Origin string

// The origins. Third-party is everything but Builtin.
const (
	OriginBuiltin Origin = "builtin"
	OriginAPI     Origin = "api" // put through the management API
	OriginFolder  Origin = "folder"
)

// rank orders the places that one name may come from: the highest wins (PLG-16).
func (o Origin) rank() int {
	switch o {
	case OriginFolder:
		return 2
	case OriginAPI:
		return 1
	}
	return 0
}

// version is one loaded version of a plugin. It is immutable but for its counters, and closed when nobody holds it.
type version struct {
	name     string
	digest   string // sha256 of the bytes as they came, hex
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

	candidate bool   // runs in shadow beside the active version of its name
	signedBy  string // id of the trusted key, empty: none
	tally     tally  // as a shadow

	code       string      // digest of the metered module: the key of its compiled code
	report     fuel.Report // of the metering
	ward       *ward       // nil: data only
	failClosed bool        // a fault of a hook rejects the target (on_violation)

	holders  atomic.Int64 // sets, the slot, and work in the background
	closed   chan struct{}
	deadline *time.Timer // of the drain; set before the slot lets go
}

func (v *version) hold() { v.holders.Add(1) }

// tryHold is hold for who does not know whether the version is still open.
func (v *version) tryHold() (release func(), ok bool) {
	for {
		n := v.holders.Load()
		if n == 0 {
			return nil, false
		}
		if v.holders.CompareAndSwap(n, n+1) {
			return v.release, true
		}
	}
}

// drainFor is how long requests may go on with a version that was replaced before its guest is taken from them (ABI-7 step 6).
const drainFor = 30 * time.Second

// retire has the version close soon: when the last request is done with it, and its guest after drainFor at the latest. The
// caller still holds it.
func (v *version) retire() {
	if v.guest != nil {
		v.deadline = time.AfterFunc(drainFor, v.guest.expire)
	}
	v.release()
}

// release closes the version when the last holder let go.
func (v *version) release() {
	if v.holders.Add(-1) > 0 {
		return
	}
	if v.deadline != nil {
		v.deadline.Stop()
	}
	if v.guest != nil {
		v.guest.close()
	}
	if v.ward != nil {
		v.ward.users.Add(-1)
	}
	close(v.closed)
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

func (v *version) isClosed() bool {
	select {
	case <-v.closed:
		return true
	default:
		return false
	}
}
