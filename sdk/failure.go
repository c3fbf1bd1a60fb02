package sdk

import "github.com/weirgate/weir/sdk/wire"

// Failure is the input of OnRestate and OnClassify (ABI-4), read as it is asked for.
type Failure struct {
	Value
	body Value
	read bool
}

func failure(v Value) *Failure { return &Failure{Value: v} }

// Provider is the provider's id.
func (f *Failure) Provider() string { return text(f.Value, "provider") }

// ConnectionID is the account's id.
func (f *Failure) ConnectionID() string { return text(f.Value, "connection_id") }

// Model is the model as the client named it.
func (f *Failure) Model() string { return text(f.Value, "model") }

// Endpoint is the canonical name of the upstream's endpoint: /v1/chat/completions.
func (f *Failure) Endpoint() string { return text(f.Value, "endpoint") }

// Stream says whether the client asked for a stream; Source, whether the failure came inside of one.
func (f *Failure) Stream() bool { return f.Get("stream").Bool() }

// Source says where the failure was seen: http, stream_event or transport.
func (f *Failure) Source() wire.Source { return wire.Source(text(f.Value, "source")) }

// Attempt counts the attempts of the request, from 1.
func (f *Failure) Attempt() int { return int(number(f.Value, "attempt")) }

// Status is the status, restated for OnClassify; 0 means that there was no answer.
func (f *Failure) Status() int { return int(number(f.Value, "status")) }

// OriginalStatus is the status as it came.
func (f *Failure) OriginalStatus() int { return int(number(f.Value, "original_status")) }

// Code is the error code that the host found in the body, or the transport code.
func (f *Failure) Code() string { return text(f.Value, "error.code") }

// Type is the error type that the host found in the body.
func (f *Failure) Type() string { return text(f.Value, "error.type") }

// Message is the error message that the host found in the body.
func (f *Failure) Message() string { return text(f.Value, "error.message") }

// Body is the body as far as ErrorText lets it through.
func (f *Failure) Body() string { return text(f.Value, "error.text") }

// Truncated says whether Body is only the beginning.
func (f *Failure) Truncated() bool { return f.Get("error.text_truncated").Bool() }

// Header is a header that Headers declares; the name is in small letters.
func (f *Failure) Header(name string) string {
	s, _ := f.Member("headers").Member(name).Text()
	return s
}

// JSON is the value at path in the body. A body that was cut off is read as far as it goes.
func (f *Failure) JSON(path string) Value {
	if !f.read {
		f.body, f.read = loose(f.Get("error.text").text()), true
	}
	return f.body.Get(path)
}

// ElapsedMS is how long the attempt took.
func (f *Failure) ElapsedMS() int64 { return number(f.Value, "elapsed_ms") }

// NowMS is the host's clock in Unix milliseconds.
func (f *Failure) NowMS() int64 { return number(f.Value, "now_ms") }

// Config is the value at path in the operator's configuration of this plugin.
func (f *Failure) Config(path string) Value { return f.Member("config").Get(path) }

// Restatement is the true status of a misleading answer.
type Restatement struct {
	Status       int
	Code, Note   string
	RetryAfterMS int64  // told to the client only
	Decline      *Error // set: the plugin cannot say, and nothing else here counts
}

func (r *Restatement) write(w *Writer) {
	if r.Decline != nil {
		r.Decline.write(w)
		return
	}
	w.Object(func() {
		w.Key("status").Int(int64(r.Status))
		w.text("code", r.Code)
		w.text("note", r.Note)
		w.int("retry_after_ms", r.RetryAfterMS)
	})
}

// Verdict is the meaning of a failed answer. What is absent follows from the reason; Fallback and NoFallback are as in Rule.
type Verdict struct {
	Reason                  wire.Reason
	Scope                   wire.Scope
	Fallback, NoFallback    bool
	RetryAfterMS, ResetAtMS int64 // what the answer said: a length, or a time
	CooldownMS              int64 // a length of the author's choice
	CountForBreaker         *bool // nil: by reason, scope and status
	Terminal                bool  // needs Permissions.Terminate
	SetStatus               wire.TerminalState
	Message                 string // to the client, in place of the upstream's text
	Confidence              *int   // 0 to 100; nil: sure
	Exact, RequestScoped    bool
	Decline                 *Error // set: the plugin cannot say, and nothing else here counts
}

func (v *Verdict) write(w *Writer) {
	if v.Decline != nil {
		v.Decline.write(w)
		return
	}
	w.Object(func() {
		w.Key("reason").Text(string(v.Reason))
		w.text("scope", string(v.Scope))
		if v.Fallback || v.NoFallback {
			w.Key("fallback").Bool(v.Fallback)
		}
		w.int("retry_after_ms", v.RetryAfterMS)
		w.int("reset_at_ms", v.ResetAtMS)
		w.int("cooldown_ms", v.CooldownMS)
		if v.CountForBreaker != nil {
			w.Key("count_for_breaker").Bool(*v.CountForBreaker)
		}
		w.bool("terminal", v.Terminal)
		w.text("set_status", string(v.SetStatus))
		w.text("message", v.Message)
		if v.Confidence != nil {
			w.Key("confidence").Int(int64(*v.Confidence))
		}
		w.bool("exact", v.Exact)
		w.bool("request_scoped", v.RequestScoped)
	})
}
