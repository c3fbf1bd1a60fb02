package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/host/e2e/scripted"
)

// script starts a scripted upstream in real time.
func script(t *testing.T, text string) (*scripted.Upstream, string) {
	t.Helper()
	u := scripted.New(nil)
	if err := u.Script(text, nil); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(u)
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return u, srv.URL
}

// SCN-15, COOL-74, OV-4: a client hangs up while its request waits for a cooldown, before the headers, before the first word, or
// in the middle of the stream, with a slow upstream. The upstream is left within 100 ms, the place is given back, and neither
// breaker nor connection hears of it; afterwards the gateway answers as ever.
func TestClientHangsUp(t *testing.T) {
	t.Parallel()
	u, at := script(t, `
key before model head: slow 30s ok
key before model first: stall
key before model middle: each 20s ok
key waits: times 1 429 retry-after 5
`)
	g := serve(t, setup{config: fmt.Sprintf(`
providers:
  - {id: openai, base_url: %[1]s/openai/v1}
  - {id: mistral, base_url: %[1]s/mistral/v1}
connections:
  - {id: before, provider: openai, api_key: before}
  - {id: waits, provider: mistral, api_key: waits, provider_data: {passthroughModels: false}}
combos:
  - {id: best, targets: [{model: openai/head}, {model: openai/other}]}
resilience: {providerBreaker: {apikey: {failureThreshold: 1}}}
`, at)})
	cases := []struct {
		name, model  string
		stream, word bool // wait for the first word before leaving
	}{
		{"before the headers", "openai/head", false, false},
		{"before the headers of a stream", "openai/head", true, false},
		{"before the headers through a combo", "best", true, false},
		{"before the first word", "openai/first", true, false},
		{"in the middle of the stream", "openai/middle", true, true},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			left := len(u.Left())
			gone := g.hangUp(t, c.model, c.stream, func() bool { now, _ := u.Open(); return now == 1 }, c.word)
			g.eventually(5*time.Second, "the upstream is left", func() bool { return len(u.Left()) > left })
			if late := u.Left()[left].Sub(gone); late > 100*time.Millisecond {
				t.Errorf("the upstream was left after %v", late)
			}
			g.eventually(time.Second, "the place is given back", func() bool { now, _ := u.Open(); return now == 0 })
		})
	}
	t.Run("while it waits for a cooldown", func(t *testing.T) {
		u.Hits()
		g.hangUp(t, "mistral/m", false, func() bool {
			return fmt.Sprint(g.admin("GET", "/api/providers/waits", "").field("connection", "health", "status")) == "cooling_down"
		}, false)
		time.Sleep(100 * time.Millisecond)
		if hits := scripted.Summary(u.Hits()); hits != "waits 1" {
			t.Errorf("hits: %s", hits)
		}
	})
	if a := g.admin("GET", "/api/resilience/connections?provider=openai", ""); strings.Contains(a.body, `"OPEN"`) || strings.Contains(a.body, `"failureCount":1`) ||
		!strings.Contains(a.body, `"status":"healthy"`) {
		t.Errorf("somebody was blamed: %s", a.body)
	}
	if a := g.chat("openai/other", true); text(a, true) != scripted.Text {
		t.Errorf("%d %s", a.status, a.body)
	}
}

// hangUp sends a request and leaves once there is reason to, and says when.
func (g *gateway) hangUp(t *testing.T, model string, stream bool, ready func() bool, word bool) time.Time {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	read, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, g.url+"/v1/chat/completions", strings.NewReader(question(model, stream)))
		if err != nil {
			return
		}
		resp, err := client.Do(req)
		if err != nil {
			return // it left
		}
		defer resp.Body.Close()
		lines := bufio.NewScanner(resp.Body)
		var once sync.Once
		for lines.Scan() {
			if strings.Contains(lines.Text(), `"content":"as `) {
				once.Do(func() { close(read) })
			}
		}
	}()
	g.eventually(5*time.Second, "the request is under way", ready)
	if word {
		select {
		case <-read:
		case <-time.After(5 * time.Second):
			t.Fatal("no word came")
		}
	}
	gone := time.Now()
	leave()
	<-ended
	return gone
}

// SCN-20, DATA-2, OV-5, OBJ-22: killed under load, the gateway starts within a second, and breaker, lockout, cooldown and terminal
// state are as they were, with the remaining times.
func TestKillUnderLoad(t *testing.T) {
	t.Parallel()
	_, at := script(t, `
key cooling: 429 retry-after 300
key banned: 403 body {"error":{"message":"Your account has been suspended","type":"x"}}
key locked model M1: 429 retry-after 600 body {"error":{"message":"Rate limit reached for M1 on requests per day","type":"requests","code":"rate_limit_exceeded"}}
provider mistral: 503
`)
	s := setup{config: fmt.Sprintf(`
providers:
  - {id: openai, base_url: %[1]s/openai/v1}
  - {id: mistral, base_url: %[1]s/mistral/v1}
  - {id: groq, base_url: %[1]s/groq/v1}
connections:
  - {id: cooling, provider: openai, api_key: cooling, priority: 1, provider_data: {passthroughModels: false}}
  - {id: banned, provider: openai, api_key: banned, priority: 2}
  - {id: locked, provider: openai, api_key: locked, priority: 3}
  - {id: down, provider: mistral, api_key: down}
  - {id: good, provider: groq, api_key: good}
combos:
  - {id: best, targets: [{model: openai/M1}, {model: mistral/m}, {model: groq/m}]}
resilience: {providerBreaker: {apikey: {failureThreshold: 1, resetTimeoutMs: 600000}}}
`, at)}
	g := serve(t, s)
	if a := g.chat("best", false); text(a, false) != scripted.Text {
		t.Fatalf("%d %s", a.status, a.body)
	}
	before := g.layers()
	if !strings.Contains(before, "OPEN") || !strings.Contains(before, "M1") || !strings.Contains(before, "cooling_down") || !strings.Contains(before, "banned") {
		t.Fatalf("not everything is out: %s", before)
	}
	ctx, stop := context.WithCancel(t.Context())
	var load sync.WaitGroup
	for range 8 {
		load.Go(func() {
			for ctx.Err() == nil {
				if _, err := g.try(ctx, "POST", "/v1/chat/completions", question("best", true)); err != nil {
					return
				}
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	g.kill()
	stop()
	load.Wait()
	s.data = g.data
	began := time.Now()
	g = serve(t, s)
	if took := time.Since(began); took > 5*time.Second { // a second on a machine that does nothing else
		t.Errorf("the start took %v", took)
	}
	if after := g.layers(); after != before {
		t.Errorf("was\n%s\nis\n%s", before, after)
	}
	if h := g.weir("history"); h.code != 0 || !strings.Contains(h.out, "the breaker of mistral opened after 1 failure, the last a 503") ||
		!strings.Contains(h.out, "the quota of M1 on locked is locked out until") {
		t.Errorf("OBJ-23: %d %s %s", h.code, h.out, h.err)
	}
}

// layers is what every layer says, without what moves with the clock.
func (g *gateway) layers() string {
	g.t.Helper()
	var b strings.Builder
	for _, id := range []string{"cooling", "banned", "locked", "down", "good"} {
		a := g.admin("GET", "/api/providers/"+id, "")
		fmt.Fprintln(&b, id, jsonText(a.field("connection", "health")))
	}
	locks, _ := g.admin("GET", "/api/resilience/model-cooldowns", "").field("items").([]any)
	for _, l := range locks {
		m, _ := l.(map[string]any)
		delete(m, "remainingMs")
		fmt.Fprintln(&b, jsonText(m))
	}
	breakers, _ := g.admin("GET", "/api/resilience/connections", "").field("breakers").([]any)
	for _, x := range breakers {
		m, _ := x.(map[string]any)
		delete(m, "retryAfterMs")
		fmt.Fprintln(&b, jsonText(m))
	}
	return b.String()
}
