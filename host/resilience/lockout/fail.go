package lockout

import (
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/terminal"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

const (
	// farthest bounds what an upstream or a rule may say (LOCK-22, LOCK-25).
	farthest = 30 * 24 * time.Hour
	// window is how long failures count as a row when the breaker's reset time is not known (LOCK-21).
	window = 30 * time.Minute
	// concurrencyLock is how long a limit of concurrency takes a model out where the connection does not cool (COOL-30).
	concurrencyLock = time.Second
)

// fail writes the lock that a failure earns.
func (g *Gate) fail(at resilience.Moment, t catalog.Target, generation uint64, o resilience.Outcome) []store.Event {
	if !locks(t, o) || g.open(at, t.Provider) { // LOCK-17
		return nil
	}
	f := failure{
		now: at.Now.UnixMilli(), at: at.Now, generation: generation, verdict: o.Verdict, outcome: o,
		limits: at.Catalog.Settings.ModelLockout,
	}
	f.base, f.window = profile(at.Catalog.Settings, t)
	if o.Verdict.Reason == wire.RequestRejected {
		if f.refusal = g.refusal(t); f.refusal == nil || !account.Ahead(f.refusal.Until, f.now) {
			return nil
		}
	}
	ids := []id{idOf(t, o.Verdict, o.Cause.Status)}
	if name := alias(at, t); lockable(name) && exact(name) != ids[0] {
		ids = append(ids, exact(name)) // LOCK-6
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.sweep(at.Now)
	var changed []store.Event
	for _, k := range ids {
		e := entry{Provider: t.Provider.ID, Connection: t.Connection.ID, Shape: k.shape, Model: k.name}
		if before := g.find(t.Connection.ID, k); before != nil {
			e = *before
		}
		if f.apply(&e, g.revision.Load()+1) && g.put(&e, f.now) {
			changed = append(changed, g.event(at, KindSet, &e, t.Model, o.Cause.RequestID)...)
		}
	}
	return changed
}

// locks says whether an outcome is about the model: a verdict with scope model always is (LOCK-11, CLS-15), one about a
// connection only where cooling is off (COOL-19).
func locks(t catalog.Target, o resilience.Outcome) bool {
	v := o.Verdict
	if v.RequestScoped || o.OwnDeadline || o.Fault == resilience.FaultOwnDeadline || o.Fault == resilience.FaultTargetTimer || o.Local || o.Stays {
		return false // COOL-33, COOL-45, CLS-20
	}
	switch v.Scope {
	case wire.ScopeModel:
		bare := v.Plugin == "" && v.Cooldown == 0 && !v.Hinted
		return !(bare && o.Cause.Status == 500 && perModel(t, 500)) // LOCK-14
	case wire.ScopeConnection:
		_, ended := terminal.Means(t, o)
		return t.Connection.DisableCooling && !ended
	case wire.ScopeRequest, wire.ScopeProvider, wire.ScopeNone:
	}
	return false
}

// refusal is the count of refused requests of t's model, which the account keeps (COOL-41).
func (g *Gate) refusal(t catalog.Target) *account.Rejection {
	s := g.book.Peek(t.Connection.ID)
	if s == nil {
		return nil
	}
	for i := range s.Rejected {
		if s.Rejected[i].Model == t.Model {
			return &s.Rejected[i]
		}
	}
	return nil
}

// profile is the connection's base cooldown and the breaker's reset time for the provider's category.
func profile(v *settings.Values, t catalog.Target) (base, reset time.Duration) {
	switch t.Provider.Category {
	case catalog.OAuth:
		base, reset = v.ConnectionCooldown.OAuth.Base, v.ProviderBreaker.OAuth.ResetTimeout
	case catalog.Local:
		base, reset = v.ConnectionCooldown.Local.Base, v.ProviderBreaker.Local.ResetTimeout
	default:
		base, reset = v.ConnectionCooldown.APIKey.Base, v.ProviderBreaker.APIKey.ResetTimeout
	}
	if reset <= 0 {
		reset = window
	}
	return base, reset
}

// failure is everything that decides what one failed attempt does to an entry.
type failure struct {
	now        int64 // Unix milliseconds
	at         time.Time
	generation uint64
	verdict    wire.Verdict
	outcome    resilience.Outcome
	limits     settings.ModelLockout
	base       time.Duration // of the connection's cooldown
	window     time.Duration // LOCK-21
	refusal    *account.Rejection
}

// apply changes e, which is a copy, under the given revision. False: nothing changed.
//
// While a lock runs, or when the attempt began before it was written, a failure is part of the same episode: it counts for
// nothing, and only an end that was named, and that is later, moves the end (LOCK-22, LOCK-24).
func (f *failure) apply(e *entry, revision uint64) bool {
	same := e.locked(f.now) || e.Fence > f.generation
	n := e.Count
	if !same {
		if n++; f.now > e.Memory {
			n = 1 // LOCK-21
		}
	}
	length, explicit := f.length(max(n, 1))
	end := f.now + max(length.Milliseconds(), 1)
	if f.refusal != nil {
		if end, explicit = f.refusal.Until, true; end == e.Until {
			return false // the same episode (COOL-43)
		}
		if n = f.refusal.Count; e.locked(f.now) {
			n = max(n, e.Count) // LOCK-24
		}
	}
	if same && (!explicit || end <= e.Until) {
		return false
	}
	if !e.locked(f.now) {
		e.Since = f.now
	}
	e.Until, e.Count, e.Explicit, e.Reason = max(end, e.Until), max(n, 1), explicit, f.verdict.Reason
	e.Memory = f.now + f.window.Milliseconds() + (e.Until - f.now)
	e.Fence, e.Revision = revision, revision
	e.Cause = f.cause(explicit)
	return true
}

// cause is the answer that locked the model, with who decided so. The place of a time is named only when that time was used.
func (f *failure) cause(explicit bool) *resilience.Cause {
	c := f.outcome.Cause
	if c.At == 0 {
		c.At = f.now
	}
	if c.Plugin == "" && c.Rule == "" {
		c.Plugin, c.Rule = f.verdict.Plugin, f.verdict.Rule
	}
	if c.Source == "" {
		c.Source = f.verdict.HintSource
	}
	if !explicit {
		c.Source = ""
	}
	return &c
}

// length is how long the n-th failure in a row takes the model out, and whether somebody named that length (LOCK-20 to
// LOCK-25).
func (f *failure) length(n int) (length time.Duration, explicit bool) {
	v := f.verdict
	var hint time.Duration
	if v.Hinted {
		hint = max(0, min(v.RetryAfter, farthest))
	}
	if v.Cooldown > 0 && v.Exact {
		return max(min(v.Cooldown, farthest), hint), true
	}
	if v.Reason == wire.ConcurrencyLimited && v.Cooldown == 0 {
		return max(concurrencyLock, hint), hint > 0
	}
	base := f.limits.Base
	soon := !f.limits.Enabled && WaitFor(string(v.Reason)) == resilience.WaitTransient
	if base <= 0 || soon { // what heals by itself soon is left alone as briefly as a connection would be, so that it can be waited for
		base = f.base
	}
	if v.Cooldown > 0 {
		base = v.Cooldown
	}
	if hint > base || hint > 0 && soon && v.Cooldown == 0 {
		return hint, true
	}
	if v.Reason == wire.QuotaExhausted && hint == 0 && v.Cooldown == 0 {
		return min(untilMidnight(f.at, f.limits.Zone), f.limits.Max), true
	}
	if !f.limits.Exponential {
		return min(base, f.limits.Max), false
	}
	return scaled(base, min(n-1, f.limits.MaxSteps), f.limits.Max), false
}

// scaled is base doubled steps times, capped by longest.
func scaled(base time.Duration, steps int, longest time.Duration) time.Duration {
	d := min(base, longest)
	for range steps {
		if d >= longest {
			return longest
		}
		d = min(2*d, longest)
	}
	return d
}

// untilMidnight is the time to the next midnight of zone, UTC when it is nil (LOCK-23).
func untilMidnight(now time.Time, zone *time.Location) time.Duration {
	if zone == nil {
		zone = time.UTC
	}
	y, m, d := now.In(zone).Date()
	return time.Date(y, m, d+1, 0, 0, 0, 0, zone).Sub(now)
}
