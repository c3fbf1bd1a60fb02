package manifest

import (
	"regexp"
	"strings"

	"github.com/weirgate/weir/sdk/wire"
)

// Limits of ABI-1, ABI-2 and ABI-8.
const (
	MaxExamples  = 256
	MaxErrorText = 65536
	MaxMemoryMiB = 32
	maxKVBytes   = 16 << 20
	maxFields    = 64
)

// globs checks the patterns of one match.
func (c *checker) globs(at string, m wire.Match) {
	for _, part := range []struct {
		name string
		list []string
	}{{"providers", m.Providers}, {"models", m.Models}, {"endpoints", m.Endpoints}} {
		for i, g := range part.list {
			field := index(at+"."+part.name, i)
			switch {
			case g == "":
				c.bad(field, "is empty; write * to match everything")
			case len(g) > maxGlob:
				c.bad(field, "has %d bytes, at most %d are allowed", len(g), maxGlob)
			case strings.ContainsAny(g, "?[]{}"):
				c.bad(field, "%q: the only wildcard is *", g)
			case part.name == "endpoints" && g[0] != '/' && g[0] != '*':
				c.bad(field, "%q: an endpoint starts with /, such as /v1/chat/completions", g)
			}
		}
	}
}

func (c *checker) needs(n *wire.Needs) {
	if n.ErrorText != "" && !c.word("needs.error_text", n.ErrorText, "none", "prefix", "full") {
		n.ErrorText = ""
	}
	if n.ErrorTextBytes < 0 || n.ErrorTextBytes > MaxErrorText {
		c.bad("needs.error_text_bytes", "%d is outside 0 to %d", n.ErrorTextBytes, MaxErrorText)
	}
	for i, h := range n.Headers {
		field := index("needs.headers", i)
		switch {
		case h == "" || h != strings.ToLower(h):
			c.bad(field, "%q: write names of headers in small letters", h)
		case Hidden(h):
			c.warn(field, "%q is a credential and never passed", h)
		}
	}
	for i, f := range n.RequestFields {
		if f == "" || strings.Contains(f, "..") || f[0] == '.' || f[len(f)-1] == '.' {
			c.bad(index("needs.request_fields", i), "%q is not a dot path such as messages.-1.content", f)
		}
	}
}

// Hidden says whether a header is never passed to a plugin, whatever it asks for (ABI-2). The name is lower case.
func Hidden(name string) bool {
	switch name {
	case "authorization", "cookie", "set-cookie", "x-api-key", "proxy-authorization", "x-goog-api-key", "api-key":
		return true
	}
	return false
}

func (c *checker) hooks(m *Manifest) {
	kept := m.Hooks[:0:0]
	for i, h := range m.Hooks {
		field := index("hooks", i)
		kind := ""
		switch h {
		case "plan", "respond", "on_request", "on_response", "on_event", "on_end":
			kind = wire.KindExecutor
		case "restate":
			kind = wire.KindRestatement
		case "classify":
			kind = wire.KindClassifier
		case "on_failure":
			c.code(Unsupported, field, "this host does not call %s yet; take it out, or use a later version", h)
			continue
		default:
			c.word(field, h, "plan", "respond", "restate", "classify", "on_request", "on_response", "on_event", "on_end")
			continue
		}
		if !m.Is(kind) {
			c.bad(field, "%s is a hook of kind %s; add it to kinds", h, kind)
		}
		kept = append(kept, h)
	}
	if len(m.Hooks) > 0 && !c.o.Code {
		c.bad("hooks", "a pack has no code, so it can have no hooks; write rules, or a guest")
	}
	m.Hooks = kept
}

var (
	hostShape   = regexp.MustCompile(`^(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*(:\d{1,5})?$`)
	secretShape = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)
)

func (c *checker) permissions(p *wire.Permissions) {
	if p.HTTP != nil {
		for i, h := range p.HTTP.Hosts {
			if !hostShape.MatchString(h) {
				c.bad(index("permissions.http.hosts", i), "%q is not a host name such as api.example.com", h)
			}
		}
	}
	if p.KV != nil && (p.KV.Bytes < 1 || p.KV.Bytes > maxKVBytes) {
		c.bad("permissions.kv.bytes", "%d is outside 1 to %d", p.KV.Bytes, maxKVBytes)
	}
	for i, s := range p.Secrets {
		if !secretShape.MatchString(s.Name) {
			c.bad(index("permissions.secrets", i)+".name", "%q must be letters, digits and _", s.Name)
		}
	}
	if p.Providers != nil {
		for i, id := range p.Providers.IDs {
			if !idShape.MatchString(id) {
				c.bad(index("permissions.providers.ids", i), "%q is not the id of a provider", id)
			}
		}
	}
}

func (c *checker) limits(l *wire.Limits) {
	if l.MemoryMiB < 0 || l.MemoryMiB > MaxMemoryMiB {
		c.bad("limits.memory_mib", "%d is outside 1 to %d; limits may only lower the host's numbers", l.MemoryMiB, MaxMemoryMiB)
	}
	for op, n := range l.Fuel {
		budget, ok := fuel[op]
		switch {
		case !ok:
			c.word("limits.fuel."+op, op, "plan", "respond", "describe", "configure", "restate", "classify", "on_request", "on_response", "on_event", "on_end")
		case n < 1 || n > budget:
			c.bad("limits.fuel."+op, "%d is outside 1 to %d; limits may only lower the host's numbers", n, budget)
		}
	}
}

// fuel holds the default budgets of ABI-8: what a manifest may lower.
var fuel = map[string]int64{
	"plan": 20_000_000, "respond": 20_000_000, "describe": 20_000_000, "configure": 20_000_000,
	"on_request": 2_000_000, "on_response": 2_000_000, "restate": 2_000_000, "classify": 2_000_000,
	"on_event": 200_000, "on_end": 200_000,
}

func (c *checker) examples(m *Manifest) {
	for i, x := range m.Examples {
		at := index("examples", i)
		c.word(at+".op", x.Op, "plan", "respond", "restate", "classify", "on_request", "on_response")
		if !isObject(x.Input) {
			c.bad(at+".input", "must be an object: the input of %s", x.Op)
		}
		if len(x.Expect) == 0 {
			c.bad(at+".expect", "is missing; write what must come out, or null for no opinion")
		}
	}
}
