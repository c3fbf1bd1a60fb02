package e2e_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

const errorEvent = `data: {"error":{"message":"the river ran dry","type":"server_error","code":"boom"}}`

// A stream that breaks after it began says so in one event and has no end marker; one that breaks before is answered by the next
// connection, or with a true status when there is none (INF-34, INF-35, STM-10, STM-11, STM-52, INF-32).
func TestBrokenStreams(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	words := []string{chunk(0, "half "), chunk(1, "an answer")}
	u.answers("key-cut", events(words, true))
	u.answers("key-early", events(words, false))
	u.answers("key-late", events(append(words[:2:2], errorEvent, chunk(2, " too much"), "data: [DONE]"), false))
	u.answers("key-first", events([]string{": beat", errorEvent}, false))
	u.answers("key-nothing", events([]string{": beat"}, true))
	config := "providers:\n"
	for _, id := range []string{"cut", "early", "late", "first", "nothing"} {
		config += fmt.Sprintf("  - {id: %[1]s, executor: openai-compatible, category: local, base_url: %[2]s/v1}\n  - {id: %[1]s-two, executor: openai-compatible, category: local, base_url: %[2]s/v1}\n", id, u.url)
	}
	config += "connections:\n"
	for _, id := range []string{"cut", "early", "late", "first", "nothing"} {
		config += fmt.Sprintf("  - {id: %[1]s, provider: %[1]s, api_key: key-%[1]s}\n", id)
		config += fmt.Sprintf("  - {id: %[1]s-bad, provider: %[1]s-two, api_key: key-%[1]s, priority: 1}\n  - {id: %[1]s-good, provider: %[1]s-two, api_key: key-good, priority: 2}\n", id)
	}
	g := serve(t, setup{config: config})
	for _, id := range []string{"cut", "early", "late"} {
		for _, provider := range []string{id, id + "-two"} {
			a := g.chat(provider+"/m", true)
			if a.status != http.StatusOK || streamed(a.body) != "half an answer" || strings.Contains(a.body, "[DONE]") || strings.Count(a.body, `data: {"error":{`) != 1 {
				t.Errorf("%s: %d %s", provider, a.status, a.body)
			}
			if !strings.HasSuffix(a.body, "\n\n") {
				t.Errorf("%s: the last event is not whole: %q", provider, a.body)
			}
			if id == "late" && !strings.Contains(a.body, "the river ran dry") {
				t.Errorf("INF-32: the provider's words are lost: %s", a.body)
			}
		}
	}
	for _, id := range []string{"first", "nothing"} {
		if a := g.chat(id+"-two/m", true); text(a, true) != goodText || strings.Contains(a.body, "beat") {
			t.Errorf("%s-two: %d %s", id, a.status, a.body)
		}
		a := g.chat(id+"/m", true)
		if a.status < 500 || a.field("error", "message") == nil || !strings.HasPrefix(a.header.Get("Content-Type"), "application/json") {
			t.Errorf("%s: %d %v %s", id, a.status, a.header, a.body)
		}
	}
}

// The head of a streamed answer, and an answer that was asked for plain (INF-20, INF-21, INF-18).
func TestGoodStream(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	g := serve(t, setup{config: openProvider(u.url)})
	a := g.chat("open/m", true)
	if text(a, true) != goodText || a.header.Get("Content-Type") != "text/event-stream" || a.header.Get("Cache-Control") != "no-cache" ||
		a.header.Get("Content-Length") != "" || a.header.Get("X-Request-Id") == "" {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	if a := g.chat("open/m", false); text(a, false) != goodText || a.header.Get("X-Weir-Attempts") != "" {
		t.Errorf("%d %v %s", a.status, a.header, a.body)
	}
	if a := g.call("POST", "/v1/chat/completions", `{"model":"open/m","messages":[}`); a.status != 400 || a.field("error", "type") != "invalid_request_error" {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := g.chat("open/mm", false); a.status != http.StatusOK && a.status != http.StatusNotFound {
		t.Errorf("%d %s", a.status, a.body)
	}
	if a := g.chat("opne/m", false); a.status != 404 || a.field("error", "code") != "model_not_found" || !strings.Contains(a.body, "open/m") {
		t.Errorf("CFG-4: %d %s", a.status, a.body)
	}
}

// A client that leaves is gone upstream within 100 ms, before the first event and in mid-stream, and counts against nobody
// (INF-28, OV-4, COOL-34).
func TestClientLeaves(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	left, came := make(chan time.Time, 1), make(chan struct{}, 1)
	u.answers("key-slow", slowly(1000, 20*time.Millisecond, left))
	u.answers("key-mute", func(_ http.ResponseWriter, r *http.Request, _ bool) {
		came <- struct{}{}
		<-r.Context().Done()
		left <- time.Now()
	})
	g := serve(t, setup{config: fmt.Sprintf(`
providers:
  - {id: slow, executor: openai-compatible, category: local, base_url: %[1]s/v1}
  - {id: mute, executor: openai-compatible, category: local, base_url: %[1]s/v1}
connections: [{id: slow, provider: slow, api_key: key-slow}, {id: mute, provider: mute, api_key: key-mute}]
`, u.url)})
	leave := func(model string, stream bool) time.Time {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "POST", g.url+"/v1/chat/completions", strings.NewReader(question(model, stream)))
		if err != nil {
			t.Fatal(err)
		}
		if model == "mute/m" {
			go func() {
				if resp, err := client.Do(req); err == nil {
					resp.Body.Close()
				}
			}()
			<-came
			return time.Now()
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if _, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		return time.Now()
	}
	for _, c := range []struct {
		model  string
		stream bool
	}{{"slow/m", true}, {"mute/m", true}, {"mute/m", false}} {
		began := leave(c.model, c.stream)
		select {
		case at := <-left:
			if took := at.Sub(began); took > 100*time.Millisecond*patience {
				t.Errorf("%s stream=%t: the upstream was let go after %v", c.model, c.stream, took)
			}
		case <-time.After(5 * time.Second):
			t.Fatalf("%s stream=%t: the upstream was not let go", c.model, c.stream)
		}
	}
	for _, id := range []string{"slow", "mute"} {
		if a := g.admin("GET", "/api/providers/"+id, ""); a.field("connection", "health", "status") != "healthy" || a.field("connection", "health", "lastError") != nil {
			t.Errorf("%s: %s", id, a.body)
		}
	}
}

// patience stretches times that a loaded machine cannot hold exactly.
const patience = 3
