package ledger

import (
	"strconv"
	"time"

	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/translate/jsonw"
)

// worth is what a row says beyond its entry.
type worth struct {
	known  bool
	nano   int64  // USD
	prices string // the table that says so
	bodies *Bodies
}

// encode appends the row of an entry as one line of JSON: the document of Row, in its order. There is one for each request, so it is
// written by hand and without the way over a Row. Gates are left out: they stay in memory (OBJ-18).
func (e *entry) encode(dst []byte, v worth) []byte {
	t, start := e.trail, len(dst)
	w := jsonw.Writer{B: append(dst, '\n')} // behind it no comma is needed
	w.Open().Key("requestId").String(e.id)
	stamp(&w, "at", t.Began)
	w.Key("durationMs").Int(t.Took.Milliseconds())
	w.Key("endpoint").String(e.endpoint).Key("clientDialect").String(e.dialect)
	orNull(&w, "apiKeyId", e.key)
	orNull(&w, "client", product(e.client))
	if w.Key("route"); e.route.Kind == "" {
		w.Null()
	} else {
		w.Open().Key("kind").String(e.route.Kind).Key("name").String(e.route.Name).Close()
	}
	provider, connection, model := e.served()
	w.Key("requestedModel").String(e.model)
	orNull(&w, "provider", provider)
	orNull(&w, "connectionId", connection)
	orNull(&w, "model", model)
	w.Key("stream").Bool(e.stream).Key("status").Int(int64(t.Status)).Key("outcome").String(e.outcome)
	orNull(&w, "reason", e.reason())
	w.Key("waitedMs").Int(t.Waited.Milliseconds())
	reached(&w, "ttftMs", t.FirstByte)
	tokens(&w, t)
	if w.Key("costUsd"); v.known {
		var b [32]byte
		w.Raw(strconv.AppendFloat(b[:0], usd(v.nano), 'f', -1, 64))
	} else {
		w.Null()
	}
	w.Key("attempts").List()
	for i := range t.Attempts {
		attempt(&w, &t.Attempts[i])
	}
	w.End().Key("notes").List()
	for _, n := range t.Notes {
		w.String(n)
	}
	w.End()
	if n := count(e.retry); n >= 0 {
		w.Key("clientRetry").Int(n)
	}
	if v.known {
		w.Key("prices").String(v.prices)
	}
	if b := v.bodies; b != nil {
		w.Key("bodies").Open().Key("request").String(b.Request).Key("answer").String(b.Answer).Key("cut").Bool(b.Cut).Close()
	}
	w.Close()
	return append(w.B[:start], w.B[start+1:]...)
}

func tokens(w *jsonw.Writer, t *dispatch.Trail) {
	w.Key("tokens").Open()
	stated(w, "input", t.Usage.Input)
	stated(w, "cachedRead", t.Usage.CachedRead)
	stated(w, "cacheWrite", t.Usage.CacheWrite)
	stated(w, "output", t.Usage.Output)
	stated(w, "reasoning", t.Usage.Reasoning)
	w.Key("estimated").Bool(t.Estimated).Close()
}

// byHost stands for a verdict by the status alone, since nobody had an opinion (CLS-13).
const byHost = "host/status"

func attempt(w *jsonw.Writer, a *dispatch.Attempt) {
	w.Open().Key("provider").String(a.Provider).Key("connectionId").String(a.Connection).Key("model").String(a.Model)
	stamp(w, "at", a.At)
	reached(w, "firstByteMs", a.FirstByte)
	w.Key("durationMs").Int(a.Took.Milliseconds())
	status(w, "status", a.Status)
	status(w, "originalStatus", a.Original)
	var reason, scope, restated, decided string
	if !a.OK && !a.Left {
		reason, scope, restated, decided = string(a.Verdict.Reason), string(a.Verdict.Scope), a.RestatedBy, a.Verdict.Evidence()
		if decided == "" && reason != "" {
			decided = byHost
		}
	}
	orNull(w, "reason", reason)
	orNull(w, "scope", scope)
	orNull(w, "restatedBy", restated)
	orNull(w, "decidedBy", decided)
	w.Key("billed").Bool(a.Billed()).Close()
}

// stamp writes a time as the API does (OBJ-1).
func stamp(w *jsonw.Writer, name string, t time.Time) {
	var b [32]byte
	w.Key(name).Raw(t.UTC().AppendFormat(b[:0], `"2006-01-02T15:04:05.000Z"`))
}

func orNull(w *jsonw.Writer, name, s string) {
	if w.Key(name); s == "" {
		w.Null()
		return
	}
	w.String(s)
}

// reached writes a time that may not have been reached.
func reached(w *jsonw.Writer, name string, d time.Duration) {
	if w.Key(name); d <= 0 {
		w.Null()
		return
	}
	w.Int(d.Milliseconds())
}

func status(w *jsonw.Writer, name string, n int) {
	if w.Key(name); n == 0 {
		w.Null()
		return
	}
	w.Int(int64(n))
}

func stated(w *jsonw.Writer, name string, n int64) {
	if w.Key(name); n < 0 {
		w.Null()
		return
	}
	w.Int(n)
}
