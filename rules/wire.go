package rules

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/weirgate/weir/sdk/wire"
)

// FromWire returns the reply that the input of a restate or classify hook describes (ABI-4), read as a real one is: the
// text is the body, and facts that the input states itself win. So a plugin's examples take the path of real answers
// (ABI-2.4).
func FromWire(w wire.Reply) *Reply {
	r := &Reply{
		Provider: w.Provider, Connection: w.ConnectionID, Auth: w.Auth, Model: w.Model, Endpoint: w.Endpoint, Stream: w.Stream,
		Attempt: w.Attempt, Source: w.Source, Status: w.Status, Original: w.OriginalStatus, Header: map[string][]string{},
		Body: []byte(w.Error.Text), BodyBytes: w.Error.TextBytes, Now: time.UnixMilli(w.NowMS),
		Elapsed: time.Duration(w.ElapsedMS) * time.Millisecond, BytesSent: w.BytesSent,
		Facts: Facts{Code: w.Error.Code},
	}
	if r.Original == 0 {
		r.Original = r.Status
	}
	if r.Source == "" {
		r.Source = wire.SourceHTTP
		if r.Status == 0 {
			r.Source = wire.SourceTransport
		}
	}
	if as := HostStatus(&Reply{Source: r.Source, Status: r.Original, Original: r.Original}); r.Status != r.Original && r.Status != as {
		r.Restated = "input" // by whom, the input does not say (RST-9 asks only whether)
	}
	for name, v := range w.Headers {
		r.Header[strings.ToLower(name)] = []string{v}
	}
	if len(r.Body) == 0 && r.Source != wire.SourceTransport {
		r.Body = []byte(w.Error.Message)
	}
	Read(r)
	for _, given := range []struct {
		text string
		to   *string
	}{{w.Error.Code, &r.Facts.Code}, {w.Error.Type, &r.Facts.Type}, {w.Error.Message, &r.Facts.Message}} {
		if given.text != "" {
			*given.to = given.text
		}
	}
	return r
}

// MarshalVerdict writes v in the words of ABI-4, every field, as the expectations of examples name them.
func MarshalVerdict(v wire.Verdict) []byte {
	return marshal(map[string]any{
		"reason": v.Reason, "scope": v.Scope, "fallback": v.Fallback, "count_for_breaker": v.Breaker,
		"terminal": v.Terminal, "set_status": v.SetStatus, "retry_after_ms": v.RetryAfter.Milliseconds(),
		"cooldown_ms": v.Cooldown.Milliseconds(), "exact": v.Exact, "request_scoped": v.RequestScoped,
		"message": v.Message, "confidence": v.Confidence, "plugin": v.Plugin, "rule": v.Rule,
	})
}

// MarshalRestatement writes r in the words of ABI-4, every field; keep and what the rule is called too.
func MarshalRestatement(r wire.Restatement) []byte {
	return marshal(map[string]any{
		"status": r.Status, "code": r.Code, "note": r.Note, "retry_after_ms": r.RetryAfter.Milliseconds(), "keep": r.Keep,
		"plugin": r.Plugin, "rule": r.Rule,
	})
}

// marshal cannot fail: the values are strings, numbers and booleans.
func marshal(fields map[string]any) []byte {
	b, err := json.Marshal(fields)
	if err != nil {
		return []byte("{}")
	}
	return b
}
