package sdk

import "github.com/weirgate/weir/sdk/wire"

// PlanRequest is the input of Plan (ABI-3). More of it is read with Get.
type PlanRequest struct {
	Value
	Provider, Model, UpstreamModel, Endpoint string
	ConnectionID                             string
	Stream                                   bool
}

func planRequest(v Value) *PlanRequest {
	return &PlanRequest{
		Value: v, Provider: text(v, "provider"), Model: text(v, "model"), UpstreamModel: text(v, "upstream_model"),
		Endpoint: text(v, "endpoint"), ConnectionID: text(v, "connection.id"), Stream: v.Get("stream").Bool(),
	}
}

// Auth is how the account authenticates.
func (r *PlanRequest) Auth() wire.Auth { return wire.Auth(text(r.Value, "connection.auth")) }

// BaseURL is the account's address, without a slash at its end. Prefer {{connection.base_url}} in the plan.
func (r *PlanRequest) BaseURL() string { return text(r.Value, "connection.base_url") }

// Data is what the operator wrote beside the account: an organisation, a region.
func (r *PlanRequest) Data(name string) string {
	s, _ := r.Get("connection.data").Member(name).Text()
	return s
}

// HasSecret says whether the account has a secret of that name. Its value never crosses.
func (r *PlanRequest) HasSecret(name string) bool {
	has := false
	r.Get("connection.secrets").Each(func(_ string, item Value) bool {
		s, _ := item.Text()
		has = s == name
		return !has
	})
	return has
}

// Config is the value at path in the operator's configuration of this plugin.
func (r *PlanRequest) Config(path string) Value { return r.Member("config").Get(path) }

// Request is the input of OnRequest and Respond (ABI-3).
type Request struct {
	PlanRequest
	NowMS        int64
	BodyBytes    int
	MessageCount int
}

func request(v Value) *Request {
	return &Request{
		PlanRequest: *planRequest(v), NowMS: number(v, "now_ms"),
		BodyBytes: int(number(v, "body_bytes")), MessageCount: int(number(v, "message_count")),
	}
}

// Field is the value of the request at a path of RequestFields; longer ones than 4 KiB are {"truncated": n}.
func (r *Request) Field(path string) Value { return r.Member("fields").Member(path) }

// Response is the input of OnResponse (ABI-3).
type Response struct {
	Value
	Status int
}

func response(v Value) *Response { return &Response{Value: v, Status: int(number(v, "status"))} }

// Header is a header that Headers declares; the name is in small letters.
func (r *Response) Header(name string) string {
	s, _ := r.Member("headers").Member(name).Text()
	return s
}

// Field is a value of the answer, for a plan with Buffer.
func (r *Response) Field(path string) Value { return r.Member("fields").Member(path) }

// Answer is the output of Respond: a body, or events.
type Answer struct {
	Status  int
	Headers map[string]string
	Body    []byte // JSON
	Events  []AnswerEvent
	Decline *Error // set: the plugin cannot answer, and nothing else here counts
}

func (a *Answer) write(w *Writer) {
	if a.Decline != nil {
		a.Decline.write(w)
		return
	}
	w.Object(func() {
		w.Key("status").Int(int64(a.Status))
		w.mapping("headers", a.Headers)
		if len(a.Body) > 0 {
			w.Key("body").Raw(a.Body)
		}
		list(w, "events", a.Events, func(w *Writer, e AnswerEvent) {
			w.Object(func() {
				w.int("delay_ms", e.DelayMS)
				w.text("event", e.Event)
				w.Key("data").Text(e.Data)
			})
		})
	})
}
