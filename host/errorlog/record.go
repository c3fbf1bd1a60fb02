package errorlog

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// Record is one failed answer of an upstream: a line of the corpus, and where it came from. weir classify reads it as it is.
type Record struct {
	ID           string            `json:"id"`
	Provider     string            `json:"provider"`
	Auth         wire.Auth         `json:"auth"`
	Model        string            `json:"model"`
	Endpoint     string            `json:"endpoint"`
	Status       int               `json:"status"` // as it came; 0: no HTTP answer
	Headers      map[string]string `json:"headers"`
	Body         string            `json:"body"`           // of no answer: what went wrong
	Code         string            `json:"code,omitempty"` // of no answer: the transport's code
	Stream       bool              `json:"stream_error"`   // it came inside a stream
	Now          time.Time         `json:"now"`            // of its arrival
	RequestID    string            `json:"requestId"`
	ConnectionID string            `json:"connectionId"`
	Verdict      Verdict           `json:"verdict"`
	Plugin       string            `json:"plugin"` // that decided; empty: the host, by status
	Rule         string            `json:"rule"`
}

// Verdict is what an answer was taken for, in the words of the corpus, and what else of it has an effect.
type Verdict struct {
	Status        int                `json:"status"` // that the client sees
	Reason        wire.Reason        `json:"reason"`
	Scope         wire.Scope         `json:"scope"`
	Fallback      bool               `json:"retryable_elsewhere"`
	WaitMS        *int64             `json:"cooldown_ms"` // what the answer said; null: nothing
	Breaker       bool               `json:"trips_breaker"`
	Terminal      bool               `json:"terminal"`
	TerminalState wire.TerminalState `json:"terminal_state,omitempty"`
	ChosenMS      int64              `json:"chosen_cooldown_ms,omitempty"` // the length that the rule chose
	Exact         bool               `json:"exact,omitempty"`
	RequestScoped bool               `json:"request_scoped,omitempty"`
	RestatedBy    string             `json:"restated_by"` // rule, empty: the status stayed
}

// verdictOf is the verdict on a reply as it was left by those who judged it.
func verdictOf(reply *rules.Reply, v wire.Verdict) Verdict {
	out := Verdict{
		Status: rules.HostStatus(reply), Reason: v.Reason, Scope: v.Scope, Fallback: v.Fallback, Breaker: v.Breaker, Terminal: v.Terminal,
		TerminalState: v.SetStatus, ChosenMS: v.Cooldown.Milliseconds(), Exact: v.Exact, RequestScoped: v.RequestScoped,
		RestatedBy: reply.Restated,
	}
	if v.Hinted && !v.Terminal {
		ms := v.RetryAfter.Milliseconds()
		out.WaitMS = &ms
	}
	return out
}

// The most that is kept of the headers of one answer.
const (
	maxHeaders     = 64
	maxHeaderBytes = 1 << 10 // of one value
)

// anyHeader is a plugin that asks for every header.
var anyHeader = wire.Needs{Headers: []string{"*"}}

// headers are those that rules may see, lower case, without secrets.
func headers(h map[string][]string, redact func(string) string) map[string]string {
	out := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(h)) {
		if len(out) < maxHeaders && rules.Visible(anyHeader, name) {
			value := redact(strings.Join(h[name], ", "))
			out[strings.ToLower(name)] = strings.ToValidUTF8(value[:min(len(value), maxHeaderBytes)], "")
		}
	}
	return out
}

// Reply is the answer as the rules saw it: read, and not yet judged. A failure inside an answer of a good status has the status
// that it states there.
func (r *Record) Reply() *rules.Reply {
	out := &rules.Reply{
		Provider: strings.ToLower(r.Provider), Connection: r.ConnectionID, Auth: r.Auth, Model: r.Model, Endpoint: r.Endpoint,
		Stream: r.Stream, Attempt: 1, Source: wire.SourceHTTP, Status: r.Status, Original: r.Status, Body: []byte(r.Body), Now: r.Now,
		Header: make(map[string][]string, len(r.Headers)),
	}
	out.Body = out.Body[:min(len(out.Body), rules.MaxText)]
	for name, value := range r.Headers {
		out.Header[name] = []string{value}
	}
	switch {
	case r.Status == 0:
		out.Source, out.Facts.Code = wire.SourceTransport, r.Code
	case r.Stream:
		out.Source, out.Status = wire.SourceStream, dispatch.EventStatus(out.Body)
	case r.Status < 300:
		if failed, status := dispatch.LooksFailed(wire.OpenAIChat, out.Body); failed {
			out.Status = status
		}
	}
	rules.Read(out)
	return out
}

// encode writes a record as one line, without its end. A body that makes the line longer than a row may be is cut.
func (r *Record) encode(most int) ([]byte, error) {
	for {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(r); err != nil {
			return nil, err
		}
		if b.Len() <= most+1 || r.Body == "" {
			return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
		}
		r.Body = whole(r.Body[:len(r.Body)/2])
	}
}
