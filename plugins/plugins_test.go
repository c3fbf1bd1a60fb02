package plugins_test

import (
	"encoding/json"
	"io/fs"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/weirgate/weir/plugins"
	"github.com/weirgate/weir/sdk/wire"
)

// packs reads every shipped pack.
func packs(t *testing.T) map[string]wire.Manifest {
	t.Helper()
	files, err := fs.Glob(plugins.Packs, "*/plugin.yaml")
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]wire.Manifest{}
	for _, f := range files {
		text, err := fs.ReadFile(plugins.Packs, f)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := yaml.YAMLToJSON(text)
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		var m wire.Manifest
		if err := json.Unmarshal(doc, &m); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		all[strings.TrimSuffix(f, "/plugin.yaml")] = m
	}
	return all
}

// ABI-2: a provider, its aliases and its key variable belong to one pack; keys go over https, or stay on this machine.
func TestProviders(t *testing.T) {
	owner, vars := map[string]string{}, map[string]string{}
	for name, m := range packs(t) {
		if m.Name != name {
			t.Errorf("the pack in %s calls itself %s", name, m.Name)
		}
		for _, p := range m.Providers {
			for _, id := range append([]string{p.ID}, p.Aliases...) {
				if other := owner[id]; other != "" {
					t.Errorf("%s is described by %s and %s", id, other, p.ID)
				}
				owner[id] = p.ID
			}
			for _, v := range p.KeyEnv {
				if other := vars[v]; other != "" {
					t.Errorf("%s is the key of %s and %s", v, other, p.ID)
				}
				vars[v] = p.ID
			}
			address(t, p)
			for endpoint := range p.Dialects {
				if !planned(m, p, endpoint) {
					t.Errorf("%s declares %s and no plan calls it", p.ID, endpoint)
				}
			}
		}
	}
}

func address(t *testing.T, p wire.Provider) {
	if p.BaseURL == "" { // each account has its own, so a key alone makes no connection
		if len(p.KeyEnv) > 0 || p.Docs == "" {
			t.Errorf("%s has no address, but a key variable, or no documentation", p.ID)
		}
		return
	}
	u, err := url.Parse(p.BaseURL)
	if err != nil {
		t.Errorf("%s: %v", p.ID, err)
		return
	}
	ip, _ := netip.ParseAddr(u.Hostname())
	local := ip.IsValid() && ip.IsLoopback()
	if p.Auth == wire.AuthLocal != local || !local && u.Scheme != "https" || local && p.Category != "local" {
		t.Errorf("%s: %s does not go with auth %s, category %q", p.ID, p.BaseURL, p.Auth, p.Category)
	}
	if !local && (len(p.KeyEnv) == 0 || p.Docs == "") {
		t.Errorf("%s lacks its key variable or its documentation", p.ID)
	}
}

// planned reports whether a static plan is for that endpoint of the provider: a pack has no code that could make one.
func planned(m wire.Manifest, p wire.Provider, endpoint string) bool {
	has := func(list []string, s string) bool {
		for _, x := range list {
			if x == s {
				return true
			}
		}
		return len(list) == 0
	}
	for _, row := range m.Plans {
		if has(row.Match.Providers, p.ID) && has(row.Match.Endpoints, endpoint) && has(row.Match.Auth, string(p.Auth)) {
			return row.Plan.Dialect == p.Dialects[endpoint]
		}
	}
	return false
}

// CFG-2: the usual key variables are named by a built-in pack.
func TestUsualKeys(t *testing.T) {
	named := map[string]string{}
	count := 0
	for _, m := range packs(t) {
		for _, p := range m.Providers {
			count++
			for _, v := range p.KeyEnv {
				named[v] = p.ID
			}
		}
	}
	for v, id := range map[string]string{
		"OPENAI_API_KEY": "openai", "ANTHROPIC_API_KEY": "anthropic", "GEMINI_API_KEY": "gemini", "GROQ_API_KEY": "groq",
		"MISTRAL_API_KEY": "mistral", "DEEPSEEK_API_KEY": "deepseek", "OPENROUTER_API_KEY": "openrouter", "XAI_API_KEY": "xai",
	} {
		if named[v] != id {
			t.Errorf("%s is the key of %q, want %s", v, named[v], id)
		}
	}
	if count < 30 {
		t.Errorf("%d providers", count)
	}
}

// A key is placed only where the plan's match has one, and only in headers (ABI-3).
func TestPlansAndSecrets(t *testing.T) {
	for name, m := range packs(t) {
		for i, row := range m.Plans {
			if !strings.HasPrefix(row.Plan.URL, "{{connection.base_url}}/") || strings.Contains(row.Plan.URL, "{{secret.") {
				t.Errorf("%s, plan %d: address %s", name, i, row.Plan.URL)
			}
			withKey := false
			for _, v := range row.Plan.Headers {
				withKey = withKey || strings.Contains(v, "{{secret.")
			}
			if len(row.Match.Auth) == 1 && row.Match.Auth[0] == "local" && withKey {
				t.Errorf("%s, plan %d sends a key of an account that has none", name, i)
			}
		}
	}
}

// OBJ-21: each row of the shipped prices says whose it is and since when, and none hides behind an earlier one.
func TestPrices(t *testing.T) {
	all := packs(t)
	known := map[string]bool{}
	for _, m := range all {
		for _, p := range m.Providers {
			known[p.ID] = true
		}
	}
	rows := all["pricing"].Prices
	if len(rows) < 50 || len(all["pricing"].Kinds) > 0 {
		t.Fatalf("%d rows, kinds %v", len(rows), all["pricing"].Kinds)
	}
	for i, p := range rows {
		if !known[p.Provider] {
			t.Errorf("prices[%d]: no pack describes the provider %s", i, p.Provider)
		}
		if p.Since == "" || p.Input == nil || p.Output == nil {
			t.Errorf("prices[%d] of %s: %+v", i, p.Model, p)
		}
		for j, q := range rows[:i] {
			if q.Provider == p.Provider && (q.Model == p.Model || strings.HasSuffix(q.Model, "*") && strings.HasPrefix(p.Model, strings.TrimSuffix(q.Model, "*"))) {
				t.Errorf("prices[%d] of %s is hidden by prices[%d] of %s", i, p.Model, j, q.Model)
			}
		}
	}
}
