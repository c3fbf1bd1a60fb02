package sdk

import "github.com/weirgate/weir/sdk/wire"

// Plan says how to call a provider (ABI-3). It is built by chained calls and cached by the host, so it names secrets by
// templates ({{secret.api_key}}) and never holds one.
type Plan struct {
	plan   wire.Plan
	refuse *Error
}

// POST begins a plan that posts to url, which starts with {{connection.base_url}} or names a host of Permissions.HTTP.
func POST(url string) *Plan { return &Plan{plan: wire.Plan{Method: "POST", URL: url}} }

// GET begins a plan that gets url.
func GET(url string) *Plan { return &Plan{plan: wire.Plan{Method: "GET", URL: url}} }

// NoUpstream begins a plan that calls nobody: Respond answers.
func NoUpstream() *Plan { return &Plan{plan: wire.Plan{Upstream: "none"}} }

// NoPlan is a refusal on purpose: the plugin has no plan for this request, and says why.
func NoPlan(code, message string) *Plan { return &Plan{refuse: &Error{code, message}} }

// Header sends a header. Templates: {{secret.NAME}}, {{connection.data.NAME}}, {{request.id}}, {{request.header.NAME}}.
func (p *Plan) Header(name, value string) *Plan {
	p.plan.Headers = withHeader(p.plan.Headers, name, value)
	return p
}

// Dialect is the wire format upstream; the host translates.
func (p *Plan) Dialect(d wire.Dialect) *Plan { p.plan.Dialect = d; return p }

// Set sets the value at path of the body. Value is nil, a bool, a string, a number, a list of strings, JSON (Raw) or a Value.
func (p *Plan) Set(path string, value any) *Plan { return p.edit("set", path, value) }

// SetDefault is Set where the body has no value.
func (p *Plan) SetDefault(path string, value any) *Plan { return p.edit("set_default", path, value) }

func (p *Plan) edit(op, path string, value any) *Plan {
	e, err := setting(op, path, value)
	if err != nil {
		p.refuse = err
	}
	p.plan.Body = append(p.plan.Body, e)
	return p
}

// Delete removes what stands at path; * is every item of a list.
func (p *Plan) Delete(path string) *Plan {
	p.plan.Body = append(p.plan.Body, wire.Edit{Op: "delete", Path: path})
	return p
}

// Rename gives the member at path another name.
func (p *Plan) Rename(path, to string) *Plan {
	p.plan.Body = append(p.plan.Body, wire.Edit{Op: "rename", Path: path, To: to})
	return p
}

// Clamp moves a number into the bounds.
func (p *Plan) Clamp(path string, least, most float64) *Plan {
	p.plan.Body = append(p.plan.Body, wire.Edit{Op: "clamp", Path: path, Min: &least, Max: &most})
	return p
}

// BodyMax refuses bodies above n bytes.
func (p *Plan) BodyMax(n int64) *Plan { p.plan.BodyMaxBytes = n; return p }

// Usage names the paths of the token counts in an answer.
func (p *Plan) Usage(input, output string) *Plan {
	p.plan.Usage = &wire.PlanUsage{InputTokens: input, OutputTokens: output}
	return p
}

// Timeouts lower the host's own, in milliseconds; 0 says nothing.
func (p *Plan) Timeouts(connectMS, firstByteMS, idleMS int64) *Plan {
	p.plan.Timeouts = wire.PlanTimeouts{ConnectMS: connectMS, FirstByteMS: firstByteMS, IdleMS: idleMS}
	return p
}

func (p *Plan) errors() *wire.PlanError {
	if p.plan.Error == nil {
		p.plan.Error = &wire.PlanError{}
	}
	return p.plan.Error
}

// ErrorText names the paths where the provider puts the text of an error.
func (p *Plan) ErrorText(paths ...string) *Plan { p.errors().TextPaths = paths; return p }

// ErrorCode names the paths where the provider puts the code of an error.
func (p *Plan) ErrorCode(paths ...string) *Plan { p.errors().CodePaths = paths; return p }

// ErrorType names the paths where the provider puts the type of an error.
func (p *Plan) ErrorType(paths ...string) *Plan { p.errors().TypePaths = paths; return p }

// ErrorInStream says how an error looks inside a stream: an event of that name, or a value at that path.
func (p *Plan) ErrorInStream(event, path string) *Plan {
	p.errors().InStream = &wire.PlanErrorInSt{Event: event, Path: path}
	return p
}

// StripHeaders keeps headers of the answer from the client.
func (p *Plan) StripHeaders(names ...string) *Plan { p.plan.Response.StripHeaders = names; return p }

// Buffer has the host read a plain answer whole, up to 4 MiB, so that OnResponse sees its fields.
func (p *Plan) Buffer() *Plan { p.plan.Response.Mode = "buffer"; return p.HookResponse() }

// HookRequest has OnRequest called for each request.
func (p *Plan) HookRequest() *Plan { return p.hook(wire.OpRequest) }

// HookResponse has OnResponse called for each answer.
func (p *Plan) HookResponse() *Plan { return p.hook(wire.OpResponse) }

// HookEvents has OnEvent called for each event of a stream, by any instance of the plugin: it must keep nothing.
func (p *Plan) HookEvents() *Plan {
	p.plan.Response.Events = "hook"
	return p.hook(wire.OpEvent)
}

// HookStreams is HookEvents where all events of one stream come to one instance, so that OnEvent may keep state: see Streams.
func (p *Plan) HookStreams() *Plan {
	p.HookEvents()
	p.plan.Response.Stateful = true
	return p.hook(wire.OpEnd)
}

func (p *Plan) hook(op wire.Op) *Plan {
	for _, h := range p.plan.Hooks {
		if h == op.String() {
			return p
		}
	}
	p.plan.Hooks = append(p.plan.Hooks, op.String())
	return p
}

// TTL has the host ask again after so many milliseconds.
func (p *Plan) TTL(ms int64) *Plan { p.plan.TTLMS = ms; return p }

// For makes the plan a static one: the host uses it for what matches, without a call.
func (p *Plan) For(m Match) PlanRow { return PlanRow{Match: m, Plan: p.plan} }

func (p *Plan) write(w *Writer) {
	if p.refuse != nil {
		p.refuse.write(w)
		return
	}
	writePlan(w, &p.plan)
}

// Edits is what OnRequest and OnResponse add for one request: headers, and edits of the body.
type Edits struct {
	edits  wire.Edits
	refuse *Error
}

// Header sets a header of the request, or of the answer.
func (e *Edits) Header(name, value string) *Edits {
	e.edits.Headers = withHeader(e.edits.Headers, name, value)
	return e
}

// Set is as in Plan.
func (e *Edits) Set(path string, value any) *Edits { return e.edit("set", path, value) }

// SetDefault is as in Plan.
func (e *Edits) SetDefault(path string, value any) *Edits {
	return e.edit("set_default", path, value)
}

func (e *Edits) edit(op, path string, value any) *Edits {
	edit, err := setting(op, path, value)
	if err != nil {
		e.refuse = err
	}
	e.edits.Body = append(e.edits.Body, edit)
	return e
}

// Delete is as in Plan.
func (e *Edits) Delete(path string) *Edits {
	e.edits.Body = append(e.edits.Body, wire.Edit{Op: "delete", Path: path})
	return e
}

// Rename is as in Plan.
func (e *Edits) Rename(path, to string) *Edits {
	e.edits.Body = append(e.edits.Body, wire.Edit{Op: "rename", Path: path, To: to})
	return e
}

// Clamp is as in Plan.
func (e *Edits) Clamp(path string, least, most float64) *Edits {
	e.edits.Body = append(e.edits.Body, wire.Edit{Op: "clamp", Path: path, Min: &least, Max: &most})
	return e
}

func (e *Edits) write(w *Writer) {
	if e.refuse != nil {
		e.refuse.write(w)
		return
	}
	w.Object(func() {
		w.mapping("headers", e.edits.Headers)
		list(w, "body", e.edits.Body, writeEdit)
	})
}

func withHeader(h map[string]string, name, value string) map[string]string {
	if h == nil {
		h = map[string]string{}
	}
	h[name] = value
	return h
}

// setting is an edit that carries a value.
func setting(op, path string, value any) (wire.Edit, *Error) {
	w := &Writer{}
	e := wire.Edit{Op: op, Path: path}
	if !w.any(value) {
		return e, &Error{Internal, op + " " + path + ": values are nil, bool, string, int, int64, float64, []string, Raw or Value"}
	}
	e.Value = w.Bytes()
	return e, nil
}
