package ledger

import (
	"strconv"

	"github.com/weirgate/weir/host/translate/jsonw"
)

// encode appends a row as one line of JSON, as encoding/json writes it. There is one for each request, so it is done by hand. The gates
// are left out: they stay in memory (OBJ-18).
func (r *Row) encode(dst []byte) []byte {
	w := jsonw.Writer{B: dst}
	w.Open().Key("requestId").String(r.RequestID).Key("at").String(r.At).Key("durationMs").Int(r.DurationMS)
	w.Key("endpoint").String(r.Endpoint).Key("clientDialect").String(r.ClientDialect)
	optional(&w, "apiKeyId", r.APIKeyID)
	optional(&w, "client", r.Client)
	if w.Key("route"); r.Route == nil {
		w.Null()
	} else {
		w.Open().Key("kind").String(r.Route.Kind).Key("name").String(r.Route.Name).Close()
	}
	w.Key("requestedModel").String(r.RequestedModel)
	optional(&w, "provider", r.Provider)
	optional(&w, "connectionId", r.ConnectionID)
	optional(&w, "model", r.Model)
	w.Key("stream").Bool(r.Stream).Key("status").Int(int64(r.Status)).Key("outcome").String(r.Outcome)
	optional(&w, "reason", r.Reason)
	w.Key("waitedMs").Int(r.WaitedMS)
	whole(&w, "ttftMs", r.TTFTMS)
	r.Tokens.encode(&w)
	if w.Key("costUsd"); r.CostUSD == nil {
		w.Null()
	} else {
		w.Raw(strconv.AppendFloat(nil, *r.CostUSD, 'f', -1, 64))
	}
	w.Key("attempts").List()
	for i := range r.Attempts {
		r.Attempts[i].encode(&w)
	}
	w.End().Key("notes").List()
	for _, n := range r.Notes {
		w.String(n)
	}
	w.End()
	if r.ClientRetry != nil {
		w.Key("clientRetry").Int(*r.ClientRetry)
	}
	if r.Prices != "" {
		w.Key("prices").String(r.Prices)
	}
	if b := r.Bodies; b != nil {
		w.Key("bodies").Open().Key("request").String(b.Request).Key("answer").String(b.Answer).Key("cut").Bool(b.Cut).Close()
	}
	w.Close()
	return w.B
}

func (t *Tokens) encode(w *jsonw.Writer) {
	w.Key("tokens").Open()
	whole(w, "input", t.Input)
	whole(w, "cachedRead", t.CachedRead)
	whole(w, "cacheWrite", t.CacheWrite)
	whole(w, "output", t.Output)
	whole(w, "reasoning", t.Reasoning)
	w.Key("estimated").Bool(t.Estimated).Close()
}

func (a *Attempt) encode(w *jsonw.Writer) {
	w.Open().Key("provider").String(a.Provider).Key("connectionId").String(a.ConnectionID).Key("model").String(a.Model)
	w.Key("at").String(a.At)
	whole(w, "firstByteMs", a.FirstByteMS)
	w.Key("durationMs").Int(a.DurationMS)
	whole(w, "status", a.Status)
	whole(w, "originalStatus", a.OriginalStatus)
	optional(w, "reason", a.Reason)
	optional(w, "scope", a.Scope)
	optional(w, "restatedBy", a.RestatedBy)
	optional(w, "decidedBy", a.DecidedBy)
	w.Key("billed").Bool(a.Billed).Close()
}

func optional(w *jsonw.Writer, name string, s *string) {
	if w.Key(name); s == nil {
		w.Null()
		return
	}
	w.String(*s)
}

func whole[N int | int64](w *jsonw.Writer, name string, n *N) {
	if w.Key(name); n == nil {
		w.Null()
		return
	}
	w.Int(int64(*n))
}
