package manage_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/errorlog"
	"github.com/weirgate/weir/host/manage"
	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// shelf plays the plugin runtime: it notes what it was asked and answers as it was told.
type shelf struct {
	asked  []string
	put    plugin.PutOptions
	grants plugin.Grants
	report plugin.Report
	fail   error
	known  bool
}

func (s *shelf) ask(format string, args ...any) error {
	s.asked = append(s.asked, fmt.Sprintf(format, args...))
	return s.fail
}

var differedAt = time.Date(2026, 7, 1, 11, 0, 0, 0, time.UTC)

func (s *shelf) Detail(name string) (plugin.Detail, bool) {
	return plugin.Detail{
		Status: plugin.Status{
			Name: name, State: plugin.StateActive, Granted: plugin.Grants{HTTPHosts: []string{"a.example"}, KVBytes: 7, Secrets: plugin.Secrets{"s": {}}},
			Shadow: &plugin.Tally{Agreed: 3, Differed: 2, Failed: 1},
		},
		Manifest: []byte(`{"name":"acme"}`), Differences: []plugin.Difference{{At: differedAt, Provider: "acme"}},
		Candidate: &plugin.Status{Name: name, Version: "2.0.0"}, Hidden: []plugin.Status{{Name: name, Origin: plugin.OriginBuiltin}},
	}, s.known
}

func (s *shelf) Versions(name string) ([]plugin.VersionInfo, bool) {
	return []plugin.VersionInfo{{Digest: "d2", Version: "2.0.0", AddedAt: differedAt, State: plugin.StateActive, Active: true}, {Digest: "d1"}}, s.known
}

func (s *shelf) Check(_ context.Context, module []byte) plugin.Report {
	_ = s.ask("check %s", module)
	return s.report
}

func (s *shelf) Put(_ context.Context, name string, module []byte, o plugin.PutOptions) (plugin.Report, error) {
	s.put = o
	return s.report, s.ask("put %s %d", name, len(module))
}
func (s *shelf) Remove(_ context.Context, name string) error        { return s.ask("remove %s", name) }
func (s *shelf) DropCandidate(_ context.Context, name string) error { return s.ask("drop %s", name) }
func (s *shelf) Promote(_ context.Context, name string) error       { return s.ask("promote %s", name) }
func (s *shelf) Rollback(_ context.Context, name string) error      { return s.ask("rollback %s", name) }
func (s *shelf) SetMode(_ context.Context, name, mode string) error {
	return s.ask("mode %s %s", name, mode)
}
func (s *shelf) Grant(_ context.Context, name string, g plugin.Grants) error {
	s.grants = g
	return s.ask("grant %s", name)
}

// errorRecord plays the record of errors.
type errorRecord struct {
	filter        errorlog.Filter
	limit, offset int
	records       []errorlog.Record
	fail          error
}

func (e *errorRecord) List(_ context.Context, f errorlog.Filter, limit, offset int) ([]errorlog.Record, int, error) {
	e.filter, e.limit, e.offset = f, limit, offset
	return e.records, len(e.records), e.fail
}

func (e *errorRecord) Dropped() int64 { return 4 }

func (e *errorRecord) Clear(context.Context) (int, error) { return 2, e.fail }

var (
	goodReport = plugin.Report{OK: true, Name: "acme", Steps: []plugin.Step{{Step: "read", OK: true, MS: 1}}}
	badReport  = plugin.Report{Steps: []plugin.Step{{Step: "read", OK: true}, {Step: "describe", Code: "rule_invalid", Message: "no"}}}
)

func withShelf(t *testing.T, f *shelf) *rig {
	return newRig(t, func(r *rig) { r.ports.Shelf = f })
}

// send is a call with a body that is no JSON.
func (r *rig) send(method, path string, body io.Reader, header ...string) *httptest.ResponseRecorder {
	r.t.Helper()
	req := httptest.NewRequest(method, "http://127.0.0.1:8787"+path, body)
	req.Header.Set("Authorization", "Bearer "+adminKey)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	r.server.Handler().ServeHTTP(w, req)
	return w
}

func TestPutPlugin(t *testing.T) {
	f := &shelf{report: goodReport}
	r := withShelf(t, f)
	t.Run("PLG-10 PUT adds with 201, replaces with 200, and takes mode, signature and grants", func(t *testing.T) {
		signature := base64.StdEncoding.EncodeToString([]byte("untrusted comment: x\n"))
		w := r.send("PUT", "/api/plugins/acme?mode=shadow&source=acme.wasm&grants="+`%7B%22kv%22:%7B%22bytes%22:9%7D,%22terminate%22:true%7D`,
			strings.NewReader("\x00asm"), "X-Weir-Plugin-Signature", signature)
		if w.Code != 201 || f.asked[0] != "put acme 4" {
			t.Fatalf("%d %s, asked %q", w.Code, w.Body, f.asked)
		}
		want := plugin.PutOptions{
			Mode: "shadow", Source: "acme.wasm", Signature: []byte("untrusted comment: x\n"), Grants: &plugin.Grants{KVBytes: 9, Terminate: true},
		}
		if diff := cmp.Diff(want, f.put); diff != "" {
			t.Error(diff)
		}
		if want := `{"ok":true,"name":"acme","steps":[{"step":"read","ok":true,"ms":1}]}` + "\n"; w.Body.String() != want {
			t.Errorf("PLG-15: the answer is %s", w.Body)
		}
		f.known = true
		if w := r.send("PUT", "/api/plugins/acme?signature="+signature, strings.NewReader("name: acme")); w.Code != 200 || len(f.put.Signature) == 0 || f.put.Grants != nil {
			t.Errorf("%d, %+v", w.Code, f.put)
		}
	})
	t.Run("PLG-15 a step that fails is 422 with the steps", func(t *testing.T) {
		f.report = badReport
		for _, call := range [][2]string{{"PUT", "/api/plugins/acme"}, {"POST", "/api/plugins/check"}} {
			w := r.send(call[0], call[1], strings.NewReader("x"))
			if w.Code != 422 || !strings.Contains(w.Body.String(), `{"step":"describe","ok":false,"code":"rule_invalid","message":"no","ms":0}`) {
				t.Errorf("%v: %d %s", call, w.Code, w.Body)
			}
		}
		f.report = goodReport
		if w := r.send("POST", "/api/plugins/check", strings.NewReader("x")); w.Code != 200 || f.asked[len(f.asked)-1] != "check x" {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	})
	t.Run("PLG-15 a file of the folder is 409 managed_by_file", func(t *testing.T) {
		f.fail = &plugin.Problem{Status: 409, Code: plugin.CodeManagedByFile, Message: "acme comes from a file"}
		r.call("PUT", "/api/plugins/acme", "x").refused(409, "managed_by_file")
		f.fail = nil
	})
	t.Run("PLG-10 a body above 32 MiB, none, and a bad query", func(t *testing.T) {
		f.asked = nil
		if w := r.send("PUT", "/api/plugins/acme", io.LimitReader(zeros{}, plugin.MaxFile+1)); w.Code != 413 || !strings.Contains(w.Body.String(), "32 MiB") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
		if w := r.send("PUT", "/api/plugins/acme", bytes.NewReader(make([]byte, 2<<20))); w.Code != 200 {
			t.Errorf("2 MiB: %d %s", w.Code, w.Body)
		}
		r.call("PUT", "/api/plugins/acme", "").refused(400, "bad_request")
		r.call("PUT", "/api/plugins/acme?grants=[]", "x").refused(400, "bad_request")
		r.call("PUT", `/api/plugins/acme?grants=%7B%22disk%22:1%7D`, "x").refused(400, "bad_request")
		r.call("PUT", `/api/plugins/acme?grants=%7B%22kv%22:%7B%22bytes%22:-1%7D%7D`, "x").refused(400, "bad_request")
		r.call("PUT", "/api/plugins/acme?signature=!", "x").refused(400, "bad_request")
		if len(f.asked) != 1 {
			t.Errorf("the runtime was asked %q", f.asked)
		}
	})
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

func TestChangePlugin(t *testing.T) {
	f := &shelf{known: true}
	r := withShelf(t, f)
	t.Run("PLG-10 each change asks the runtime and shows the plugin", func(t *testing.T) {
		for _, c := range []struct{ method, path, body, asked string }{
			{"POST", "/api/plugins/acme/promote", "", "promote acme"},
			{"POST", "/api/plugins/acme/rollback", "", "rollback acme"},
			{"POST", "/api/plugins/acme/mode", `{"mode":"off"}`, "mode acme off"},
			{"POST", "/api/plugins/acme/grants", `{"http":{"hosts":["a.example"]},"kv":{"bytes":64},"secrets":["k"],"terminate":true,"providers":["openai"]}`, "grant acme"},
		} {
			r.call(c.method, c.path, c.body).is(200).has("name", "acme", "manifest.name", "acme")
			if got := f.asked[len(f.asked)-1]; got != c.asked {
				t.Errorf("%s asked %s", c.path, got)
			}
		}
		want := plugin.Grants{HTTPHosts: []string{"a.example"}, KVBytes: 64, Secrets: plugin.Secrets{"k": {}}, Terminate: true, Providers: []string{"openai"}}
		if diff := cmp.Diff(want.HTTPHosts, f.grants.HTTPHosts); diff != "" || f.grants.KVBytes != 64 || !f.grants.Terminate || len(f.grants.Secrets) != 1 {
			t.Errorf("granted %+v", f.grants)
		}
		r.call("DELETE", "/api/plugins/acme", "").is(200).has("ok", true)
		r.call("DELETE", "/api/plugins/acme?candidate=true", "").is(200).has("ok", true)
		if got := f.asked[len(f.asked)-2:]; got[0] != "remove acme" || got[1] != "drop acme" {
			t.Errorf("asked %q", got)
		}
		r.call("DELETE", "/api/plugins/acme?candidate=perhaps", "").refused(400, "bad_request")
	})
	t.Run("PLG-4 PLG-15 PLG-16 one plugin with shadow, differences, candidate and what it hides", func(t *testing.T) {
		r.call("GET", "/api/plugins/acme", "").is(200).has("shadow.agreed", 3, "shadow.differed", 2, "shadow.failed", 1,
			"differences.0.at", "2026-07-01T11:00:00.000Z", "candidate.version", "2.0.0", "hidden.0.origin", "builtin",
			"granted.http.hosts.0", "a.example", "granted.kv.bytes", 7, "granted.secrets.0", "s", "granted.terminate", false)
		r.call("GET", "/api/plugins/acme/versions", "").is(200).has("versions.0.digest", "d2", "versions.0.addedAt", "2026-07-01T11:00:00.000Z",
			"versions.0.active", true, "versions.1.addedAt", nil)
	})
	t.Run("PLG-15 refusals keep their status, code and sentence", func(t *testing.T) {
		for _, p := range []plugin.Problem{
			{Code: "grant_too_wide", Message: "the manifest of acme does not ask for kv", Status: 400},
			{Code: "plugin_not_found", Message: "there is no plugin acme", Status: 404},
			{Code: "no_earlier_version", Message: "none", Status: 409},
			{Code: "not_kept", Message: "the disk is full", Status: 507},
		} {
			f.fail = &p
			r.call("POST", "/api/plugins/acme/grants", `{}`).refused(p.Status, p.Code).has("error.message", p.Message+".")
			r.call("POST", "/api/plugins/acme/promote", "").refused(p.Status, p.Code)
			r.call("DELETE", "/api/plugins/acme", "").refused(p.Status, p.Code)
		}
		f.fail = nil
		r.call("POST", "/api/plugins/acme/grants", `{"kv":{"bytes":-1}}`).refused(400, "bad_request")
		r.call("POST", "/api/plugins/acme/mode", `{"modus":"off"}`).refused(400, "bad_request")
		f.known = false
		r.call("GET", "/api/plugins/acme/versions", "").refused(404, "not_found")
	})
	t.Run("OBJ-15 a key that may only read changes nothing", func(t *testing.T) {
		for _, e := range manage.Table() {
			if strings.HasPrefix(e.Path, "/api/plugins") && e.Method != http.MethodGet && !e.Writes {
				t.Errorf("%s %s is open to it", e.Method, e.Path)
			}
		}
	})
}

func TestReplay(t *testing.T) {
	var last int
	var provider, module string
	fail := error(nil)
	r := newRig(t, func(r *rig) {
		r.ports.Replay = func(_ context.Context, m []byte, n int, p string) (errorlog.Replay, error) {
			last, provider, module = n, p, string(m)
			return errorlog.Replay{Replayed: 4, Changed: 1, Table: []errorlog.Change{{
				From: errorlog.Verdict{Reason: wire.AuthError}, To: errorlog.Verdict{Reason: wire.QuotaExhausted}, Count: 1,
				Examples: []errorlog.Example{{Provider: "acme", Status: 403, RequestID: "r-1"}},
			}}}, fail
		}
	})
	t.Run("PLG-9 PLG-10 the table as JSON", func(t *testing.T) {
		r.call("POST", "/api/plugins/replay?last=50&provider=acme", "name: x").is(200).has("replayed", 4, "changed", 1, "failed", 0,
			"table.0.from.reason", "auth_error", "table.0.to.reason", "quota_exhausted", "table.0.count", 1, "table.0.examples.0.requestId", "r-1")
		if last != 50 || provider != "acme" || module != "name: x" {
			t.Errorf("asked %d %q %q", last, provider, module)
		}
		r.call("POST", "/api/plugins/replay", "name: x").is(200)
		if last != 1000 {
			t.Errorf("without a number: %d", last)
		}
		r.call("POST", "/api/plugins/replay?last=0", "x").refused(400, "bad_request")
	})
	t.Run("PLG-9 a candidate that does not load says why; a store without room too", func(t *testing.T) {
		fail = fmt.Errorf("the candidate cannot be tried: %w", &plugin.Fault{Step: "validate", Code: "rule_invalid", Message: "rules[0] is wrong"})
		r.call("POST", "/api/plugins/replay", "x").refused(422, "rule_invalid").has("error.message", "The candidate cannot be tried: validate: rules[0] is wrong.")
		fail = store.ErrDegraded
		r.call("POST", "/api/plugins/replay", "x").refused(507, "store_degraded")
	})
}

func TestErrors(t *testing.T) {
	rec := &errorRecord{records: []errorlog.Record{{ID: "e-2", Provider: "acme", Status: 429, Body: "<slow>"}, {ID: "e-1"}}}
	r := newRig(t, func(r *rig) { r.ports.Errors = rec })
	t.Run("OBJ-19 a list with filters", func(t *testing.T) {
		r.call("GET", "/api/errors?provider=acme&reason=model_capacity&since=1h&until=2026-07-01T11:30:00Z&limit=5&offset=2", "").is(200).
			has("total", 2, "dropped", 4, "errors.0.id", "e-2", "errors.0.status", 429)
		want := errorlog.Filter{Provider: "acme", Reason: wire.Overloaded, Since: r.clock().Add(-time.Hour), Until: time.Date(2026, 7, 1, 11, 30, 0, 0, time.UTC)}
		if diff := cmp.Diff(want, rec.filter); diff != "" || rec.limit != 5 || rec.offset != 2 {
			t.Errorf("asked for %d from %d: %s", rec.limit, rec.offset, diff)
		}
		for _, q := range []string{"reason=nonsense", "since=yesterday", "until=-1h", "limit=0", "format=xml"} {
			r.call("GET", "/api/errors?"+q, "").refused(400, "bad_request")
		}
	})
	t.Run("OBJ-19 bare lines of the corpus", func(t *testing.T) {
		for _, w := range []*httptest.ResponseRecorder{
			r.send("GET", "/api/errors?format=jsonl", nil), r.send("GET", "/api/errors", nil, "Accept", "application/jsonl"),
		} {
			lines := strings.Split(strings.TrimSpace(w.Body.String()), "\n")
			if w.Code != 200 || w.Header().Get("Content-Type") != "application/jsonl" || len(lines) != 2 || !strings.Contains(lines[0], `"body":"<slow>"`) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		}
	})
	t.Run("OBJ-19 DELETE", func(t *testing.T) {
		r.call("DELETE", "/api/errors", "").is(200).has("ok", true, "removed", 2)
		rec.fail = store.ErrDegraded
		r.call("GET", "/api/errors", "").refused(507, "store_degraded")
		r.call("DELETE", "/api/errors", "").refused(507, "store_degraded")
	})
}

// OBS-7, PLG-10: the description says that the module is no JSON, and which statuses may come.
func TestPluginDescription(t *testing.T) {
	r := newRig(t)
	const put = "paths./api/plugins/{name}.put."
	r.call("GET", "/api/openapi.json", "").is(200).has(
		put+"requestBody.content.application/octet-stream.schema.maxLength", float64(plugin.MaxFile),
		put+"responses.422.description", "done", put+"responses.201.description", "done",
		"paths./api/plugins/replay.post.responses.200.content.application/json.schema.$ref", "#/components/schemas/ErrorlogReplay")
}
