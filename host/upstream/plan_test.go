package upstream

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

func query(base string) Query {
	return Query{
		Provider: &catalog.Provider{ID: "acme", BaseURL: base, Category: catalog.Local},
		Connection: &catalog.Connection{ID: "c1", Provider: "acme", Secrets: map[string]catalog.Secret{
			"api_key": catalog.NewSecret("sk-secret"),
		}},
		Model: "acme/m", Upstream: "m", Client: wire.OpenAIChat,
	}
}

func plan(url string) *wire.Plan {
	return &wire.Plan{URL: url, Dialect: wire.OpenAIChat, Headers: map[string]string{"authorization": "Bearer {{secret.api_key}}"}}
}

// ABI-3: the host of the resolved address is the connection's own or a granted one, and secrets stand in headers or the
// query only.
func TestWhereSecretsMayGo(t *testing.T) {
	q := query("https://api.acme.example/v1")
	q.Hosts = []string{"other.example", "*.wild.example", "port.example:8443"}
	for _, c := range []struct {
		url string
		ok  bool
	}{
		{"{{connection.base_url}}/chat", true},
		{"https://API.acme.example/other", true},
		{"https://other.example/x", true},
		{"https://other.example:8443/x", false},
		{"https://a.wild.example/x", true},
		{"https://wild.example/x", false},
		{"https://port.example:8443/x", true},
		{"https://port.example/x", false},
		{"https://evil.example/x", false},
		{"https://api.acme.example.evil.example/x", false},
		{"https://api.acme.example:444/x", false},
		{"http://api.acme.example/x", false},
		{"http://other.example/x", false},
		{"https://user:pw@api.acme.example/x", false},
		{"{{connection.base_url}}/x?key={{secret.api_key}}", true},
		{"{{connection.base_url}}/{{secret.api_key}}/x", false},
		{"https://{{secret.api_key}}/x", false},
		{"file:///etc/passwd", false},
		{"/relative", false},
	} {
		_, err := Prepare(plan(c.url), q)
		if (err == nil) != c.ok || (err != nil && !errors.Is(err, ErrPlanInvalid)) {
			t.Errorf("%s: %v", c.url, err)
		}
		if err != nil && strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("%s: the error shows the secret: %v", c.url, err)
		}
	}
}

func TestPlansThatAreRefused(t *testing.T) {
	q := query("https://api.acme.example/v1")
	for name, change := range map[string]func(*wire.Plan){
		"line break":  func(p *wire.Plan) { p.Headers["x-a"] = "a\r\nb: c" },
		"control":     func(p *wire.Plan) { p.Headers["x-a"] = "a\x01" },
		"header name": func(p *wire.Plan) { p.Headers["x a"] = "b" },
		"host header": func(p *wire.Plan) { p.Headers["host"] = "evil" },
		"no secret":   func(p *wire.Plan) { p.Headers["x-a"] = "{{secret.none}}" },
		"sign":        func(p *wire.Plan) { p.Sign = wire.Raw(`{"kind":"aws_sigv4"}`) },
		"frames":      func(p *wire.Plan) { p.Response.Frames = "ndjson" },
		"edit":        func(p *wire.Plan) { p.Body = []wire.Edit{{Op: "explode", Path: "x"}} },
	} {
		p := plan("{{connection.base_url}}/chat")
		change(p)
		if _, err := Prepare(p, q); !errors.Is(err, ErrPlanInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// SEC-6, INF-11, INF-12: what reaches an upstream is built from scratch: the plan's headers and the few forwarded ones.
func TestHeadersUpstream(t *testing.T) {
	var got http.Header
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer srv.Close()
	p, err := Prepare(plan("{{connection.base_url}}/chat"), query(srv.URL))
	if err != nil {
		t.Fatal(err)
	}
	client := http.Header{
		"Authorization": {"Bearer client-key"}, "Cookie": {"session=1"}, "X-Api-Key": {"client-key"}, "X-Weir-Mode": {"x"},
		"X-Omniroute-Session": {"x"}, "Connection": {"keep-alive"}, "Te": {"trailers"}, "X-Stainless-Lang": {"js"},
		"Openai-Beta": {"a", "b"}, "X-Codex-Turn": {"1"}, "X-Codex-Session-Id": {"s"}, "X-Client-Request-Id": {"id"},
		"User-Agent": {"curl"},
	}
	c := NewClient(Options{})
	defer c.Close()
	resp, err := c.Send(t.Context(), p, Moment{Header: client}, io.NopCloser(strings.NewReader("{}")), 2)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	for name, want := range map[string]string{
		"Authorization": "Bearer sk-secret", "Cookie": "", "X-Api-Key": "", "X-Weir-Mode": "", "X-Omniroute-Session": "",
		"Te": "", "X-Stainless-Lang": "", "Openai-Beta": "a,b", "X-Codex-Turn": "1", "X-Codex-Session-Id": "",
		"X-Client-Request-Id": "id", "User-Agent": "weir",
	} {
		if got.Get(name) != want {
			t.Errorf("%s: %q, want %q", name, got.Get(name), want)
		}
	}
	if len(p.header["Openai-Beta"]) != 0 {
		t.Error("the shared header map was changed")
	}
}

// SEC-5, SCN-18: the address that is really dialled is checked, whatever name led to it; redirects are not followed.
func TestDialledAddresses(t *testing.T) {
	hits := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits++
		http.Redirect(w, r, "/elsewhere", http.StatusFound)
	}))
	defer srv.Close()
	c := NewClient(Options{})
	defer c.Close()
	send := func(q Query) (*http.Response, error) {
		p, err := Prepare(plan("{{connection.base_url}}/chat"), q)
		if err != nil {
			t.Fatal(err)
		}
		return c.Send(t.Context(), p, Moment{}, nil, 0)
	}
	resp, err := send(query(srv.URL))
	if err != nil || resp.StatusCode != http.StatusFound || hits != 1 {
		t.Fatal("a redirect must come back as it is:", resp, err, hits)
	}
	resp.Body.Close()
	public := query(srv.URL)
	public.Provider.Category = catalog.APIKey
	public.Provider.ManagedBy = catalog.ByAPI
	if _, err := send(public); !errors.Is(err, ErrAddress) {
		t.Error("a loopback address behind a public provider:", err)
	}
	named := query(strings.Replace(srv.URL, "127.0.0.1", "localhost", 1)) // a name that leads elsewhere by now than when it was checked
	named.Provider.Category, named.Provider.ManagedBy = catalog.APIKey, catalog.ByAPI
	if _, err := send(named); !errors.Is(err, ErrAddress) || hits != 1 {
		t.Error("a name that leads to a loopback address:", err, hits)
	}
	public.Connection.AllowPrivate = true
	if resp, err := send(public); err != nil {
		t.Error("allow_private:", err)
	} else {
		resp.Body.Close()
	}
	for _, address := range []string{"169.254.169.254", "[fd00:ec2::254]", "168.63.129.16", "100.100.100.200", "[64:ff9b::a9fe:a9fe]", "[::ffff:169.254.169.254]"} {
		if _, err := send(query("http://" + address)); !errors.Is(err, ErrAddress) {
			t.Error("a metadata address:", address, err)
		}
	}
}

// SEC-6: what of an upstream's head goes to the client.
func TestAnswerHeader(t *testing.T) {
	in := http.Header{"Connection": {"keep-alive, x-hop", "X-Other"}, "X-Hop": {"1"}, "X-Other": {"1"}, "Set-Cookie": {"a"}, "X-Weir-Attempts": {"9"},
		"Access-Control-Allow-Methods": {"*"}, "Content-Length": {"5"}, "Content-Type": {"application/json"}, "Retry-After-Ms": {"3"}}
	want := http.Header{"Content-Type": {"application/json"}, "Retry-After-Ms": {"3"}}
	if diff := cmp.Diff(want, AnswerHeader(in)); diff != "" {
		t.Error(diff)
	}
}
