package upstream

import (
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weirgate/weir/host/allow"
	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// Prepared is a plan made ready for one connection and model: everything that does not change from request to request is
// computed, secrets included. Immutable and safe for concurrent use; it is kept only in memory.
type Prepared struct {
	Method       string
	Dialect      wire.Dialect
	Editor       *body.Editor
	Changes      bool // the plan edits more than the model name (CMB-18)
	MaxBody      int64
	FirstByte    time.Duration
	Connect      time.Duration
	Idle         time.Duration
	Respond      bool // no upstream: op respond answers
	Error        *wire.PlanError
	Usage        *wire.PlanUsage
	StripHeaders []string
	Native       bool // a normal end without content is an answer (STM-61)
	Calls        Calls
	Private      bool // private addresses may be dialled
	TTL          time.Duration

	url      *url.URL // nil: per request
	urlText  template
	header   http.Header // static ones, shared between requests: read only
	perCall  []headerTemplate
	static   values
	allow    []string
	sameWire bool

	provider   *catalog.Provider
	connection *catalog.Connection
}

// Calls are what of a guest a plan asks for while a request runs (ABI-3, ABI-5).
type Calls struct {
	Request  bool // on_request, before the request is sent
	Response bool // on_response, on the answer's head
	Buffer   bool // a plain answer is read whole first, so that on_response sees its fields
	Events   bool // on_event, for each event of a stream
	Stateful bool // one instance has all events of a stream
	End      bool // on_end
}

// callsOf reads them; a word that this host does not know is a fault, so that no plan is half obeyed.
func callsOf(plan *wire.Plan) (Calls, error) {
	c := Calls{
		Buffer: plan.Response.Mode == "buffer", Events: plan.Response.Events == "hook", Stateful: plan.Response.Stateful,
		Request:  slices.Contains(plan.Hooks, wire.OpRequest.String()),
		Response: slices.Contains(plan.Hooks, wire.OpResponse.String()),
		End:      slices.Contains(plan.Hooks, wire.OpEnd.String()),
	}
	for _, w := range [...]struct{ field, value, usual, other string }{
		{"response.mode", plan.Response.Mode, "passthrough", "buffer"},
		{"response.events", plan.Response.Events, "passthrough", "hook"},
		{"response.frames", plan.Response.Frames, "sse", "sse"},
	} {
		if w.value != "" && w.value != w.usual && w.value != w.other {
			return Calls{}, fmt.Errorf("%w: %s %q is not supported by this host", ErrPlanInvalid, w.field, w.value)
		}
	}
	return c, nil
}

type headerTemplate struct {
	name string
	text template
}

// Query is what Prepare needs beside the plan.
type Query struct {
	Provider   *catalog.Provider
	Connection *catalog.Connection
	Model      string // as the client named it
	Upstream   string // upstream model id
	Hosts      []string
	Client     wire.Dialect
	Stream     bool
}

// BaseURL is the connection's own base address, else the provider's.
func BaseURL(p *catalog.Provider, c *catalog.Connection) string {
	if c.BaseURL != "" {
		return c.BaseURL
	}
	return p.BaseURL
}

// Prepare makes plan ready for q. Every fault wraps ErrPlanInvalid.
func Prepare(plan *wire.Plan, q Query) (*Prepared, error) {
	if len(plan.Sign) > 0 && string(plan.Sign) != "null" {
		return nil, fmt.Errorf("%w: sign is not supported by this host", ErrPlanInvalid)
	}
	calls, err := callsOf(plan)
	if err != nil {
		return nil, err
	}
	p := &Prepared{
		Calls:  calls,
		Method: plan.Method, Dialect: plan.Dialect, MaxBody: plan.BodyMaxBytes,
		Respond: plan.Upstream == "none", Error: plan.Error, Usage: plan.Usage, Changes: len(plan.Body) > 0,
		FirstByte: ms(plan.Timeouts.FirstByteMS), Connect: ms(plan.Timeouts.ConnectMS), Idle: ms(plan.Timeouts.IdleMS),
		TTL: ms(plan.TTLMS), sameWire: plan.Dialect == q.Client,
		Private: q.Provider.Category == catalog.Local || q.Provider.AllowPrivate || q.Connection.AllowPrivate || trusted(q),
	}
	if p.Method == "" {
		p.Method = http.MethodPost
	}
	p.Native = plan.Response.Native
	for _, h := range plan.Response.StripHeaders {
		p.StripHeaders = append(p.StripHeaders, textproto.CanonicalMIMEHeaderKey(h))
	}
	model := q.Upstream
	if plan.Dialect == wire.GeminiGenerate { // there it stands in the address alone
		model = ""
	}
	if p.Editor, err = editor(plan.Body, model); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrPlanInvalid, err)
	}
	if p.Respond {
		return p, nil
	}
	p.static = connectionValues(q)
	p.allow, p.provider, p.connection = q.Hosts, q.Provider, q.Connection
	if err := p.prepareURL(plan.URL, q); err != nil {
		return nil, err
	}
	return p, p.prepareHeaders(plan.Headers, q)
}

// trusted: an address that the operator wrote into the configuration file, or gave on the command line, may be private.
// Only what came through the API is held to SEC-5.
func trusted(q Query) bool {
	if q.Connection.BaseURL != "" {
		return q.Connection.ManagedBy != catalog.ByAPI
	}
	return q.Provider.ManagedBy == catalog.ByFile
}

func ms(n int64) time.Duration { return time.Duration(n) * time.Millisecond }

// editor puts the upstream's name of the model first; a plan's own edits come after it and may change it again.
func editor(edits []wire.Edit, model string) (*body.Editor, error) {
	if model == "" {
		return body.Compile(edits)
	}
	first, err := body.Compile([]wire.Edit{{Op: "set", Path: "model", Value: quote(model)}})
	if err != nil {
		return nil, err
	}
	own, err := body.Compile(edits)
	if err != nil {
		return nil, err
	}
	return first.Then(own), nil
}

func (p *Prepared) prepareURL(text string, q Query) error {
	t, err := parseTemplate(text)
	if err != nil {
		return err
	}
	if err := secretsOnlyInQuery(t); err != nil {
		return err
	}
	if t.perRequest() {
		p.urlText = t
		return nil
	}
	p.url, err = p.resolveURL(t, p.static, q.Provider, q.Connection)
	return err
}

// secretsOnlyInQuery: a secret may stand in a header or after the question mark, nowhere else (ABI-3).
func secretsOnlyInQuery(t template) error {
	for _, part := range t.parts {
		if part.name == "" && strings.Contains(part.literal, "?") {
			return nil
		}
		if strings.HasPrefix(part.name, "secret.") {
			return fmt.Errorf("%w: the url places {{%s}} before its query; secrets go into headers or the query only", ErrPlanInvalid, part.name)
		}
	}
	return nil
}

func (p *Prepared) resolveURL(t template, v values, prov *catalog.Provider, conn *catalog.Connection) (*url.URL, error) {
	text, err := t.render(v)
	if err != nil {
		return nil, err
	}
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, fmt.Errorf("%w: the url is not an absolute http or https address", ErrPlanInvalid)
	}
	if u.User != nil {
		return nil, fmt.Errorf("%w: the url carries a user name", ErrPlanInvalid)
	}
	base, err := url.Parse(BaseURL(prov, conn))
	if err == nil && strings.EqualFold(u.Host, base.Host) {
		if base.Scheme == "https" && u.Scheme != "https" {
			return nil, fmt.Errorf("%w: the url leaves https", ErrPlanInvalid)
		}
		return u, nil
	}
	if u.Scheme == "https" && allow.URL(p.allow, u) {
		return u, nil
	}
	return nil, fmt.Errorf("%w: the url names the host %s, which is neither that of base_url nor a granted host", ErrPlanInvalid, u.Hostname())
}

func (p *Prepared) prepareHeaders(headers map[string]string, q Query) error {
	p.header = http.Header{
		"Content-Type": {"application/json"},
		"User-Agent":   {"weir"},
		"Accept":       {"application/json"},
	}
	if q.Stream {
		p.header["Accept"] = []string{"text/event-stream"}
	}
	if p.Dialect == wire.AnthropicMessages {
		p.header["Anthropic-Version"] = []string{"2023-06-01"} // INF-13
	}
	for name, text := range headers {
		if err := p.prepareHeader(name, text); err != nil {
			return err
		}
	}
	for name, text := range q.Provider.Headers {
		if err := setHeader(p.header, textproto.CanonicalMIMEHeaderKey(name), text); err != nil {
			return err
		}
	}
	return nil
}

func (p *Prepared) prepareHeader(name, text string) error {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	if ownHeader(canonical) {
		return fmt.Errorf("%w: header %s is the host's own", ErrPlanInvalid, canonical)
	}
	t, err := parseTemplate(text)
	if err != nil {
		return err
	}
	if t.perRequest() {
		p.perCall = append(p.perCall, headerTemplate{canonical, t})
		return nil
	}
	value, err := t.render(p.static)
	if err != nil {
		return err
	}
	return setHeader(p.header, canonical, value)
}

// setHeader leaves an empty value out and refuses what would break the header: the transport would refuse it too, and that
// would look like a failure of the provider.
func setHeader(h http.Header, canonical, value string) error {
	if canonical == "" || strings.ContainsFunc(canonical, notInName) {
		return fmt.Errorf("%w: %q is no header name", ErrPlanInvalid, canonical)
	}
	if strings.ContainsFunc(value, notInValue) {
		return fmt.Errorf("%w: the value of header %s has a control character", ErrPlanInvalid, canonical)
	}
	if value != "" {
		h[canonical] = []string{value}
	}
	return nil
}

func notInName(r rune) bool {
	return r <= ' ' || r >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, r)
}

func notInValue(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }

// connectionValues resolves the places that depend on connection and model only.
func connectionValues(q Query) values {
	return func(name string) (string, bool) {
		switch name {
		case "connection.id":
			return q.Connection.ID, true
		case "connection.base_url":
			u := strings.TrimRight(BaseURL(q.Provider, q.Connection), "/")
			return u, u != ""
		case "connection.auth":
			return string(q.Connection.AuthType), true
		case "model":
			return q.Model, true
		case "upstream_model":
			return q.Upstream, true
		}
		if key, ok := strings.CutPrefix(name, "connection.data."); ok {
			v, ok := q.Connection.Data[key]
			return v, ok
		}
		if key, ok := strings.CutPrefix(name, "secret."); ok {
			s, ok := q.Connection.Secrets[key]
			return s.Reveal(), ok && s.Set()
		}
		return "", false
	}
}

// perRequestURL resolves an address that holds per-request places, under the same rules as a static one.
func (p *Prepared) perRequestURL(m Moment) (*url.URL, error) {
	return p.resolveURL(p.urlText, p.both(m), p.provider, p.connection)
}
