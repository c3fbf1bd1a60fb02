package gateway_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/mux"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/gateway"
	"github.com/weirgate/weir/sdk/wire"
)

// door is a gateway whose dispatcher is a function.
type door struct {
	t     *testing.T
	srv   *httptest.Server
	now   time.Time
	do    func(c *dispatch.Call, out dispatch.Sink) *dispatch.Trail
	calls []*dispatch.Call

	counts  int64 // what the provider counts; 0: it does not
	counted []*dispatch.Call
}

func (d *door) Do(_ context.Context, c *dispatch.Call, out dispatch.Sink) *dispatch.Trail {
	d.calls = append(d.calls, c)
	return d.do(c, out)
}

func (d *door) Count(_ context.Context, c *dispatch.Call) (int64, bool) {
	d.counted = append(d.counted, c)
	return d.counts, d.counts > 0
}

func open(t *testing.T, change func(*gateway.Options), keys ...catalog.KeyInput) *door {
	t.Helper()
	key := "sk-1"
	in := catalog.Sources{
		Described: []catalog.Described{{Plugin: "acme", Builtin: true, Providers: []wire.Provider{{
			ID: "acme", BaseURL: "https://acme.example/v1", Auth: wire.AuthAPIKey, Models: []wire.Model{{ID: "large", Name: "Large", ContextWindow: 1000}, {ID: "team/small"}},
			Dialects: map[string]wire.Dialect{"/v1/chat/completions": wire.OpenAIChat},
		}}}},
		File: &catalog.Input{
			Name:        "weir.yaml",
			Connections: []catalog.Entry[catalog.ConnectionInput]{{Object: catalog.ConnectionInput{ID: "c1", Provider: "acme", APIKey: key}}},
			Aliases:     []catalog.Entry[catalog.AliasInput]{{Object: catalog.AliasInput{Alias: "gpt-4", Model: "acme/large"}}},
		},
	}
	for _, k := range keys {
		in.File.Keys = append(in.File.Keys, catalog.Entry[catalog.KeyInput]{Object: k})
	}
	snap, faults := catalog.Build(in)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	d := &door{t: t, now: time.Now()}
	d.do = func(c *dispatch.Call, out dispatch.Sink) *dispatch.Trail {
		tr := &dispatch.Trail{Committed: true, Status: 200}
		out.Commit(200, http.Header{"Content-Type": {"application/json"}}, tr)
		_ = out.Write([]byte(`{"ok":true}`))
		return tr
	}
	n := 0
	o := gateway.Options{
		Snapshot: func() *catalog.Snapshot { return snap }, Dispatch: d, Loopback: true, Listen: "127.0.0.1:8787",
		RequestID: func() string { n++; return fmt.Sprintf("req-%d", n) },
		Observe:   func(*dispatch.Call, *dispatch.Trail) {}, Now: func() time.Time { return d.now },
		Heard: func(string) []string { return nil },
	}
	if change != nil {
		change(&o)
	}
	r := mux.NewRouter().SkipClean(true).UseEncodedPath()
	gateway.New(o).Mount(r)
	d.srv = httptest.NewServer(r)
	t.Cleanup(d.srv.Close)
	return d
}

const chat = `{"model":"acme/large","messages":[{"role":"user","content":"hi"}]}`

func (d *door) send(method, path, body string, headers ...string) (*http.Response, string) {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), method, d.srv.URL+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			req.Host = headers[i+1]
			continue
		}
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	return resp, string(b)
}

func code(t *testing.T, body string) string {
	t.Helper()
	var e struct {
		Error struct{ Code string } `json:"error"`
	}
	if err := json.Unmarshal([]byte(body), &e); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return e.Error.Code
}

const clientKey = "client-key-0123456789"

// INF-10: a key is read from four places, the scheme word without regard to case; two different ones are refused.
func TestClientKeyPlaces(t *testing.T) {
	d := open(t, nil, catalog.KeyInput{ID: "laptop", Key: clientKey})
	for _, h := range [][]string{
		{"X-Api-Key", clientKey}, {"X-Goog-Api-Key", clientKey}, {"Authorization", "Bearer " + clientKey}, {"Authorization", "bEARER " + clientKey},
		{"X-Api-Key", clientKey, "Authorization", "Bearer " + clientKey},
	} {
		if resp, b := d.send("POST", "/v1/chat/completions", chat, h...); resp.StatusCode != 200 {
			t.Errorf("%v: %d %s", h, resp.StatusCode, b)
		}
	}
	if resp, _ := d.send("POST", "/v1/chat/completions?key="+clientKey, chat); resp.StatusCode != 200 {
		t.Error("query:", resp.StatusCode)
	}
	if resp, b := d.send("POST", "/v1/chat/completions", chat, "X-Api-Key", clientKey, "Authorization", "Bearer other"); resp.StatusCode != 400 {
		t.Error(resp.StatusCode, b)
	}
	if d.calls[0].Key == nil || d.calls[0].Key.ID != "laptop" {
		t.Error("the call does not carry its key")
	}
}

// SEC-2: without a key inference is open on loopback only, and only while no key exists.
func TestWhenKeysAreNeeded(t *testing.T) {
	if resp, _ := open(t, nil).send("POST", "/v1/chat/completions", chat); resp.StatusCode != 200 {
		t.Error("loopback without keys:", resp.StatusCode)
	}
	beyond := open(t, func(o *gateway.Options) { o.Loopback = false })
	if resp, b := beyond.send("POST", "/v1/chat/completions", chat); resp.StatusCode != 401 || code(t, b) != "invalid_api_key" {
		t.Error("beyond loopback:", resp.StatusCode, b)
	}
	one := open(t, nil, catalog.KeyInput{ID: "k", Key: clientKey})
	if resp, b := one.send("POST", "/v1/chat/completions", chat); resp.StatusCode != 401 || !strings.Contains(b, "weir keys create") {
		t.Error("with a key:", resp.StatusCode, b)
	}
	if resp, _ := one.send("GET", "/v1/models", ""); resp.StatusCode != 401 {
		t.Error("models:", resp.StatusCode)
	}
}

// Gate 2: revoked, expired and scopeless keys, and models that a key may not use; OBJ-15.
func TestKeyStates(t *testing.T) {
	no, past := false, time.Now().Add(-time.Hour)
	d := open(t, nil,
		catalog.KeyInput{ID: "off", Key: "off-key-0123456789abc", IsActive: &no}, catalog.KeyInput{ID: "old", Key: "old-key-0123456789abc", ExpiresAt: &past},
		catalog.KeyInput{ID: "manage", Key: "manage-key-0123456789", Scopes: []string{"manage"}},
		catalog.KeyInput{ID: "small", Key: "small-key-0123456789a", AllowedModels: []string{"acme/team*"}})
	for key, want := range map[string]int{"off-key-0123456789abc": 401, "old-key-0123456789abc": 401, "manage-key-0123456789": 403, "small-key-0123456789a": 403} {
		resp, b := d.send("POST", "/v1/chat/completions", chat, "Authorization", "Bearer "+key)
		if resp.StatusCode != want || strings.Contains(b, key) {
			t.Errorf("%s: %d %s", key, resp.StatusCode, b)
		}
	}
	_, list := d.send("GET", "/v1/models", "", "Authorization", "Bearer small-key-0123456789a")
	if !strings.Contains(list, "acme/team/small") || strings.Contains(list, "acme/large") {
		t.Error("INF-51:", list)
	}
}

// INF-47: wrong keys are limited per address.
func TestGuessing(t *testing.T) {
	d := open(t, nil, catalog.KeyInput{ID: "k", Key: clientKey})
	for range 10 {
		if resp, _ := d.send("POST", "/v1/chat/completions", chat, "X-Api-Key", "wrong"); resp.StatusCode != 401 {
			t.Fatal(resp.StatusCode)
		}
	}
	if resp, _ := d.send("POST", "/v1/chat/completions", chat, "X-Api-Key", "wrong"); resp.StatusCode != 429 || resp.Header.Get("Retry-After") == "" {
		t.Error(resp.StatusCode)
	}
	if resp, _ := d.send("POST", "/v1/chat/completions", chat, "X-Api-Key", clientKey); resp.StatusCode != 200 {
		t.Error("a good key is locked out by its neighbours:", resp.StatusCode)
	}
	d.now = d.now.Add(time.Minute)
	if resp, _ := d.send("POST", "/v1/chat/completions", chat, "X-Api-Key", "wrong"); resp.StatusCode != 401 {
		t.Error(resp.StatusCode)
	}
	if resp, _ := d.send("POST", "/v1/chat/completions", chat, "X-Api-Key", clientKey); resp.StatusCode != 200 {
		t.Error(resp.StatusCode)
	}
}

// SEC-7: while inference is open, pages of other hosts and foreign host names are refused.
func TestWebPagesMayNotSpend(t *testing.T) {
	d := open(t, nil)
	for _, c := range []struct {
		headers []string
		status  int
	}{
		{[]string{"Origin", "https://evil.example"}, 403},
		{[]string{"Origin", "null"}, 403},
		{[]string{"Origin", "http://localhost:3000"}, 200},
		{[]string{"Origin", "http://127.0.0.1:9"}, 200},
		{[]string{"Host", "rebound.example"}, 403},
		{[]string{"Host", "localhost:8787"}, 200},
		{[]string{"Host", "[::1]:8787"}, 200},
	} {
		resp, b := d.send("POST", "/v1/chat/completions", chat, c.headers...)
		if resp.StatusCode != c.status || (c.status == 403 && code(t, b) != "origin_not_allowed") {
			t.Errorf("%v: %d %s", c.headers, resp.StatusCode, b)
		}
	}
	withKey := open(t, nil, catalog.KeyInput{ID: "k", Key: clientKey})
	if resp, _ := withKey.send("POST", "/v1/chat/completions", chat, "Origin", "https://app.example", "X-Api-Key", clientKey); resp.StatusCode != 200 {
		t.Error("a key is proof enough:", resp.StatusCode)
	}
}

// INF-15, INF-17, SEC-4: encodings, sizes, and bodies that are no JSON.
func TestBodies(t *testing.T) {
	d := open(t, func(o *gateway.Options) { o.MaxBody = 2000 })
	var zipped bytes.Buffer
	zw := gzip.NewWriter(&zipped)
	_, _ = zw.Write([]byte(chat))
	_ = zw.Close()
	var bomb bytes.Buffer
	bw := gzip.NewWriter(&bomb)
	_, _ = bw.Write(bytes.Repeat([]byte(" "), 1<<20))
	_ = bw.Close()
	for _, c := range []struct {
		name, body, encoding string
		status               int
	}{
		{"plain", chat, "", 200}, {"gzip", zipped.String(), "gzip", 200}, {"identity", chat, "identity", 200},
		{"unknown encoding", chat, "br", 415}, {"too large", `{"model":"` + strings.Repeat("x", 3000) + `"}`, "", 413},
		{"too large unpacked", bomb.String(), "gzip", 413}, {"no JSON", "hello", "", 400}, {"no object", "[1]", "", 400},
		{"no model", "{}", "", 400}, {"model is a number", `{"model":1}`, "", 400},
		{"long model", `{"model":"acme/` + strings.Repeat("x", 600) + `"}`, "", 400}, {"trailing bytes", chat + "x", "", 400},
	} {
		headers := []string{"Content-Type", "text/plain"}
		if c.encoding != "" {
			headers = append(headers, "Content-Encoding", c.encoding)
		}
		resp, b := d.send("POST", "/v1/chat/completions", c.body, headers...)
		if resp.StatusCode != c.status || resp.Header.Get("X-Request-Id") == "" {
			t.Errorf("%s: %d %s", c.name, resp.StatusCode, b)
		}
	}
}

// CFG-4: unknown names are told the nearest ones.
func TestUnknownModel(t *testing.T) {
	d := open(t, nil)
	resp, b := d.send("POST", "/v1/chat/completions", `{"model":"acme/larg"}`)
	if resp.StatusCode != 404 || code(t, b) != "model_not_found" || !strings.Contains(b, "acme/large") {
		t.Error(resp.StatusCode, b)
	}
	if resp, _ := d.send("POST", "/v1/chat/completions", `{"model":"gpt-4"}`); resp.StatusCode != 200 || d.calls[0].Route.Targets[0].Model != "large" {
		t.Error("alias:", resp.StatusCode)
	}
}

// INF-3, INF-5, INF-6: other paths and methods, in the shape of the SDK that asks.
func TestOtherPaths(t *testing.T) {
	d := open(t, nil)
	for _, c := range []struct {
		method, path string
		headers      []string
		status       int
		want         string
	}{
		{"GET", "/v1/nothing", nil, 404, `{"error":{"message":`},
		{"GET", "/v1/nothing", []string{"Anthropic-Version", "2023-06-01"}, 404, `{"type":"error"`},
		{"GET", "/v1/nothing", []string{"X-Goog-Api-Key", "k"}, 404, `"status":"NOT_FOUND"`},
		{"GET", "/v1/chat/completions", nil, 405, `takes POST`},
		{"POST", "/v1/models", nil, 405, `takes GET`},
		{"OPTIONS", "/v1/chat/completions", nil, 204, ""},
		{"HEAD", "/v1/chat/completions", nil, 204, ""},
		{"OPTIONS", "/v1/nothing", nil, 404, ""},
	} {
		resp, b := d.send(c.method, c.path, "", c.headers...)
		if resp.StatusCode != c.status || !strings.Contains(b, c.want) || strings.Contains(b, "<") {
			t.Errorf("%s %s: %d %s", c.method, c.path, resp.StatusCode, b)
		}
		if (c.status == 405 || c.status == 204) && resp.Header.Get("Allow") == "" {
			t.Errorf("%s %s: no Allow", c.method, c.path)
		}
	}
	if len(d.calls) != 0 {
		t.Error("an upstream was involved")
	}
}

// INF-3, INF-50: one list in three shapes; one entry by a name with slashes, raw or encoded.
func TestModelLists(t *testing.T) {
	d := open(t, nil)
	_, openai := d.send("GET", "/v1/models", "")
	for _, want := range []string{`"object":"list"`, `"id":"acme/large"`, `"id":"acme/team/small"`, `"id":"gpt-4"`, `"owned_by":"acme"`, `"object":"model"`} {
		if !strings.Contains(openai, want) {
			t.Errorf("%s in %s", want, openai)
		}
	}
	_, anthropic := d.send("GET", "/v1/models?limit=1", "", "Anthropic-Version", "2023-06-01")
	if !strings.Contains(anthropic, `"has_more":true`) || !strings.Contains(anthropic, `"display_name":"Large"`) {
		t.Error(anthropic)
	}
	_, next := d.send("GET", "/v1/models?after_id=acme/large", "", "Anthropic-Version", "2023-06-01")
	if !strings.Contains(next, `"first_id":"acme/team/small"`) {
		t.Error(next)
	}
	_, gemini := d.send("GET", "/v1/models?pageSize=1", "", "X-Goog-Api-Key", "x")
	if !strings.Contains(gemini, `"name":"models/acme/large"`) || !strings.Contains(gemini, `"inputTokenLimit":1000`) || !strings.Contains(gemini, `"nextPageToken":"1"`) {
		t.Error(gemini)
	}
	for _, path := range []string{"/v1/models/acme/team/small", "/v1/models/acme%2Fteam%2Fsmall"} {
		if resp, b := d.send("GET", path, ""); resp.StatusCode != 200 || !strings.Contains(b, `"id":"acme/team/small"`) {
			t.Error(path, resp.StatusCode, b)
		}
	}
	if resp, _ := d.send("GET", "/v1/models/none", ""); resp.StatusCode != 404 {
		t.Error(resp.StatusCode)
	}
}

// OBS-5, CMB-24, OV-11, RST-7: answers that took more than one attempt say so to loopback clients.
func TestRoutingHeaders(t *testing.T) {
	d := open(t, nil)
	d.do = func(_ *dispatch.Call, out dispatch.Sink) *dispatch.Trail {
		tr := &dispatch.Trail{Committed: true, Restated: "rule;from=403", Attempts: []dispatch.Attempt{
			{Provider: "acme", Connection: "c0", Model: "large"}, {Provider: "acme", Connection: "c1", Model: "lärge", OK: true},
		}}
		out.Commit(200, http.Header{}, tr)
		return tr
	}
	resp, _ := d.send("POST", "/v1/chat/completions", chat)
	for name, want := range map[string]string{
		"X-Weir-Attempts": "2", "X-Weir-Provider": "acme", "X-Weir-Connection": "c1", "X-Weir-Model": "l?rge", "X-Weir-Restated": "rule;from=403",
		"X-Weir-Selected-Connection-Id": "c1", "X-Omniroute-Attempts": "2",
	} {
		if got := resp.Header.Get(name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	d.do = func(_ *dispatch.Call, out dispatch.Sink) *dispatch.Trail {
		tr := &dispatch.Trail{Committed: true, Attempts: []dispatch.Attempt{{Provider: "acme", OK: true}}}
		out.Commit(200, http.Header{}, tr)
		return tr
	}
	if resp, _ := d.send("POST", "/v1/chat/completions", chat); resp.Header.Get("X-Weir-Attempts") != "" {
		t.Error("one attempt says nothing")
	}
}

// INF-18, INF-40: what dispatch could not answer goes out with its id, its retry headers and its status.
func TestFailuresGoOut(t *testing.T) {
	d := open(t, nil)
	d.do = func(c *dispatch.Call, _ dispatch.Sink) *dispatch.Trail {
		return &dispatch.Trail{Failure: &dialect.Failure{Status: 529, Message: "busy", RetryAfter: 90 * time.Second, RequestID: c.RequestID}}
	}
	resp, b := d.send("POST", "/v1/chat/completions", chat)
	if resp.StatusCode != 503 || resp.Header.Get("Retry-After") != "90" || resp.Header.Get("X-Should-Retry") != "false" || resp.Header.Get("X-Request-Id") != "req-1" {
		t.Error(resp.StatusCode, resp.Header, b)
	}
	d.do = func(*dispatch.Call, dispatch.Sink) *dispatch.Trail {
		return &dispatch.Trail{Failure: &dialect.Failure{Status: 400, Message: "x"}, Unchanged: []byte(`{"error":{"as":"it came"}}`)}
	}
	if _, b := d.send("POST", "/v1/chat/completions", chat); b != `{"error":{"as":"it came"}}` {
		t.Error("CMB-18:", b)
	}
}

// CMB-53, BRK-44, OV-11: what a failure says in headers goes out under both names; what Latin-1 has not is a question mark.
func TestFailuresTellInHeaders(t *testing.T) {
	d := open(t, nil)
	d.do = func(*dispatch.Call, dispatch.Sink) *dispatch.Trail {
		return &dispatch.Trail{Failure: &dialect.Failure{Status: 503, Message: "x"}, Tell: []dispatch.Header{
			{Name: "Provider-Breaker", Value: "open"}, {Name: "Combo-Terminal-Reason", Value: "für 模型\n"},
		}}
	}
	resp, _ := d.send("POST", "/v1/chat/completions", chat)
	for _, prefix := range []string{"X-Weir-", "X-Omniroute-"} {
		if got := resp.Header.Get(prefix + "Provider-Breaker"); got != "open" {
			t.Errorf("%s: %q", prefix, got)
		}
		if got := resp.Header.Get(prefix + "Combo-Terminal-Reason"); got != "f\xfcr ???" {
			t.Errorf("%s: %q", prefix, got)
		}
	}
}

// A plain answer that was cut must not look whole.
func TestCutPlainAnswerBreaksTheConnection(t *testing.T) {
	d := open(t, nil)
	d.do = func(_ *dispatch.Call, out dispatch.Sink) *dispatch.Trail {
		tr := &dispatch.Trail{Committed: true, Partial: true, Cut: true}
		out.Commit(200, http.Header{"Content-Length": {"100"}}, tr)
		_ = out.Write([]byte("half"))
		return tr
	}
	resp, err := http.Post(d.srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(chat)) //nolint:noctx // the test's own server
	if err == nil {
		_, err = io.ReadAll(resp.Body)
		resp.Body.Close()
	}
	if err == nil {
		t.Error("the client took half an answer for a whole one")
	}
}
