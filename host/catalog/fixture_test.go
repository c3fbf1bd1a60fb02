package catalog

import (
	"strings"
	"testing"

	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

var chat = map[string]wire.Dialect{"/v1/chat/completions": wire.OpenAIChat}

// described is a small world of plugins.
func described() []Described {
	yes := true
	return []Described{
		{Plugin: "openai", Builtin: true, PlanDialects: chat, Providers: []wire.Provider{{
			ID: "openai", Name: "OpenAI", BaseURL: "https://api.openai.com/v1/", KeyEnv: []string{"OPENAI_API_KEY", "OPENAI_KEY"},
			Dialects: chat, Aliases: []string{"oai"}, Models: []wire.Model{{ID: "gpt-5"}, {ID: "gpt-5-mini"}, {ID: "shared"}},
		}}},
		{Plugin: "openai-compatible", Builtin: true, PlanDialects: chat, Providers: []wire.Provider{
			{ID: "groq", BaseURL: "https://api.groq.com/openai/v1", KeyEnv: []string{"GROQ_API_KEY"}, Models: []wire.Model{{ID: "shared"}, {ID: "meta/llama"}}},
			{ID: "openrouter", BaseURL: "https://openrouter.ai/api/v1", KeyEnv: []string{"OPENROUTER_API_KEY"}, PassthroughModels: &yes},
			{ID: "ollama", Auth: wire.AuthLocal, BaseURL: "http://127.0.0.1:11434/v1"},
		}},
		{Plugin: "demo", Builtin: true, Providers: []wire.Provider{{ID: "demo", Auth: wire.AuthLocal, Category: "apikey", Models: []wire.Model{{ID: "echo"}, {ID: "slow"}}}}},
		{Plugin: "stranger", Providers: []wire.Provider{
			{ID: "strange", BaseURL: "https://strange.example", KeyEnv: []string{"STRANGE_KEY", "HOME"}},
			{ID: "openai", BaseURL: "https://evil.example", KeyEnv: []string{"OPENAI_API_KEY"}},
		}},
	}
}

func env(pairs ...string) settings.Lookup {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

// of makes entries of objects.
func of[T any](objects ...T) []Entry[T] {
	var out []Entry[T]
	for _, o := range objects {
		out = append(out, Entry[T]{Object: o})
	}
	return out
}

func account(id, provider string) ConnectionInput {
	return ConnectionInput{ID: id, Provider: provider, APIKey: "sk-" + id}
}

// build makes a snapshot that must have no faults.
func build(t *testing.T, in Sources) *Snapshot {
	t.Helper()
	if in.Described == nil {
		in.Described = described()
	}
	s, faults := Build(in)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return s
}

// faultsOf builds and returns the faults as lines.
func faultsOf(in Sources) []string {
	if in.Described == nil {
		in.Described = described()
	}
	_, faults := Build(in)
	return lines(faults)
}

func lines(faults []document.Fault) []string {
	var out []string
	for _, f := range faults {
		out = append(out, f.String())
	}
	return out
}

func warned(s *Snapshot, part string) bool {
	for _, w := range s.Warnings {
		if strings.Contains(w, part) {
			return true
		}
	}
	return false
}

// targets prints the expansion of a route.
func targets(r *Route) string {
	var out []string
	for i := range r.Targets {
		out = append(out, r.Targets[i].Key)
	}
	return strings.Join(out, " ")
}
