package manifest

import (
	"regexp"
	"slices"
	"strings"

	"github.com/weirgate/weir/sdk/wire"
)

// MaxEdits is how many edits a plan may hold (ABI-3).
const MaxEdits = 64

func (c *checker) plans(m *Manifest) {
	if len(m.Plans) > 0 && !m.Is(wire.KindExecutor) {
		c.bad("plans", "only an executor has plans; add executor to kinds")
	}
	for i := range m.Plans {
		at := index("plans", i)
		c.globs(at+".match", m.Plans[i].Match)
		for j, a := range m.Plans[i].Match.Auth {
			c.word(index(at+".match.auth", j), a, "api_key", "oauth", "local")
		}
		c.plan(at+".plan", &m.Plans[i].Plan)
		if m.Plans[i].Plan.Upstream == "none" && !c.o.Code {
			c.bad(at+".plan.upstream", "none means that op respond answers, and a pack has no code for it")
		}
	}
}

// CheckPlan validates what op plan of m answered, with the rules of the manifest's own plans.
func (m *Manifest) CheckPlan(p *wire.Plan) []Problem {
	c := &checker{o: Options{Code: true}, later: m.Later}
	c.plan("plan", p)
	return c.problems
}

// CheckEdits validates what on_request or on_response of m answered, likewise.
func (m *Manifest) CheckEdits(e *wire.Edits) []Problem {
	c := &checker{o: Options{Code: true}, later: m.Later}
	c.headers("", e.Headers)
	c.edits("body", e.Body)
	return c.problems
}

func (c *checker) headers(at string, headers map[string]string) {
	for name, v := range headers {
		if !headerShape.MatchString(name) || strings.ContainsAny(v, "\r\n\x00") {
			c.bad(at+`headers["`+name+`"]`, "is not a header that can be sent")
		}
	}
}

func (c *checker) edits(at string, list []wire.Edit) {
	if len(list) > MaxEdits {
		c.bad(at, "has %d edits, at most %d are allowed", len(list), MaxEdits)
	}
	for i, e := range list {
		c.edit(index(at, i), e)
	}
}

func (c *checker) plan(at string, p *wire.Plan) {
	if p.Method == "" {
		p.Method = "POST"
	}
	c.word(at+".method", p.Method, "GET", "POST", "PUT", "PATCH", "DELETE")
	switch {
	case p.Upstream == "none":
	case p.Upstream != "":
		c.word(at+".upstream", p.Upstream, "none")
	case p.URL == "":
		c.bad(at+".url", "is missing; write {{connection.base_url}}/... or an https address")
	default:
		c.planURL(at+".url", p.URL)
	}
	if p.Dialect != "" {
		c.word(at+".dialect", string(p.Dialect), "openai_chat", "openai_responses", "anthropic_messages", "gemini_generate", "raw")
	}
	c.headers(at+".", p.Headers)
	c.edits(at+".body", p.Body)
	c.planHooks(at, p)
	if p.TTLMS < 0 || p.BodyMaxBytes < 0 || min(p.Timeouts.ConnectMS, p.Timeouts.FirstByteMS, p.Timeouts.IdleMS) < 0 {
		c.bad(at, "times and sizes are not negative")
	}
	c.beyond(at, p)
}

// beyond refuses what this host does not do yet, so that no plan is half obeyed (ABI-3).
func (c *checker) beyond(at string, p *wire.Plan) {
	for _, x := range []struct {
		field string
		asked bool
	}{
		{".sign", len(p.Sign) > 0 && string(p.Sign) != "null"},
		{".response.frames", p.Response.Frames == "ndjson" || p.Response.Frames == "aws_eventstream"},
	} {
		if x.asked {
			c.code(Unsupported, at+x.field, "this host does not do that yet; take it out, or use a later version")
		}
	}
	if f := p.Response.Frames; f != "" && f != "ndjson" && f != "aws_eventstream" {
		c.word(at+".response.frames", f, "sse")
	}
}

// planHooks checks what the plan asks of its plugin's code (ABI-3, ABI-5).
func (c *checker) planHooks(at string, p *wire.Plan) {
	for i, h := range p.Hooks {
		c.word(index(at+".hooks", i), h, "on_request", "on_response", "on_event", "on_end")
	}
	if m := p.Response.Mode; m != "" {
		c.word(at+".response.mode", m, "passthrough", "buffer")
	}
	if e := p.Response.Events; e != "" {
		c.word(at+".response.events", e, "passthrough", "hook")
	}
	switch {
	case p.Response.Stateful && p.Response.Events != "hook":
		c.bad(at+".response.stateful", "binds the events of a stream to one instance; set response.events to hook, or take it out")
	case !c.o.Code && len(p.Hooks) > 0:
		c.bad(at+".hooks", "a pack has no code, so its plans can have no hooks")
	case !c.o.Code && p.Response.Events == "hook":
		c.bad(at+".response.events", "a pack has no code that could see events")
	}
}

var (
	headerShape = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]{1,128}$")
	literalHost = regexp.MustCompile(`^https?://[a-z0-9.-]+(:\d{1,5})?(/|$)`)
)

func (c *checker) planURL(field, s string) {
	rest, ok := strings.CutPrefix(s, "{{connection.base_url}}")
	switch {
	case strings.ContainsAny(s, " \r\n\t"):
		c.bad(field, "%q holds white space", s)
	case ok && (rest == "" || rest[0] == '/' || rest[0] == '?'):
	case ok:
		c.bad(field, "after {{connection.base_url}} comes a /, so that the host stays the connection's own")
	case !literalHost.MatchString(s):
		c.bad(field, "%q must start with {{connection.base_url}} or with https:// and a host without templates", s)
	}
}

func (c *checker) edit(at string, e wire.Edit) {
	ops := []string{"set", "set_default", "delete", "rename", "clamp"}
	if !slices.Contains(ops, e.Op) {
		c.word(at+".op", e.Op, ops...)
		return
	}
	if e.Path == "" || e.Path[0] == '.' || strings.HasSuffix(e.Path, ".") && !strings.HasSuffix(e.Path, `\.`) {
		c.bad(at+".path", "%q is not a dot path such as metadata.user", e.Path)
	}
	switch {
	case (e.Op == "set" || e.Op == "set_default") && len(e.Value) == 0:
		c.bad(at+".value", "%s needs a value", e.Op)
	case e.Op == "rename" && e.To == "":
		c.bad(at+".to", "rename needs the new name")
	case e.Op == "clamp" && e.Min == nil && e.Max == nil:
		c.bad(at, "clamp needs min, max or both")
	case e.Op == "clamp" && e.Min != nil && e.Max != nil && *e.Min > *e.Max:
		c.bad(at, "min is above max")
	}
}
