package sdk

import "github.com/weirgate/weir/sdk/wire"

// Examples are a plugin's own test vectors (ABI-2.4): the host runs them before a version goes live.
type Examples []Example

// Example is one of them. Exactly one of the inputs is given.
type Example struct {
	Name     string
	Restate  *Input // by Err
	Classify *Input // by Err
	Plan     *Input // by Req
	Respond  *Input // by Req
	Want     Expectation
	NowMS    int64
}

func (x *Example) input() (wire.Op, *Input) {
	switch {
	case x.Restate != nil:
		return wire.OpRestate, x.Restate
	case x.Classify != nil:
		return wire.OpClassify, x.Classify
	case x.Plan != nil:
		return wire.OpPlan, x.Plan
	case x.Respond != nil:
		return wire.OpRespond, x.Respond
	}
	return 0, &Input{}
}

func (x *Example) write(w *Writer, provider string) {
	op, in := x.input()
	w.Object(func() {
		w.text("name", x.Name)
		w.Key("op").Text(op.String())
		w.Key("input").Raw(in.json(x.NowMS, provider))
		w.Key("expect").Raw(x.Want.json())
		w.int("now_ms", x.NowMS)
	})
}

// Input is the input of an example, made by Err or Req.
type Input struct {
	provider, connection, model, body string
	endpoint                          string
	status, original                  int
	stream                            bool
	auth                              wire.Auth
	baseURL                           string
	secrets                           []string
	data, headers, fields             map[string]string
	failure                           bool
}

// Err is a failed answer with that body.
func Err(status int, body string) *Input {
	return &Input{status: status, original: status, body: body, failure: true}
}

// Req is a request, to Plan or Respond.
func Req(provider, model string) *Input {
	return &Input{provider: provider, model: model, connection: "c1"}
}

// From names the provider of a failed answer; without it, it is the first that the plugin speaks for.
func (in *Input) From(provider string) *Input { in.provider = provider; return in }

// For names the model.
func (in *Input) For(model string) *Input { in.model = model; return in }

// At names the endpoint, /v1/chat/completions without it.
func (in *Input) At(endpoint string) *Input { in.endpoint = endpoint; return in }

// Came sets the status as it came, before the restatement.
func (in *Input) Came(status int) *Input { in.original = status; return in }

// On names the connection.
func (in *Input) On(connection string) *Input { in.connection = connection; return in }

// Streaming makes it a stream.
func (in *Input) Streaming() *Input { in.stream = true; return in }

// Auth says how the account authenticates.
func (in *Input) Auth(a wire.Auth) *Input { in.auth = a; return in }

// BaseURL is the account's address.
func (in *Input) BaseURL(url string) *Input { in.baseURL = url; return in }

// Secrets names the secrets that the account has.
func (in *Input) Secrets(names ...string) *Input { in.secrets = names; return in }

// Data adds what the operator wrote beside the account.
func (in *Input) Data(name, value string) *Input {
	in.data = withHeader(in.data, name, value)
	return in
}

// Header adds a header of the answer.
func (in *Input) Header(name, value string) *Input {
	in.headers = withHeader(in.headers, name, value)
	return in
}

// Field adds a field of the request, in JSON, at a path of RequestFields.
func (in *Input) Field(path, json string) *Input {
	in.fields = withHeader(in.fields, path, json)
	return in
}

// json is the input; provider is the plugin's own, for an Err that names none.
func (in *Input) json(nowMS int64, provider string) []byte {
	if in.provider != "" {
		provider = in.provider
	}
	endpoint := in.endpoint
	if endpoint == "" {
		endpoint = "/v1/chat/completions"
	}
	w := &Writer{}
	w.Object(func() {
		w.Key("provider").Text(provider)
		w.Key("endpoint").Text(endpoint)
		w.Key("stream").Bool(in.stream)
		w.Key("now_ms").Int(nowMS)
		if in.failure {
			in.writeFailure(w)
		} else {
			in.writeRequest(w, provider)
		}
	})
	return w.Bytes()
}

func (in *Input) writeFailure(w *Writer) {
	w.text("connection_id", in.connection)
	w.text("model", in.model)
	w.text("auth", string(in.auth))
	w.Key("source").Text("http")
	w.Key("status").Int(int64(in.status))
	w.Key("original_status").Int(int64(in.original))
	w.mapping("headers", in.headers)
	w.Key("error").Object(func() { w.Key("text").Text(in.body) })
}

func (in *Input) writeRequest(w *Writer, provider string) {
	w.Key("model").Text(provider + "/" + in.model)
	w.Key("upstream_model").Text(in.model)
	w.Key("connection").Object(func() {
		w.Key("id").Text(in.connection)
		w.text("base_url", in.baseURL)
		w.text("auth", string(in.auth))
		w.mapping("data", in.data)
		w.texts("secrets", in.secrets)
	})
	w.object("fields", len(in.fields) > 0, func() {
		for _, f := range sorted(in.fields) {
			w.Key(f).Raw([]byte(in.fields[f]))
		}
	})
}

// Expectation is what must come out: the fields that it names must be equal, others are free.
type Expectation struct{ members []member }

type member struct {
	name string
	raw  []byte
}

// Keep expects no opinion.
var Keep = Expectation{}

func (e Expectation) with(name string, write func(*Writer)) Expectation {
	w := &Writer{}
	write(w)
	e.members = append(append([]member(nil), e.members...), member{name, w.Bytes()})
	return e
}

// Status expects a status.
func Status(n int) Expectation {
	return Expectation{}.with("status", func(w *Writer) { w.Int(int64(n)) })
}

// Reason expects a verdict with that reason.
func Reason(r wire.Reason) Expectation {
	return Expectation{}.with("reason", func(w *Writer) { w.Text(string(r)) })
}

// PlanURL expects a plan with that address.
func PlanURL(url string) Expectation {
	return Expectation{}.with("url", func(w *Writer) { w.Text(url) })
}

// Declined expects a refusal on purpose with that code.
func Declined(code string) Expectation {
	return Expectation{}.with("error", func(w *Writer) { w.Object(func() { w.Key("code").Text(code) }) })
}

// RetryAfter expects a time in milliseconds.
func (e Expectation) RetryAfter(ms int64) Expectation {
	return e.with("retry_after_ms", func(w *Writer) { w.Int(ms) })
}

// Scope expects that scope.
func (e Expectation) Scope(s wire.Scope) Expectation {
	return e.with("scope", func(w *Writer) { w.Text(string(s)) })
}

// JSON expects a member with that value in JSON.
func (e Expectation) JSON(name, json string) Expectation {
	return e.with(name, func(w *Writer) { w.Raw([]byte(json)) })
}

func (e Expectation) json() []byte {
	w := &Writer{}
	if len(e.members) == 0 {
		w.Raw(nil)
		return w.Bytes()
	}
	w.Object(func() {
		for _, m := range e.members {
			w.Key(m.name).Raw(m.raw)
		}
	})
	return w.Bytes()
}
