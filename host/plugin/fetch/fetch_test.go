package fetch

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirgate/weir/host/allow"
	"github.com/weirgate/weir/host/catalog"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "sk-very-secret-value"

func secrets(values map[string]string) func(string) (catalog.Secret, bool) {
	return func(name string) (catalog.Secret, bool) {
		v, ok := values[name]
		return catalog.NewSecret(v), ok
	}
}

// answered is what a guest reads.
type answered struct {
	Status  int
	Headers map[string]string
	Body    string
}

func (n *network) do(t *testing.T, g Grant, in map[string]any) (answered, error) {
	t.Helper()
	return n.doIn(t.Context(), t, g, in)
}

func (n *network) doIn(ctx context.Context, t *testing.T, g Grant, in map[string]any) (answered, error) {
	t.Helper()
	raw, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	b, err := n.client.Lane().Do(ctx, g, raw)
	var a answered
	if err == nil {
		if err := json.Unmarshal(b, &a); err != nil {
			t.Fatalf("the answer is not JSON: %v", err)
		}
	}
	return a, err
}

func TestFetch(t *testing.T) { // ABI-6
	n := newNetwork(t)
	a := n.site("a.test", func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Set-Cookie", "session=1")
		w.Header().Add("X-Two", "1")
		w.Header().Add("X-Two", "2")
		w.WriteHeader(http.StatusTeapot)
		fmt.Fprintf(w, "%s %s %s %s <&>", r.Method, r.URL.RequestURI(), r.Header.Get("X-Own"), body)
	})
	got, err := n.do(t, a.granted(), map[string]any{
		"method": "POST", "url": a.url("/p?q=1#part"), "headers": map[string]string{"x-own": "{{braces}}"}, "body": "hello", "unknown": 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Status != 418 || got.Body != "POST /p?q=1 {{braces}} hello <&>" {
		t.Errorf("answer %+v", got)
	}
	if got.Headers["x-two"] != "1, 2" {
		t.Errorf("headers %v, want lower case and joined", got.Headers)
	}
	if _, shown := got.Headers["set-cookie"]; shown {
		t.Error("a cookie reaches the guest")
	}
}

func TestProxiesAreIgnored(t *testing.T) { // ABI-6
	n := newNetwork(t)
	a := n.site("a.test", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "direct") })
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "ALL_PROXY"} {
		t.Setenv(name, "http://127.0.0.1:1")
	}
	if got, err := n.do(t, a.granted(), map[string]any{"url": a.url("/")}); err != nil || got.Body != "direct" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestRequestsThatAreRefused(t *testing.T) { // ABI-6, PLG-12
	n := newNetwork(t)
	a := n.site("a.test", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "reached") })
	g := a.granted()
	g.Secret = secrets(map[string]string{"key": key, "empty": "", "torn": "a\r\nb"})
	header := func(name, value string) map[string]any {
		return map[string]any{"url": a.url("/"), "headers": map[string]string{name: value}}
	}
	for name, c := range map[string]struct {
		in   map[string]any
		want error
	}{
		"http":                              {map[string]any{"url": strings.Replace(a.url("/"), "https", "http", 1)}, ErrDenied},
		"a host that is not granted":        {map[string]any{"url": "https://b.test:" + a.port + "/"}, ErrDenied},
		"another port":                      {map[string]any{"url": "https://a.test/"}, ErrDenied},
		"a granted name as the user":        {map[string]any{"url": "https://a.test:" + a.port + "@b.test/"}, ErrInvalid},
		"a user name":                       {map[string]any{"url": "https://u:p@a.test:" + a.port + "/"}, ErrInvalid},
		"an address in place of the name":   {map[string]any{"url": "https://127.0.0.1:" + a.port + "/"}, ErrDenied},
		"no url":                            {map[string]any{}, ErrInvalid},
		"a relative url":                    {map[string]any{"url": "/x"}, ErrInvalid},
		"another scheme":                    {map[string]any{"url": "file://a.test:" + a.port + "/etc/passwd"}, ErrDenied},
		"CONNECT":                           {map[string]any{"method": "CONNECT", "url": a.url("/")}, ErrInvalid},
		"a method with a line break":        {map[string]any{"method": "GET / HTTP/1.1\r\n", "url": a.url("/")}, ErrInvalid},
		"a wrong type":                      {map[string]any{"url": 7}, ErrInvalid},
		"a time below 0":                    {map[string]any{"url": a.url("/"), "timeout_ms": -1}, ErrInvalid},
		"a line break in a header":          {header("X-A", "1\r\nX-B: 2"), ErrInvalid},
		"a line break in a header's name":   {header("X-A: 1\r\nX-B", "2"), ErrInvalid},
		"another Host":                      {header("host", "b.test"), ErrInvalid},
		"Transfer-Encoding":                 {header("transfer-encoding", "chunked"), ErrInvalid},
		"Accept-Encoding":                   {header("accept-encoding", "gzip"), ErrInvalid},
		"a header given twice":              {map[string]any{"url": a.url("/"), "headers": map[string]string{"x-a": "1", "X-A": "2"}}, ErrInvalid},
		"a secret in the url":               {map[string]any{"url": a.url("/?k={{secret.key}}")}, ErrInvalid},
		"a secret in the url, encoded":      {map[string]any{"url": a.url("/?k=%7b%7bsecret.key%7d%7d")}, ErrInvalid},
		"a secret in the body":              {map[string]any{"method": "POST", "url": a.url("/"), "body": "x {{ secret.key }}"}, ErrInvalid},
		"a secret that is not granted":      {header("X-Key", "{{secret.other}}"), ErrDenied},
		"a secret that has no value":        {header("X-Key", "{{secret.empty}}"), ErrNotFound},
		"a secret with a line break":        {header("X-Key", "{{secret.torn}}"), ErrInvalid},
		"a secret for a host not granted":   {map[string]any{"url": "https://b.test/", "headers": map[string]string{"X": "{{secret.key}}"}}, ErrDenied},
		"a request that is too large":       {map[string]any{"url": a.url("/"), "body": strings.Repeat("x", MaxRequest)}, ErrTooLarge},
		"a backslash before another host":   {map[string]any{"url": "https://b.test\\@a.test:" + a.port + "/"}, ErrInvalid},
		"an address without slashes":        {map[string]any{"url": "https:a.test:" + a.port + "/"}, ErrInvalid},
		"an empty host with a granted port": {map[string]any{"url": "https://:" + a.port + "/"}, ErrInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := n.do(t, g, c.in); !errors.Is(err, c.want) || strings.Contains(fmt.Sprint(err), key) {
				t.Errorf("%+v, %v; want %v", got, err, c.want)
			}
		})
	}
	if hits := a.hits.Load(); hits != 0 {
		t.Errorf("%d requests were sent", hits)
	}
}

func TestGrantedHosts(t *testing.T) { // PLG-12
	for _, c := range []struct {
		pattern, host, port string
		want                bool
	}{
		{"a.test", "a.test", "443", true}, {"A.test", "a.test", "443", true}, {"a.test", "a.test", "8443", false},
		{"a.test:8443", "a.test", "8443", true}, {"a.test:8443", "a.test", "443", false}, {"a.test", "xa.test", "443", false},
		{"*.a.test", "b.a.test", "443", true}, {"*.a.test", "c.b.a.test", "443", true}, {"*.a.test", "a.test", "443", false},
		{"*.a.test", ".a.test", "443", false}, {"*.a.test", "ba.test", "443", false}, {"*", "a.test", "443", false},
		{"*a.test", "xa.test", "443", false}, {"", "", "443", false},
	} {
		if got := allow.Covers(c.pattern, c.host, c.port); got != c.want {
			t.Errorf("%q covers %s:%s is %v", c.pattern, c.host, c.port, got)
		}
	}
}

func TestSecrets(t *testing.T) { // ABI-6: placeholders only
	n := newNetwork(t)
	a := n.site("a.test", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		fmt.Fprintf(w, "%s %s", r.Header.Get("Authorization"), strings.ReplaceAll(r.Header.Get("X-Odd"), "/", `%2F`))
	})
	g := a.granted()
	g.Secret = secrets(map[string]string{"key": key, "odd": "a/b-odd"})
	got, err := n.do(t, g, map[string]any{"url": a.url("/"), "headers": map[string]string{
		"Authorization": "Bearer {{secret.key}}", "X-Odd": "{{secret.odd}}",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if seen := a.last().Header.Get("Authorization"); seen != "Bearer "+key {
		t.Errorf("the host sent %q", seen)
	}
	if got.Body != "Bearer [redacted] [redacted]" || got.Headers["x-echo"] != "Bearer [redacted]" {
		t.Errorf("an echo brings the secret to the guest: %+v", got)
	}
}

func TestLargeAndSlow(t *testing.T) { // ABI-6: 256 KiB, 5 s
	n := newNetwork(t)
	a := n.site("a.test", func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/edge":
			io.WriteString(w, strings.Repeat("x", MaxAnswer))
		case "/large":
			io.WriteString(w, strings.Repeat("x", MaxAnswer+1))
		case "/endless":
			for r.Context().Err() == nil {
				if _, err := io.WriteString(w, strings.Repeat("x", 1<<16)); err != nil {
					return
				}
			}
		case "/headers":
			w.Header().Set("X-Large", strings.Repeat("x", 2*maxAnswerHeader))
		case "/silent":
			<-r.Context().Done()
		case "/drip":
			for r.Context().Err() == nil {
				io.WriteString(w, "x")
				w.(http.Flusher).Flush()
				time.Sleep(10 * time.Millisecond)
			}
		}
	})
	ask := func(t *testing.T, path string, ms int) (answered, time.Duration, error) {
		began := time.Now()
		got, err := n.do(t, a.granted(), map[string]any{"url": a.url(path), "timeout_ms": ms})
		return got, time.Since(began), err
	}
	if got, _, err := ask(t, "/edge", 0); err != nil || len(got.Body) != MaxAnswer {
		t.Errorf("%d bytes, %v", len(got.Body), err)
	}
	for path, want := range map[string]error{"/large": ErrTooLarge, "/endless": ErrTooLarge, "/headers": ErrUnavailable} {
		if _, _, err := ask(t, path, 0); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", path, err, want)
		}
	}
	for _, path := range []string{"/silent", "/drip"} {
		if _, took, err := ask(t, path, 200); !errors.Is(err, ErrUnavailable) || took > 3*time.Second {
			t.Errorf("%s: %v after %s", path, err, took)
		}
	}
	if r, err := parse([]byte(`{"url":"https://a.test","timeout_ms":60000}`)); err != nil || r.timeout != 5*time.Second {
		t.Errorf("%v, %v", r, err)
	}
}

func TestCancelled(t *testing.T) { // ABI-6
	n := newNetwork(t)
	began := make(chan struct{})
	a := n.site("a.test", func(_ http.ResponseWriter, r *http.Request) {
		close(began)
		<-r.Context().Done()
	})
	ctx, stop := context.WithCancel(t.Context())
	go func() { <-began; stop() }()
	if _, err := n.doIn(ctx, t, a.granted(), map[string]any{"url": a.url("/")}); !errors.Is(err, ErrCancelled) {
		t.Error(err)
	}
}

func TestInFlight(t *testing.T) { // ABI-6
	n := newNetwork(t)
	n.client.inFlight = 2
	var now, most atomic.Int64
	open := make(chan struct{})
	a := n.site("a.test", func(w http.ResponseWriter, _ *http.Request) {
		for v := now.Add(1); ; {
			if m := most.Load(); v <= m || most.CompareAndSwap(m, v) {
				break
			}
		}
		<-open
		now.Add(-1)
	})
	lane, other := n.client.Lane(), n.client.Lane()
	raw := []byte(`{"url":"` + a.url("/") + `"}`)
	var wg sync.WaitGroup
	for range 5 {
		wg.Go(func() {
			if _, err := lane.Do(t.Context(), a.granted(), raw); err != nil {
				t.Error(err)
			}
		})
	}
	for now.Load() < 2 {
		time.Sleep(time.Millisecond)
	}
	if _, err := lane.Do(t.Context(), a.granted(), []byte(`{"timeout_ms":20,"url":"`+a.url("/")+`"}`)); !errors.Is(err, ErrUnavailable) {
		t.Errorf("a third fetch: %v", err)
	}
	if now.Load() != 2 || most.Load() != 2 {
		t.Errorf("%d at once, %d at most", now.Load(), most.Load())
	}
	wg.Go(func() {
		if _, err := other.Do(t.Context(), a.granted(), raw); err != nil {
			t.Error("another plugin waits for this one:", err)
		}
	})
	for now.Load() < 3 {
		time.Sleep(time.Millisecond)
	}
	close(open)
	wg.Wait()
}

func TestUnreachable(t *testing.T) { // ABI-6
	n := newNetwork(t)
	a := n.site("a.test", nil)
	t.Run("a certificate of nobody", func(t *testing.T) {
		stranger := NewClient(Options{Resolver: n.resolver}).Lane()
		if _, err := stranger.Do(t.Context(), a.granted(), []byte(`{"url":"`+a.url("/")+`"}`)); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
	})
	t.Run("no such name", func(t *testing.T) {
		if _, err := n.do(t, Grant{Hosts: []string{"none.test"}}, map[string]any{"url": "https://none.test/"}); !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
	})
	t.Run("nobody listens, or what answers is not HTTP", func(t *testing.T) {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			c, err := l.Accept()
			if err == nil {
				bufio.NewReader(c).ReadByte()
				io.WriteString(c, "220 smtp ready\r\n")
				c.Close()
			}
		}()
		place := "a.test:" + l.Addr().String()[len("127.0.0.1:"):]
		g := Grant{Hosts: []string{place}, Private: []string{place}}
		for range 2 {
			if _, err := n.do(t, g, map[string]any{"url": "https://" + place + "/"}); !errors.Is(err, ErrUnavailable) {
				t.Error(err)
			}
			l.Close()
			<-done
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"method":"GET","url":"https://a.test/{{x}}","headers":{"A":"{{secret.key}}{{secret."},"timeout_ms":1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := parse(raw)
		if err != nil {
			return
		}
		g := Grant{Hosts: []string{"a.test"}, Secret: secrets(map[string]string{"key": key})}
		if _, err := g.admit(r.url); err != nil {
			return
		}
		if u, err := url.Parse(r.url.String()); err != nil || strings.Trim(strings.ToLower(u.Hostname()), ".") != "a.test" {
			t.Errorf("%s passes, %v", r.url, err)
		}
		if r.fill(g) != nil {
			return
		}
		if strings.Contains(r.url.String()+r.body, key) {
			t.Error("a secret left the headers")
		}
		for name, values := range r.header {
			if !printable(values[0]) || !token(name) {
				t.Errorf("header %q: %q", name, values)
			}
		}
	})
}
