package cooldown

import (
	"slices"
	"time"

	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/sdk/wire"
)

// rejectionSteps is how long each counted refusal in a row takes a model out; the last one is
// REQUEST_REJECTED_MAX_COOLDOWN_MS (COOL-41).
var rejectionSteps = [...]time.Duration{5 * time.Minute, 15 * time.Minute, 45 * time.Minute, time.Hour}

const (
	// rejectionMemory is how old a count may be to go on (COOL-43).
	rejectionMemory = 24 * time.Hour
	// maxRejections bounds the models counted per connection, since their names come from clients; the oldest goes.
	maxRejections = 64
)

// rejected counts a refusal of one request on a healthy token (COOL-40 to COOL-46). With scope model the count alone is
// kept, for the lock of that model; without a known model, or with a wider scope, the connection cools for the time.
func (f failure) rejected(s account.State) (account.State, string) {
	wholeConnection := f.outcome.Verdict.Scope != wire.ScopeModel || f.model == "" // COOL-42, COOL-46
	if wholeConnection && s.Cooling(f.now) {
		return s, "" // COOL-16
	}
	counted, lock := count(s.Rejected, f.model, f.now)
	if lock == 0 {
		return s, "" // the same episode
	}
	s.Rejected = counted
	switch {
	case wholeConnection && !f.connection.DisableCooling:
		return f.cool(s, length{end: lock, level: s.LevelAt(f.now)})
	case s.Cooling(f.now):
		return s, account.KindRejected
	}
	return f.shown(s), account.KindRejected
}

// count returns all with one more refusal of model, and how long that one takes the model out: 0 when the lock of an
// earlier one still runs and nothing was counted (COOL-43).
func count(all []account.Rejection, model string, now int64) ([]account.Rejection, time.Duration) {
	n := 1
	if i := slices.IndexFunc(all, func(r account.Rejection) bool { return r.Model == model }); i >= 0 {
		if account.Ahead(all[i].Until, now) {
			return all, 0
		}
		if !forgotten(all[i], now) {
			n = all[i].Count + 1
		}
	}
	lock := rejectionSteps[min(n, len(rejectionSteps))-1]
	next := without(all, model, now)
	if len(next) >= maxRejections {
		next = next[len(next)-maxRejections+1:] // they are in the order of their last refusal
	}
	next = append(slices.Clip(next), account.Rejection{Model: model, Count: n, At: now, Until: now + lock.Milliseconds()})
	return next, lock
}

// forgotten says whether a count is too old to go on (COOL-43).
func forgotten(r account.Rejection, now int64) bool { return now-r.At > rejectionMemory.Milliseconds() }

// without returns all without the count of model and without forgotten ones: a copy, or nil when none is left.
func without(all []account.Rejection, model string, now int64) []account.Rejection {
	var rest []account.Rejection
	for _, r := range all {
		if r.Model != model && !forgotten(r, now) {
			rest = append(rest, r)
		}
	}
	return rest
}
