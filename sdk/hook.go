package sdk

import "github.com/weirgate/weir/sdk/wire"

// Failure is the input of OnRestate and OnClassify (ABI-4), read as it is asked for.
type Failure struct{ Value }

// Provider is the provider's id.
func (f *Failure) Provider() string { return f.text("provider") }

// Model is the model as the client named it.
func (f *Failure) Model() string { return f.text("model") }

// Status is the status, restated for OnClassify; 0 means that there was no answer.
func (f *Failure) Status() int { return f.int("status") }

// OriginalStatus is the status as it came.
func (f *Failure) OriginalStatus() int { return f.int("original_status") }

// Code is the error code that the host found in the body.
func (f *Failure) Code() string { return f.text("error.code") }

// Message is the error message that the host found in the body.
func (f *Failure) Message() string { return f.text("error.message") }

// Body is the body as far as ErrorText lets it through.
func (f *Failure) Body() string { return f.text("error.text") }

// Header is a header that Needs declares; the name is lower case.
func (f *Failure) Header(name string) string {
	s, _ := f.Member("headers").Member(name).Text()
	return s
}

// JSON is the value at path in the body.
func (f *Failure) JSON(path string) Value { return Parse([]byte(f.Body())).Get(path) }

// NowMS is the host's clock in Unix milliseconds.
func (f *Failure) NowMS() int64 {
	n, _ := f.Get("now_ms").Int()
	return n
}

func (f *Failure) text(path string) string {
	s, _ := f.Get(path).Text()
	return s
}

func (f *Failure) int(path string) int {
	n, _ := f.Get(path).Int()
	return int(n)
}

// Restatement is the true status of a misleading answer.
type Restatement struct {
	Status       int
	Code, Note   string
	RetryAfterMS int64
}

func (r *Restatement) write(w *Writer) {
	w.Object(func() {
		w.Key("status").Int(int64(r.Status))
		w.text("code", r.Code)
		w.text("note", r.Note)
		w.int("retry_after_ms", r.RetryAfterMS)
	})
}

// Verdict is the meaning of a failed answer. Scope, when absent, follows from the reason; Fallback and NoFallback as in Rule.
type Verdict struct {
	Reason                              wire.Reason
	Scope                               wire.Scope
	Fallback, NoFallback                bool
	RetryAfterMS, ResetAtMS, CooldownMS int64
	Terminal                            bool
	SetStatus                           wire.TerminalState
	Message                             string
	Exact, RequestScoped                bool
}

func (v *Verdict) write(w *Writer) {
	w.Object(func() {
		w.Key("reason").Text(string(v.Reason))
		w.text("scope", string(v.Scope))
		if v.Fallback || v.NoFallback {
			w.Key("fallback").Bool(v.Fallback)
		}
		w.int("retry_after_ms", v.RetryAfterMS)
		w.int("reset_at_ms", v.ResetAtMS)
		w.int("cooldown_ms", v.CooldownMS)
		w.bool("terminal", v.Terminal)
		w.text("set_status", string(v.SetStatus))
		w.text("message", v.Message)
		w.bool("exact", v.Exact)
		w.bool("request_scoped", v.RequestScoped)
	})
}

// PlanRequest is the input of Plan (ABI-3).
type PlanRequest struct {
	Value
	Provider, Model, UpstreamModel, Endpoint, ConnectionID string
	Stream                                                 bool
}

func planRequest(v Value) *PlanRequest {
	return &PlanRequest{
		Value: v, Provider: text(v, "provider"), Model: text(v, "model"), UpstreamModel: text(v, "upstream_model"),
		Endpoint: text(v, "endpoint"), ConnectionID: text(v, "connection.id"), Stream: v.Get("stream").Bool(),
	}
}

// Request is the input of Respond (ABI-3).
type Request struct {
	PlanRequest
	NowMS     int64
	BodyBytes int
}

// Field is the value of the request at a path of Needs.RequestFields; longer ones than 4 KiB are {"truncated": n}.
func (r *Request) Field(path string) Value { return r.Member("fields").Member(path) }

func request(v Value) *Request {
	r := &Request{PlanRequest: *planRequest(v)}
	r.NowMS, _ = v.Get("now_ms").Int()
	n, _ := v.Get("body_bytes").Int()
	r.BodyBytes = int(n)
	return r
}

func text(v Value, path string) string {
	s, _ := v.Get(path).Text()
	return s
}

// Answer is the output of Respond: a body, or events.
type Answer struct {
	Status  int
	Headers map[string]string
	Body    []byte // JSON
	Events  []wire.AnswerEvent
}

func (a *Answer) write(w *Writer) {
	w.Object(func() {
		w.Key("status").Int(int64(a.Status))
		w.mapping("headers", a.Headers)
		if len(a.Body) > 0 {
			w.Key("body").Raw(a.Body)
		}
		list(w, "events", a.Events, func(w *Writer, e wire.AnswerEvent) {
			w.Object(func() {
				w.int("delay_ms", e.DelayMS)
				w.text("event", e.Event)
				w.Key("data").Text(e.Data)
			})
		})
	})
}
