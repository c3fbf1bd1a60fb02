package dispatch

import (
	"net/http"
	"sync"
	"time"

	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

// rotation holds an error to the switches of CLS-20. One whose class is off, or whose account has not made as many of them as it
// takes, goes to the client in place of leading to another account, and the account stays in use; what ends an account for good
// still does. A 400 is never held back, and one that would go to the client leads to another account when its class is on.
func (a *attempt) rotation(v wire.Verdict, status int) wire.Verdict {
	class := a.target.Connection.RotationOn(&a.r.c.Catalog.Settings.Rotation, status)
	if class.Threshold == 0 || v.Rejected || v.RequestScoped || v.Fallback == (status == http.StatusBadRequest) {
		return v
	}
	reached := class.On && a.r.d.rotations.reached(a.target.Connection.ID, status, class, a.r.d.Now())
	switch {
	case status != http.StatusBadRequest:
		if !reached {
			v.Fallback, a.stays = false, true
		}
	case reached:
		v.Fallback, a.stays, a.added = true, true, true
	}
	return v
}

// exhausts is v as it takes something out of the rest of the request: a 400 that leads to another account only by CLS-20 speaks for
// its own account.
func (a *attempt) exhausts(v wire.Verdict) wire.Verdict {
	if a.added {
		v.Scope = wire.ScopeModel
	}
	return v
}

// rotations counts the errors of accounts that are not rotated at the first one (CLS-20). The zero value is ready; it is safe for
// concurrent use.
type rotations struct {
	mu   sync.Mutex
	seen map[rotationKey][]time.Time // the latest ones, at most as many as it takes; guarded by mu
}

type rotationKey struct {
	connection string
	status     int
}

// maxRotations bounds the accounts that are counted.
const maxRotations = 4096

// reached counts an error and says whether it is at least the threshold's within the window.
func (r *rotations) reached(connection string, status int, class settings.RotationClass, now time.Time) bool {
	if class.Threshold <= 1 {
		return true
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	k := rotationKey{connection, status}
	if _, known := r.seen[k]; !known && len(r.seen) >= maxRotations {
		r.sweep(now)
	}
	if r.seen == nil {
		r.seen = map[rotationKey][]time.Time{}
	}
	var within []time.Time
	for _, at := range r.seen[k] {
		if now.Sub(at) < class.Window {
			within = append(within, at)
		}
	}
	within = append(within, now)
	within = within[max(0, len(within)-class.Threshold):]
	r.seen[k] = within
	return len(within) >= class.Threshold
}

// sweep drops what no window reaches, and everything when that is not enough: each account then counts from one again.
func (r *rotations) sweep(now time.Time) {
	for k, times := range r.seen {
		if now.Sub(times[len(times)-1]) >= settings.MaxRotationWindow {
			delete(r.seen, k)
		}
	}
	if len(r.seen) >= maxRotations {
		clear(r.seen)
	}
}
