package ledger

import (
	"math"
	"strconv"
	"strings"
	"time"

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

// row makes the row of an entry, but for its cost and texts.
func (e *entry) row() *Row {
	t := e.trail
	r := &Row{
		RequestID: e.id, At: stamp(t.Began), DurationMS: t.Took.Milliseconds(), Endpoint: e.endpoint, ClientDialect: e.dialect,
		APIKeyID: orNull(e.key), Client: orNull(product(e.client)), RequestedModel: e.model, Stream: e.stream, Status: t.Status,
		Outcome: e.outcome, WaitedMS: t.Waited.Milliseconds(), TTFTMS: milliseconds(t.FirstByte), Notes: t.Notes,
		Attempts: make([]Attempt, 0, len(t.Attempts)), ClientRetry: count(e.retry),
		Tokens: Tokens{
			Input: stated(t.Usage.Input), CachedRead: stated(t.Usage.CachedRead), CacheWrite: stated(t.Usage.CacheWrite),
			Output: stated(t.Usage.Output), Reasoning: stated(t.Usage.Reasoning), Estimated: t.Estimated,
		},
	}
	if r.Notes == nil {
		r.Notes = []string{}
	}
	if e.route.Kind != "" {
		r.Route = &e.route
	}
	for i := range t.Attempts {
		r.Attempts = append(r.Attempts, attemptOf(&t.Attempts[i]))
	}
	provider, connection, model := e.served()
	r.Provider, r.ConnectionID, r.Model = orNull(provider), orNull(connection), orNull(model)
	r.Reason = orNull(e.reason())
	return r
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

func attemptOf(a *dispatch.Attempt) Attempt {
	out := Attempt{
		Provider: a.Provider, ConnectionID: a.Connection, Model: a.Model, At: stamp(a.At), FirstByteMS: milliseconds(a.FirstByte),
		DurationMS: a.Took.Milliseconds(), Status: number(a.Status), OriginalStatus: number(a.Original), Billed: a.Billed(),
	}
	if !a.OK && !a.Left {
		out.Reason, out.Scope = orNull(string(a.Verdict.Reason)), orNull(string(a.Verdict.Scope))
		out.RestatedBy, out.DecidedBy = orNull(a.RestatedBy), orNull(a.Verdict.Evidence())
	}
	return out
}

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

// count reads a client's own number; what is none is nothing.
func count(text string) *int64 {
	n, err := strconv.ParseInt(strings.TrimSpace(text), 10, 32)
	if err != nil || n < 0 {
		return nil
	}
	return &n
}

// usd is an amount in whole dollars, to six decimals (GOV-30).
func usd(nano int64) *float64 {
	v := math.Round(float64(nano)/1000) / 1e6
	return &v
}

// stamp writes a time as the API does (OBJ-1).
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func number(n int) *int {
	if n == 0 {
		return nil
	}
	return &n
}

func stated(n int64) *int64 {
	if n < 0 {
		return nil
	}
	return &n
}

// milliseconds is a time that may not have been reached.
func milliseconds(d time.Duration) *int64 {
	if d <= 0 {
		return nil
	}
	ms := d.Milliseconds()
	return &ms
}
