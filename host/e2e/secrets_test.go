package e2e_test

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// plan is an executor's pack with one provider; every part can be a lie.
type plan struct{ name, provider, base, keyEnv, match, url, headers string }

func (p plan) yaml() string {
	var b strings.Builder
	fmt.Fprintf(&b, "name: %s\nversion: 1.0.0\nkinds: [executor]\n", p.name)
	if p.provider != "" {
		fmt.Fprintf(&b, "providers:\n  - {id: %s, auth: api_key, category: local, base_url: %q, key_env: [%s], passthrough_models: true, dialects: {/v1/chat/completions: openai_chat, /v1/models: raw}}\n",
			p.provider, p.base, p.keyEnv)
	}
	if p.headers == "" {
		p.headers = `{authorization: "Bearer {{secret.api_key}}", x-copy: "{{secret.api_key}}"}`
	}
	if p.url == "" {
		p.url = "{{connection.base_url}}/chat/completions"
	}
	fmt.Fprintf(&b, "matches: [{providers: [%[1]s]}]\nplans:\n  - match: {providers: [%[1]s], endpoints: [/v1/chat/completions]}\n    plan: {url: %[2]q, headers: %[3]s, dialect: openai_chat}\n", p.match, p.url, p.headers)
	return b.String()
}

const secretOfOpenAI, secretOfGroq, secretOfThief = "sk-openai-marker-0123456789", "gsk-groq-marker-0123456789", "sk-thief-marker-0123456789"

// A file that is dropped into the folder is a stranger's. Whatever it calls itself and whatever it describes, no key that the
// operator gave for another provider goes to it, and the real providers keep their addresses (ABI-2.2, ABI-3, PLG-2).
func TestDroppedPluginsGetNoKey(t *testing.T) {
	t.Parallel()
	honest, evil := newUpstream(t), newUpstream(t)
	base := evil.url + "/v1"
	other := strings.Replace(base, "127.0.0.1", "localhost", 1)
	thefts := map[string]struct {
		text    string
		refused bool   // the file as a whole; one that is not may hide the built-in plugin of its name with its providers (PLG-16)
		ask     string // a model whose request would go to the thief
	}{
		"describes openai":                         {plan{name: "thief", provider: "openai", base: base, keyEnv: "OPENAI_API_KEY", match: "openai"}.yaml(), true, ""},
		"describes openai in capitals":             {plan{name: "thief", provider: "OpenAI", base: base, keyEnv: "OPENAI_API_KEY", match: "OpenAI"}.yaml(), true, ""},
		"executes openai":                          {plan{name: "thief", match: "openai", url: base}.yaml(), true, ""},
		"executes everything":                      {plan{name: "thief", match: "'*'", url: base}.yaml(), false, ""},
		"executes everything like openai":          {plan{name: "thief", match: "'open*'", url: base}.yaml(), false, ""},
		"is called openai":                         {plan{name: "openai", provider: "openai", base: base, keyEnv: "OPENAI_API_KEY", match: "openai"}.yaml(), true, ""},
		"is called openai-compatible":              {plan{name: "openai-compatible", provider: "groq", base: base, keyEnv: "GROQ_API_KEY", match: "groq"}.yaml(), true, ""},
		"is called openai-compatible and executes": {plan{name: "openai-compatible", match: "'*'", url: base}.yaml(), false, ""},
		"takes an alias":                           {strings.Replace(plan{name: "thief", provider: "newcomer", base: base, match: "newcomer"}.yaml(), "auth: api_key", "aliases: [openai, groq], auth: api_key", 1), true, ""},
		"asks for the variable":                    {plan{name: "thief", provider: "newcomer", base: base, keyEnv: "OPENAI_API_KEY, GROQ_API_KEY", match: "newcomer"}.yaml(), false, "newcomer/m"},
		"sends to another host":                    {plan{name: "thief", provider: "bait", base: honest.url + "/v1", match: "bait", url: base + "/chat/completions"}.yaml(), false, "bait/m"},
		"sends to another name":                    {plan{name: "thief", provider: "bait", base: honest.url + "/v1", match: "bait", url: other + "/chat/completions"}.yaml(), false, "bait/m"},
		"puts the key into the path":               {plan{name: "thief", provider: "bait", base: base, match: "bait", url: "{{connection.base_url}}/{{secret.api_key}}", headers: "{}"}.yaml(), false, "bait/m"},
	}
	config := fmt.Sprintf(`
providers:
  - {id: openai, base_url: %[1]s/v1}
  - {id: groq, base_url: %[1]s/v1}
connections: [{id: main, provider: groq, api_key: %[2]s}]
`, honest.url, secretOfGroq)
	g := serve(t, setup{config: config, plugins: true, env: []string{"OPENAI_API_KEY=" + secretOfOpenAI}})
	for name, theft := range thefts {
		t.Run(name, func(t *testing.T) {
			g.t = t
			file := filepath.Join(g.plugins, "thief.yaml")
			mark := len(g.log.String())
			write(t, file, theft.text)
			word := map[bool]string{true: "refused", false: "plugin.loaded"}[theft.refused]
			g.eventually(5*time.Second, "the file is "+word, func() bool { return strings.Contains(g.log.String()[mark:], word) })
			if log := g.log.String()[mark:]; theft.refused && !strings.Contains(log, "provider_taken") {
				t.Logf("refused for another reason: %s", log)
			}
			if strings.HasPrefix(theft.ask, "bait/") { // the operator falls for it and gives it a key: still no other host gets that
				a := g.admin("POST", "/api/providers", `{"id":"bait","provider":"bait","apiKey":"`+secretOfThief+`"}`)
				if a.status != http.StatusCreated {
					t.Fatalf("%d %s", a.status, a.body)
				}
				defer g.admin("DELETE", "/api/providers/bait", "")
			}
			if theft.ask != "" {
				if a := g.chat(theft.ask, false); a.status == http.StatusOK {
					t.Errorf("%s was answered: %s", theft.ask, a.body)
				}
			}
			for model, secret := range map[string]string{"openai/m": secretOfOpenAI, "groq/m": secretOfGroq} {
				honest.counts()
				a := g.chat(model, false)
				if hides := strings.HasPrefix(theft.text, "name: openai-compatible\n") && !theft.refused; hides && model == "groq/m" {
					if a.status != http.StatusNotFound {
						t.Errorf("%s of a hidden plugin: %d %s", model, a.status, a.body)
					}
					continue
				}
				if text(a, false) != goodText {
					t.Errorf("%s: %d %s", model, a.status, a.body)
				}
				if byKey, _ := honest.counts(); byKey[secret] != 1 {
					t.Errorf("%s did not reach its own address with its own key", model)
				}
			}
			for _, path := range []string{"openai", "groq"} {
				if a := g.admin("GET", "/api/catalog/providers/"+path, ""); a.status == http.StatusOK && a.field("baseUrl") != honest.url+"/v1" {
					t.Errorf("the address of %s is %v", path, a.field("baseUrl"))
				}
			}
			if list := g.admin("GET", "/api/providers", "").body; strings.Contains(list, `"newcomer"`) {
				t.Errorf("a connection was made for the newcomer: %s", list)
			}
			if seen := evil.record(); seen != "" {
				t.Errorf("the thief was sent: %s", seen)
			}
			mark = len(g.log.String())
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
			g.eventually(5*time.Second, "the file is gone", func() bool {
				return !strings.Contains(g.admin("GET", "/api/plugins?limit=1000", "").body, "thief.yaml")
			})
		})
	}
	g.t = t
}

// markers are secrets that must be seen nowhere but where they belong.
var markers = map[string]string{
	"environment": "gsk-marker-of-the-environment-1", "file": "sk-marker-of-the-file-2", "api": "sk-marker-of-the-api-3", "data": "cookie-marker-of-the-data-4",
	"more": "named-marker-of-the-secrets-5", "client": "client-marker-of-the-file-6", "admin": "admin-marker-of-the-env-7", "patched": "sk-marker-of-the-patch-8",
}

// No secret is in a log, an answer, an error, a metric or a file of the data folder, also when the provider itself repeats the
// key in its error (DATA-1, OBJ-6, SEC-6, OV-6, OBS-4, SCN-18).
func TestSecretsAreSeenNowhere(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	for _, name := range []string{"environment", "file", "api", "patched"} {
		key := markers[name]
		u.answers(key, fails(401, fmt.Sprintf(`{"error":{"message":"Incorrect API key provided: %s. See https://x.example/?key=%s","type":"invalid_request_error","code":"%s"}}`, key, key, key),
			"X-Echo", key))
	}
	u.answers("stream-"+markers["file"], events([]string{chunk(0, "a "), `data: {"error":{"message":"bad key stream-` + markers["file"] + `"}}`}, false))
	g := serve(t, setup{
		config: fmt.Sprintf(`
providers:
  - {id: groq, base_url: %[1]s/v1}
  - {id: acme, executor: openai-compatible, category: local, base_url: %[1]s/v1}
  - {id: river, executor: openai-compatible, category: local, base_url: %[1]s/v1}
connections:
  - {id: from-file, provider: acme, api_key: "${FILE_KEY}"}
  - {id: streaming, provider: river, api_key: "stream-${FILE_KEY}"}
api_keys: [{id: laptop, key: %[2]s, scopes: [inference]}]
`, u.url, markers["client"]),
		env: []string{"GROQ_API_KEY=" + markers["environment"], "FILE_KEY=" + markers["file"], "WEIR_ADMIN_KEY=" + markers["admin"],
			"WEIR_EXPOSE_CONNECTION=on"},
		args: []string{"--log-level", "debug", "--access-log"},
	})
	var answers strings.Builder
	keep := func(what string, a answer) answer {
		fmt.Fprintf(&answers, "%s: %d %v %s\n", what, a.status, a.header, a.body)
		return a
	}
	made := g.admin("POST", "/api/keys", `{"name":"made"}`)
	printed, _ := made.field("key").(string)
	if !strings.HasPrefix(printed, "weir-") {
		t.Fatal(made.body)
	}
	keep("create", g.admin("POST", "/api/providers", fmt.Sprintf(`{"id":"from-api","provider":"acme","apiKey":%q,"secrets":{"more":%q},"providerSpecificData":{"cookie":%q}}`,
		markers["api"], markers["more"], markers["data"])))
	keep("bad create", g.admin("POST", "/api/providers", fmt.Sprintf(`{"id":"!","provider":"acme","apiKey":%q,"nonsense":%q,"priority":%q}`, markers["api"], markers["api"], markers["api"])))
	g.everything(keep, printed)
	keep("patch", g.admin("PATCH", "/api/providers/from-api", fmt.Sprintf(`{"apiKey":%q}`, markers["patched"])))
	g.everything(keep, printed)
	for _, args := range [][]string{{"status"}, {"connections", "list"}, {"connections", "list", "--json"}, {"connections", "test", "from-api"}, {"keys", "list"}, {"explain", "acme/m"}, {"history"}, {"history", "--json"}, {"settings", "get"}} {
		s := g.weir(args...)
		keep("weir "+strings.Join(args, " "), answer{status: s.code, body: s.out + s.err})
	}
	if seen := u.record(); !strings.Contains(seen, markers["file"]) || !strings.Contains(seen, markers["patched"]) || !strings.Contains(seen, markers["environment"]) {
		t.Error("the keys did not reach the provider, so nothing was tried")
	}
	markers := map[string]string{"printed": printed, "stream": "stream-" + markers["file"], "environment": markers["environment"], "file": markers["file"],
		"api": markers["api"], "data": markers["data"], "more": markers["more"], "client": markers["client"], "admin": markers["admin"], "patched": markers["patched"]}
	where := map[string]string{"the log": g.log.String(), "the output": g.out.String(), "an answer": answers.String()}
	g.end(15)
	where["the log of the end"] = g.log.String()
	err := filepath.WalkDir(g.data, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "secret.key" || d.Name() == "admin.key" {
			return err
		}
		b, err := os.ReadFile(path)
		where["the file "+d.Name()] = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for place, content := range where {
		for name, secret := range markers {
			if i := strings.Index(content, secret); i >= 0 {
				t.Errorf("the secret of the %s is in %s: %q", name, place, content[max(0, i-200):min(len(content), i+len(secret)+80)])
			}
		}
	}
}

var variable = regexp.MustCompile(`\{[a-z]+\}`)

// everything calls each path of the API that the gateway describes, in ways that succeed and in ways that fail.
func (g *gateway) everything(keep func(string, answer) answer, key string) {
	g.t.Helper()
	for _, model := range []string{"groq/m", "acme/m", "river/m", "acme/m", "nothing/m"} {
		for _, stream := range []bool{false, true} {
			keep("chat "+model, g.chat(model, stream, "x-api-key", key))
			keep("chat "+model, g.chat(model, stream, "Authorization", "Bearer "+markers["client"]))
		}
	}
	keep("client key on management", g.call("GET", "/api/status", "", "Authorization", "Bearer "+markers["client"]))
	keep("admin key on inference", g.chat("acme/m", false, "Authorization", "Bearer "+markers["admin"]))
	keep("two keys", g.chat("acme/m", false, "Authorization", "Bearer "+markers["admin"], "x-api-key", markers["client"]))
	keep("query", g.call("GET", "/v1/models?key="+markers["client"], ""))
	keep("unknown path", g.call("GET", "/v1/nothing?key="+markers["client"], "", "X-Api-Key", markers["client"]))
	var description struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal([]byte(g.admin("GET", "/api/openapi.json", "").body), &description); err != nil {
		g.t.Fatal(err)
	}
	if len(description.Paths) < 20 {
		g.t.Errorf("the description has %d paths", len(description.Paths))
	}
	for path, methods := range description.Paths {
		for method := range methods {
			if method == "delete" || strings.HasSuffix(path, "/regenerate") {
				continue
			}
			for _, id := range []string{"from-api", "from-file", "env-groq", "laptop", "groq", "acme", "no-such-thing"} {
				concrete := variable.ReplaceAllString(path, id)
				keep(method+" "+concrete, g.admin(strings.ToUpper(method), concrete, "", "Accept", "application/json"))
				if concrete == path {
					break
				}
			}
		}
	}
	for _, id := range []string{"from-api", "from-file", "env-groq"} {
		keep("test "+id, g.admin("POST", "/api/providers/"+id+"/test", ""))
		keep("explain "+id, g.admin("GET", "/api/providers/"+id+"?explain=true", ""))
		keep("reset "+id, g.admin("POST", "/api/providers/"+id+"/reset", ""))
	}
}
