package ledger

import (
	"math"
	"strconv"
	"strings"

	"github.com/weirgate/weir/host/dispatch"
)

// entry is what a request leaves behind. The trail belongs to it from now on; nothing else of the request is held.
type entry struct {
	trail    *dispatch.Trail
	id       string
	endpoint string
	dialect  string
	key      string
	client   string
	retry    string
	route    Route
	model    string
	stream   bool
	outcome  string

	provider, upstream string // of the first target, for a request that was never sent
}

// newEntry takes from a request what its row needs. It allocates nothing.
func newEntry(c *dispatch.Call, t *dispatch.Trail, outcome string) entry {
	e := entry{
		trail: t, id: c.RequestID, endpoint: c.Endpoint, dialect: string(c.Dialect), model: c.Model, stream: c.Stream, outcome: outcome,
		client: first(c.Header["User-Agent"]), retry: first(c.Header["X-Stainless-Retry-Count"]),
	}
	if c.Key != nil {
		e.key = c.Key.ID
	}
	if r := c.Route; r != nil {
		e.route = Route{r.Kind, r.Name}
		if len(r.Targets) > 0 {
			e.provider, e.upstream = r.Targets[0].Provider.ID, r.Targets[0].Model
		}
	}
	return e
}

func first(values []string) string {
	if len(values) == 0 {
		return ""
	}
	return values[0]
}

// served is where the answer came from, else the last attempt went, else the first one would have gone.
func (e *entry) served() (provider, connection, model string) {
	if s := e.trail.Serving(); s.Provider != nil {
		return s.Provider.ID, s.Connection.ID, s.Model
	}
	if last := e.trail.Last(); last != nil {
		return last.Provider, last.Connection, last.Model
	}
	return e.provider, "", e.upstream
}

// reason is why a request did not go well: by its last attempt, else by the gate that left its first target out, else by the code of
// the refusal. A client that left has none.
func (e *entry) reason() string {
	t := e.trail
	if e.outcome == ok || e.outcome == cancelled {
		return ""
	}
	if last := t.Last(); last != nil && last.Verdict.Reason != "" {
		return string(last.Verdict.Reason)
	}
	if len(t.Excluded) > 0 {
		return string(t.Excluded[0].Refusal.Reason)
	}
	if t.Failure != nil {
		return t.Failure.Code
	}
	return ""
}

// The outcomes that have no reason.
const (
	ok        = "ok"
	cancelled = "cancelled"
)

// maxClient is how much of a User-Agent is kept.
const maxClient = 64

// product is the first word of a User-Agent: the client's name and version.
func product(agent string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(agent), " ")
	word = strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return -1
		}
		return r
	}, word)
	return word[:min(len(word), maxClient)]
}

// count reads a client's own number; what is none is negative.
func count(text string) int64 {
	if text == "" {
		return -1
	}
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil {
		return -1
	}
	return n
}

// usd is an amount in whole dollars, to six decimals (GOV-30).
func usd(nano int64) float64 { return math.Round(float64(nano)/1000) / 1e6 }
