package host_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/host"
	"github.com/weirgate/weir/host/ledger"
)

// books is a gateway whose upstream answers by the key that it is asked with, and whose ledger is read.
type books struct {
	t   *testing.T
	h   *host.Host
	o   host.Options
	url string

	mu      sync.Mutex
	answers map[string]http.HandlerFunc // by provider; guarded by mu
}

const booksConfig = `
providers:
  - {id: openai, base_url: %[1]s/openai/v1}
  - {id: anthropic, base_url: %[1]s/anthropic}
  - {id: acme, executor: openai-compatible, category: apikey, base_url: %[1]s/acme/v1}
connections:
  - {id: o-1, provider: openai, api_key: key-openai}
  - {id: a-1, provider: anthropic, api_key: key-anthropic}
  - {id: c-1, provider: acme, api_key: key-acme}
combos:
  - {id: best, targets: [{model: acme/m}, {model: openai/gpt-5}]}
settings: {requestLog: {trace: true}}
%[2]s`

// newBooks starts a gateway; answers are by provider.
func newBooks(t *testing.T, more string, answers map[string]http.HandlerFunc) *books {
	t.Helper()
	b := &books{t: t, answers: answers}
	up := mock(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		b.mu.Lock()
		a := b.answers[name]
		b.mu.Unlock()
		if a != nil {
			a(w, r)
			return
		}
		t.Errorf("nobody answers for %s", r.URL.Path)
	})
	dir := t.TempDir()
	file := filepath.Join(dir, "weir.yaml")
	if err := os.WriteFile(file, fmt.Appendf(nil, booksConfig, up, more), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"WEIR_ADMIN_KEY": "admin-key-of-the-tests"}
	b.o = host.Options{ConfigFile: file, DataDir: filepath.Join(dir, "data"), Listen: "127.0.0.1:0", Env: func(n string) (string, bool) {
		v, ok := env[n]
		return v, ok
	}}
	b.up()
	return b
}

func (b *books) up() {
	b.h = start(b.t, b.o)
	b.url = "http://" + b.h.Addr()
}

// now makes the upstream answer otherwise, and forgets what the gateway made of the answers before.
func (b *books) now(t *testing.T, answers map[string]http.HandlerFunc) {
	b.t = t
	b.mu.Lock()
	b.answers = answers
	b.mu.Unlock()
	resp, err := b.send(t.Context(), "POST", "/api/resilience/reset", `{"include":["providerCooldown","cooldowns","lockouts"]}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
		t.Fatalf("reset: %d %s", resp.StatusCode, text)
	}
	for _, id := range []string{"a-1", "c-1", "o-1"} { // terminal states stay otherwise
		resp, err := b.send(t.Context(), "POST", "/api/providers/"+id+"/reset", "")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
}

// again stops the gateway and starts it on the same folder.
func (b *books) again() {
	b.t.Helper()
	stop(b.t, b.h)
	b.up()
}

func (b *books) send(ctx context.Context, method, path, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("User-Agent", "tester/1.0 (here)")
	if strings.HasPrefix(path, "/api/") {
		r.Header.Set("Authorization", "Bearer admin-key-of-the-tests")
	}
	return http.DefaultClient.Do(r)
}

// post sends a request of a client to its end and returns its row.
func (b *books) post(path, body string) ledger.Row {
	b.t.Helper()
	resp, err := b.send(b.t.Context(), "POST", path, body)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	r := b.row(resp.Header.Get("X-Request-Id"))
	if r.Status != resp.StatusCode {
		b.t.Errorf("the row says %d, the client saw %d: %s", r.Status, resp.StatusCode, text)
	}
	return r
}

func (b *books) get(path string, dst any) int {
	b.t.Helper()
	resp, err := b.send(b.t.Context(), "GET", path, "")
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(dst); err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode
}

// row is the row of a request. One whose client left comes a moment later.
func (b *books) row(id string) (r ledger.Row) {
	b.t.Helper()
	for range 200 {
		if b.get("/api/requests/"+id, &r) == http.StatusOK {
			return r
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.t.Fatalf("there is no row of %s", id)
	return r
}

func tells(status int, text string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasPrefix(text, "data:") || strings.HasPrefix(text, "event:") {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, text)
	}
}

const (
	chatWord  = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"high water"},"finish_reason":null}]}` + "\n\n"
	chatStop  = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	chatUsage = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":40,"total_tokens":1040,"prompt_tokens_details":{"cached_tokens":400},"completion_tokens_details":{"reasoning_tokens":8}}}` + "\n\n"
	chatDone  = "data: [DONE]\n\n"
	chatPlain = `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"high water"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":40,"total_tokens":1040}}`
	spoken    = `event: message_start
data: {"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"x","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":50,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"high water"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":20}}

event: message_stop
data: {"type":"message_stop"}

`
)

func question(model string, more string) string {
	return fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"hello"}]%s}`, model, more)
}

func counted(t ledger.Tokens) string {
	n := func(p *int64) string {
		if p == nil {
			return "-"
		}
		return fmt.Sprint(*p)
	}
	s := strings.Join([]string{n(t.Input), n(t.CachedRead), n(t.CacheWrite), n(t.Output), n(t.Reasoning)}, " ")
	if t.Estimated {
		s += " estimated"
	}
	return s
}

func TestTokensInTheLedger(t *testing.T) {
	b := newBooks(t, "", nil)
	const stream = `,"stream":true`
	const wants = `,"stream":true,"stream_options":{"include_usage":true}`
	for _, c := range []struct {
		name, path, body, provider string
		answer                     http.HandlerFunc
		tokens                     string
		usd                        float64 // 0: not known
	}{
		{"SCN-17 usage in a last chunk that nobody asked for", "/v1/chat/completions", question("openai/gpt-5", stream), "openai",
			tells(200, chatWord+chatStop+chatUsage+chatDone), "1000 400 - 40 8", 0.0012},
		{"SCN-17 no usage at all is absent", "/v1/chat/completions", question("openai/gpt-5", stream), "openai", tells(200, chatWord+chatStop+chatDone), "- - - - -", 0},
		{"INF-22 an estimate for a client that asked", "/v1/chat/completions", question("openai/gpt-5", wants), "openai", tells(200, chatWord+chatStop+chatDone), "- - - - - estimated", 0},
		{"OBJ-17 a plain answer", "/v1/chat/completions", question("openai/gpt-5", ""), "openai", tells(200, chatPlain), "1000 - - 40 -", 0.00165},
		{"OBJ-21 a model without a price", "/v1/chat/completions", question("acme/m", ""), "acme", tells(200, chatPlain), "1000 - - 40 -", 0},
		{"TR-5 TR-6 messages: the last value wins, the cache is a part of the input", "/v1/messages",
			`{"model":"anthropic/claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"hello"}],"stream":true}`, "anthropic",
			tells(200, spoken), "160 100 50 20 -", 0.000548},
		{"TR-5 the same through another dialect", "/v1/chat/completions", question("anthropic/claude-sonnet-4-5", stream), "anthropic", tells(200, spoken), "160 100 50 20 -", 0.000548},
		{"INF-22 an estimate in a translated answer", "/v1/messages", `{"model":"acme/m","max_tokens":9,"messages":[{"role":"user","content":"hello"}]}`, "acme",
			tells(200, strings.Replace(chatPlain, `"usage":{"prompt_tokens":1000,"completion_tokens":40,"total_tokens":1040}`, `"system_fingerprint":null`, 1)), "- - - - - estimated", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			b.now(t, map[string]http.HandlerFunc{c.provider: c.answer})
			r := b.post(c.path, c.body)
			if got := counted(r.Tokens); got != c.tokens || r.Outcome != "ok" || len(r.Attempts) != 1 || !r.Attempts[0].Billed || *r.Provider != c.provider {
				t.Errorf("%s, want %s: %+v", got, c.tokens, r)
			}
			if r.CostUSD == nil != (c.usd == 0) || r.CostUSD != nil && *r.CostUSD != c.usd {
				t.Errorf("it costs %v, want %v", r.CostUSD, c.usd)
			}
			if r.TTFTMS == nil && r.DurationMS > 0 || *r.Client != "tester/1.0" || r.Stream != strings.Contains(c.body, "stream") {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestFallbacksInTheLedger(t *testing.T) {
	b := newBooks(t, "", nil)
	failed := `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""}}],"usage":{"prompt_tokens":77,"completion_tokens":0}}` + "\n\n"
	for _, c := range []struct {
		name   string
		first  http.HandlerFunc
		stream string
		reason string
	}{
		{"FLT-16 SCN-17 a status", tells(503, `{"error":{"message":"overloaded"}}`), "", "overloaded"},
		{"SCN-8 an error under 200", tells(200, `{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}`), "", "credits_exhausted"},
		{"SCN-8 a page under 200", tells(200, "<html>login</html>"), "", "server_error"},
		{"FLT-16 SCN-17 an error in a stream that had stated usage", tells(200, failed+`data: {"error":{"message":"the server had an error","type":"server_error"}}`+"\n\n"), `,"stream":true`, "server_error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			answer := tells(200, chatPlain)
			if c.stream != "" {
				answer = tells(200, chatWord+chatStop+chatUsage+chatDone)
			}
			b.now(t, map[string]http.HandlerFunc{"acme": c.first, "openai": answer})
			r := b.post("/v1/chat/completions", question("best", c.stream))
			if len(r.Attempts) != 2 || r.Attempts[0].Billed || !r.Attempts[1].Billed || *r.Tokens.Input != 1000 || *r.Tokens.Output != 40 {
				text, _ := json.Marshal(r)
				t.Fatalf("%s", text)
			}
			if a := r.Attempts[0]; a.Reason == nil || a.DecidedBy == nil || a.ConnectionID != "c-1" {
				t.Errorf("%+v", a)
			} else if *a.Reason != c.reason {
				t.Errorf("judged as %s", *a.Reason)
			}
			if *r.Provider != "openai" || *r.Model != "gpt-5" || *r.ConnectionID != "o-1" || r.RequestedModel != "best" || r.Route.Kind != "combo" || r.Reason != nil {
				t.Errorf("%+v", r)
			}
		})
	}
	t.Run("SCN-17 nothing answered, nothing is billed", func(t *testing.T) {
		b.now(t, map[string]http.HandlerFunc{"acme": tells(400, `{"error":{"message":"bad parameter","type":"invalid_request_error"}}`)})
		r := b.post("/v1/chat/completions", question("acme/m", ""))
		if r.Outcome != "client_error" || r.Attempts[0].Billed || counted(r.Tokens) != "- - - - -" || r.CostUSD != nil || r.Reason == nil || r.TTFTMS != nil {
			t.Errorf("%+v", r)
		}
	})
}

// SCN-15 OV-4: a client that leaves has a partial row.
func TestCancelledInTheLedger(t *testing.T) {
	b := newBooks(t, "", nil)
	for name, before := range map[string]string{"before the first word": "", "in mid-stream": chatWord} {
		t.Run("SCN-15 "+name, func(t *testing.T) {
			left := make(chan struct{})
			b.now(t, map[string]http.HandlerFunc{"acme": func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", "text/event-stream")
				_, _ = io.WriteString(w, before)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				close(left)
			}})
			began := time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if before == "" {
				time.AfterFunc(300*time.Millisecond, cancel)
			}
			resp, err := b.send(ctx, "POST", "/v1/chat/completions", question("acme/m", `,"stream":true`))
			if err == nil {
				_, _ = bufio.NewReader(resp.Body).ReadString('\n')
				cancel()
				resp.Body.Close()
			}
			<-left
			var list struct{ Requests []ledger.Row }
			for range 200 {
				if b.get("/api/requests?outcome=cancelled&since="+began, &list); len(list.Requests) > 0 {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if len(list.Requests) != 1 {
				t.Fatal("OBJ-17: there is no row of the request")
			}
			r := list.Requests[0]
			if r.Status != 499 || r.Reason != nil || len(r.Attempts) != 1 || r.Attempts[0].Billed != (before != "") || r.Attempts[0].Reason != nil || *r.ConnectionID != "c-1" {
				text, _ := json.Marshal(r)
				t.Errorf("%s", text)
			}
			var breakers struct {
				Connections []struct{ Health struct{ Status string } }
			}
			if b.get("/api/providers?provider=acme", &breakers); breakers.Connections[0].Health.Status != "healthy" {
				t.Errorf("OV-4: the connection is %s", breakers.Connections[0].Health.Status)
			}
		})
	}
}

func TestRefusedInTheLedger(t *testing.T) {
	b := newBooks(t, "", nil)
	t.Run("OBJ-17 a model that nobody knows", func(t *testing.T) {
		r := b.post("/v1/chat/completions", question("nobody/nothing", ""))
		if r.Outcome != "client_error" || *r.Reason != "model_not_found" || r.Route != nil || len(r.Attempts) != 0 || r.RequestedModel != "nobody/nothing" {
			t.Errorf("%+v", r)
		}
	})
	t.Run("OBJ-17 no JSON", func(t *testing.T) {
		if r := b.post("/v1/messages", "{"); r.Outcome != "client_error" || r.Status != 400 || r.ClientDialect != "anthropic_messages" {
			t.Errorf("%+v", r)
		}
	})
}

// OV-1 OBJ-18: the trace lists the gates in their order, those of a target again with each attempt.
func TestTraceInTheLedger(t *testing.T) {
	b := newBooks(t, "", map[string]http.HandlerFunc{"acme": tells(503, `{"error":{"message":"overloaded"}}`), "openai": tells(200, chatWord+chatStop+chatUsage+chatDone)})
	r := b.post("/v1/chat/completions", question("best", `,"stream":true`))
	var ns []int
	for _, g := range r.Gates {
		ns = append(ns, g.N)
	}
	second := slices.Index(ns[slices.Index(ns, 22):], 10) + slices.Index(ns, 22)
	if second < 0 || !slices.IsSorted(ns[:second]) || !slices.IsSorted(ns[second:]) {
		t.Errorf("OV-1: %v", ns)
	}
	for _, n := range []int{1, 2, 5, 7, 8, 10, 15, 16, 18, 19, 20, 21, 22, 23} {
		if !slices.Contains(ns, n) {
			t.Errorf("OV-1: gate %d is missing in %v", n, ns)
		}
	}
}

// OBJ-21: the shipped prices are replaced by a plugin of their name, also while the gateway runs.
func TestPricesOfAnOperator(t *testing.T) {
	dir := t.TempDir()
	b := newBooks(t, "plugins: {dir: "+dir+"}", map[string]http.HandlerFunc{"acme": tells(200, chatPlain), "openai": tells(200, chatPlain)})
	if r := b.post("/v1/chat/completions", question("openai/gpt-5", "")); r.CostUSD == nil || !strings.HasPrefix(r.Prices, "pricing@0.1") {
		t.Fatalf("OBJ-21: %v by %q", r.CostUSD, r.Prices)
	}
	const own = "name: pricing\nversion: 9.0.0\nprices:\n  - {provider: acme, model: \"*\", input: 1, output: 100}\n"
	if err := os.WriteFile(filepath.Join(dir, "pricing.yaml"), []byte(own), 0o600); err != nil {
		t.Fatal(err)
	}
	var table struct {
		Prices []struct{ Source string }
		Total  int
	}
	for range 500 {
		if b.get("/api/pricing", &table); table.Total == 1 {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	if table.Total != 1 || table.Prices[0].Source != "pricing@9.0.0" {
		t.Fatalf("OBJ-21: the table in force is %+v", table)
	}
	if r := b.post("/v1/chat/completions", question("acme/m", "")); r.CostUSD == nil || *r.CostUSD != 0.005 || r.Prices != "pricing@9.0.0" {
		t.Errorf("OBJ-21: %v by %q", r.CostUSD, r.Prices)
	}
	if r := b.post("/v1/chat/completions", question("openai/gpt-5", "")); r.CostUSD != nil {
		t.Errorf("OBJ-21: no match, yet it costs %v", *r.CostUSD)
	}
}

// OBJ-20: what the heads of answers say is shown, also of failures, and comes back after a restart.
func TestQuotaOfAnswers(t *testing.T) {
	b := newBooks(t, "", map[string]http.HandlerFunc{
		"acme":   tells(429, `{"error":{"message":"slow down"}}`, "x-ratelimit-limit-requests", "500", "x-ratelimit-remaining-requests", "0", "x-ratelimit-reset-requests", "6m0s"),
		"openai": tells(200, chatPlain, "x-ratelimit-limit-tokens", "200", "x-ratelimit-remaining-tokens", "50"),
	})
	b.post("/v1/chat/completions", question("best", ""))
	type shown struct {
		At      *string
		Source  *string
		Windows []struct {
			Name        string
			UsedPercent float64
			ResetsAt    *string
		}
	}
	check := func(when string) {
		t.Helper()
		var failed, good shown
		b.get("/api/providers/c-1/quota", &failed)
		b.get("/api/providers/o-1/quota", &good)
		if len(failed.Windows) != 1 || failed.Windows[0].UsedPercent != 100 || failed.Windows[0].ResetsAt == nil || *failed.Source != "headers" {
			t.Errorf("OBJ-20 %s: %+v", when, failed)
		}
		if len(good.Windows) != 1 || good.Windows[0].Name != "tokens" || good.Windows[0].UsedPercent != 75 {
			t.Errorf("OBJ-20 %s: %+v", when, good)
		}
	}
	check("at once")
	b.again()
	check("after a restart")
}
