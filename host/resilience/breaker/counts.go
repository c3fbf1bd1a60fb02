package breaker

import (
	"strings"
	"sync"
	"time"

	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/sdk/wire"
)

// KindOf is the kind of a failure (BRK-24). Which 429 says that a quota is used up, its verdict says.
func KindOf(o resilience.Outcome) Kind {
	switch {
	case o.Cause.Status != 429:
		return Transient
	case o.Verdict.Reason == wire.QuotaExhausted:
		return QuotaExhausted
	}
	return RateLimit // a limit of concurrency included
}

// ServiceFailure says whether an outcome speaks against its provider as a service (BRK-10 to BRK-12, BRK-14): what a
// breaker counts, repetitions and operator's kinds aside. The provider cooldown counts the same (PCD-6).
func ServiceFailure(at resilience.Moment, o resilience.Outcome) bool {
	return evidence(o) && wire.DefaultBreaker(o.Verdict.Scope, o.Cause.Status) && !spared(at, o)
}

// evidence says whether an outcome is a failure that may speak against anything but this gateway and this request
// (BRK-11, BRK-12).
func evidence(o resilience.Outcome) bool {
	v := o.Verdict
	switch {
	case o.OK, o.Ignore, o.Local, v.SkipBreaker, v.RequestScoped, v.Rejected:
		return false
	case v.Scope != wire.ScopeProvider && v.Scope != wire.ScopeConnection: // one model's capacity, one request
		return false
	}
	switch o.Fault {
	case resilience.FaultTargetTimer, resilience.FaultReadiness, resilience.FaultEmptyContent, resilience.FaultStall:
		return false
	case resilience.FaultEarlyEOF:
		return v.Reason != wire.Overloaded && !strings.Contains(strings.ToLower(o.Cause.Message), "overloaded")
	case resilience.FaultAnswer, resilience.FaultUnreachable, resilience.FaultTransport, resilience.FaultOwnDeadline:
	}
	return true
}

// spared says whether the place of the attempt keeps its failure from counting (BRK-14): a combo that goes on to the same
// provider, unless the network is what failed; and a direct request that never left this network.
func spared(at resilience.Moment, o resilience.Outcome) bool {
	if o.Fault == resilience.FaultUnreachable {
		return !at.Combo
	}
	return at.Combo && o.SiblingNext
}

// counts says whether the failure counts and whether for its kind alone. A 429 does only where the operator set a
// threshold for its kind (BRK-24). A probe is the one test of a recovery, so it decides whatever target comes next.
func (pr *profile) counts(at resilience.Moment, o resilience.Outcome, probe bool) (counted, alone bool) {
	if probe {
		o.SiblingNext = false
	}
	if o.Cause.Status == 429 {
		return *pr.kinds.of(KindOf(o)) > 0 && evidence(o) && !spared(at, o), true
	}
	return ServiceFailure(at, o), false
}

// The windows and sizes of BRK-13.
const (
	sameConnection   = 5 * time.Second
	sameNetwork      = 10 * time.Second
	mostConnections  = 10_000
	mostUnreachables = 1_000
)

// Repeats tells failures that are one event from new ones (BRK-13). The zero value is ready; safe for concurrent use.
type Repeats struct {
	mu          sync.Mutex
	connections recent // guarded by mu
	unreachable recent // guarded by mu
}

// Again says whether the failure of connection at now (Unix milliseconds) is the same event as one that counted: of the
// same connection within 5 s, or the same provider out of reach within 10 s. Otherwise it is noted as one that counts.
func (r *Repeats) Again(now int64, provider, connection string, unreachable bool) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.connections.has(connection, now, sameConnection) || unreachable && r.unreachable.has(provider, now, sameNetwork) {
		return true
	}
	r.connections.note(connection, now, sameConnection, mostConnections)
	if unreachable {
		r.unreachable.note(provider, now, sameNetwork, mostUnreachables)
	}
	return false
}

// Len counts what is remembered, of connections and of providers together.
func (r *Repeats) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.connections) + len(r.unreachable)
}

// recent is when something last counted, by id.
type recent map[string]int64

func (r recent) has(id string, now int64, window time.Duration) bool {
	at, ok := r[id]
	return ok && now-at < window.Milliseconds() && at-now < window.Milliseconds()
}

// note adds id and keeps at most most entries: those whose window is over go first, then the oldest.
func (r *recent) note(id string, now int64, window time.Duration, most int) {
	m := *r
	if m == nil {
		m = recent{}
		*r = m
	}
	if _, known := m[id]; !known && len(m) >= most {
		oldest := id
		for other, at := range m {
			if now-at >= window.Milliseconds() {
				delete(m, other)
			} else if oldest == id || at < m[oldest] {
				oldest = other
			}
		}
		if len(m) >= most {
			delete(m, oldest)
		}
	}
	m[id] = now
}
