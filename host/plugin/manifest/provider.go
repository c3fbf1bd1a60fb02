package manifest

import (
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/weirgate/weir/sdk/wire"
)

var (
	idShape  = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	envShape = regexp.MustCompile(`^[A-Z_][A-Z0-9_]*$`)
)

// generation names the dialects that each generation endpoint may have; the others of INF-7 are raw only.
var generation = map[string]wire.Dialect{
	"/v1/chat/completions":           wire.OpenAIChat,
	"/v1/responses":                  wire.OpenAIResponses,
	"/v1/messages":                   wire.AnthropicMessages,
	"/v1beta/models:generateContent": wire.GeminiGenerate,
}

func (c *checker) providers(m *Manifest) {
	if len(m.Providers) > 0 && !m.Is(wire.KindExecutor) {
		c.bad("providers", "only an executor describes providers; add executor to kinds")
	}
	seen := map[string]int{}
	for i := range m.Providers {
		p := &m.Providers[i]
		at := index("providers", i)
		for j, id := range append([]string{p.ID}, p.Aliases...) {
			field := at + ".id"
			if j > 0 {
				field = index(at+".aliases", j-1)
			}
			if !idShape.MatchString(id) {
				c.bad(field, "%q must be small letters, digits, . _ and -", id)
				continue
			}
			if before, twice := seen[id]; twice {
				c.bad(field, "%q is taken by providers[%d]", id, before)
			}
			seen[id] = i
		}
		c.provider(at, p)
	}
}

func (c *checker) provider(at string, p *wire.Provider) {
	if p.Auth == "" {
		p.Auth = wire.AuthAPIKey
	}
	c.word(at+".auth", string(p.Auth), "api_key", "oauth", "local")
	if p.Category == "" {
		p.Category = strings.ReplaceAll(string(p.Auth), "_", "")
	}
	c.word(at+".category", p.Category, "apikey", "oauth", "local")
	if p.BaseURL != "" {
		c.baseURL(at+".base_url", p.BaseURL)
	} else if !c.o.Code {
		c.warn(at, "%q has no base_url, so each of its connections must give its own", p.ID)
	}
	for i, v := range p.KeyEnv {
		if !envShape.MatchString(v) {
			c.bad(index(at+".key_env", i), "%q is not the name of an environment variable such as ACME_API_KEY", v)
		}
	}
	for _, e := range slices.Sorted(maps.Keys(p.Dialects)) {
		c.dialect(at+`.dialects["`+e+`"]`, e, p.Dialects[e])
	}
	ids := map[string]bool{}
	for i, m := range p.Models {
		field := index(at+".models", i)
		switch {
		case m.ID == "":
			c.bad(field, "a model needs an id")
		case ids[m.ID]:
			c.bad(field, "%q stands there twice", m.ID)
		}
		if m.ContextWindow < 0 || m.MaxOutput < 0 {
			c.bad(field, "sizes of a model are not negative")
		}
		ids[m.ID] = true
	}
	for i, word := range p.Translation {
		c.word(index(at+".translation", i), word, "no_schema", "reduced_schema", "cache_marks")
	}
	if p.Limits != nil && p.Limits.KeyScope != "" {
		c.word(at+".limits.key_scope", p.Limits.KeyScope, "connection", "model")
	}
}

func (c *checker) baseURL(field, s string) {
	u, err := url.Parse(s)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		c.bad(field, "%q is not an address such as https://api.example.com/v1", s)
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		c.bad(field, "must have no user, query or fragment")
	case strings.HasSuffix(s, "/"):
		c.bad(field, "must not end with /")
	}
}

func (c *checker) dialect(field, endpoint string, d wire.Dialect) {
	if endpoint == "" || endpoint[0] != '/' {
		c.bad(field, "%q is not an endpoint such as /v1/chat/completions", endpoint)
		return
	}
	own, generates := generation[endpoint]
	if !c.word(field, string(d), "openai_chat", "openai_responses", "anthropic_messages", "gemini_generate", "raw") {
		return
	}
	if generates && d != own && d != wire.RawDialect {
		c.bad(field, "%s speaks %s (or raw), not %s", endpoint, own, d)
	}
	if !generates && d != wire.RawDialect {
		c.bad(field, "%s is no generation endpoint, so its dialect is raw", endpoint)
	}
}
