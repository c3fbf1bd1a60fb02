package catalog

import "testing"

// LOCK-12, COOL-57: who counts a quota per model.
func TestPerModelQuota(t *testing.T) {
	for _, c := range []struct {
		provider Provider
		word     string // of the connection
		want     bool
	}{
		{Provider{ID: "openai"}, "", false},
		{Provider{ID: "openai"}, "true", true},
		{Provider{ID: "codex"}, "", true},
		{Provider{ID: "gemini"}, "", true},
		{Provider{ID: "github"}, "", true},
		{Provider{ID: "github"}, "false", false},
		{Provider{ID: "mine", PerModel: true}, "", true},
		{Provider{ID: "mine", Passthrough: true, Compatible: true}, "", false},
		{Provider{ID: "openai-compatible-mine"}, "", true},
		{Provider{ID: "anthropic-compatible-mine"}, "false", false},
	} {
		target := Target{Provider: &c.provider, Connection: &Connection{Data: map[string]string{}}}
		if c.word != "" {
			target.Connection.Data["passthroughModels"] = c.word
		}
		if got := target.PerModelQuota(); got != c.want {
			t.Errorf("%s, connection says %q: %v", c.provider.ID, c.word, got)
		}
	}
}

// LOCK-1, LOCK-2: the families that a plugin declares, those of codex, and a model that has none.
func TestFamily(t *testing.T) {
	declared := families(map[string][]string{"pro": {"gemini-*-pro", "claude-*"}, "flash": {"gemini-*-flash*"}})
	for _, c := range []struct {
		provider Provider
		model    string
		want     string
	}{
		{Provider{ID: "antigravity", Families: declared}, "gemini-3-pro", "pro"},
		{Provider{ID: "antigravity", Families: declared}, "gemini-3-flash-lite", "flash"},
		{Provider{ID: "antigravity", Families: declared}, "gpt-oss", "gpt-oss"},
		{Provider{ID: "codex"}, "gpt-5.5", "codex"},
		{Provider{ID: "codex"}, "gpt-5.3-codex-spark", "spark"},
		{Provider{ID: "openai"}, "gpt-5.3-codex-spark", "gpt-5.3-codex-spark"},
	} {
		if got := c.provider.Family(c.model); got != c.want {
			t.Errorf("%s/%s is of %q, want %q", c.provider.ID, c.model, got, c.want)
		}
	}
}
