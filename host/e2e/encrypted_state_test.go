package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// thinks answers a request of responses with reasoning under a key of the account.
func thinks(state string) behaviour {
	return func(w http.ResponseWriter, _ *http.Request, stream bool) {
		body := fmt.Sprintf(`{"id":"resp_1","object":"response","status":"completed","model":"m","output":[{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":%q},`+
			`{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":%q,"annotations":[]}]}],"usage":{"input_tokens":3,"output_tokens":4,"total_tokens":7}}`, state, goodText)
		if !stream {
			w.Header().Set("Content-Type", "application/json")
			fmt.Fprint(w, body)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		send(w, `data: {"type":"response.created","response":{"id":"resp_1"}}`)
		send(w, `data: {"type":"response.output_text.delta","output_index":1,"content_index":0,"delta":"`+goodText+`"}`)
		send(w, `data: {"type":"response.completed","response":`+body+`}`)
	}
}

// SCN-16: the second turn of a conversation goes to the account that issued its encrypted state; while that one cools another one answers
// without it and says so, or nobody does, as configured.
func TestEncryptedStateGoesHome(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	u.answers("key-a", thinks("state-of-a"))
	u.answers("key-b", thinks("state-of-b"))
	g := serve(t, setup{config: fmt.Sprintf(`
providers: [{id: openai, base_url: %s/v1, category: local}]
`, u.url)})
	for i, id := range []string{"a", "b"} {
		made := fmt.Sprintf(`{"id":%q,"provider":"openai","apiKey":"key-%s","priority":%d}`, id, id, i+1)
		if p := g.admin(http.MethodPost, "/api/providers", made); p.status != http.StatusCreated {
			t.Fatalf("%d %s", p.status, p.body)
		}
	}
	ask := func(stream bool, items string) (answer, map[string]int) {
		a := g.call(http.MethodPost, "/v1/responses", fmt.Sprintf(`{"model":"openai/gpt-5","stream":%v,"store":false,"input":[%s{"role":"user","content":"go on"}]}`, stream, items))
		hits, _ := u.counts()
		return a, hits
	}
	only := func(hits map[string]int, key string) bool { return len(hits) == 1 && hits[key] == 1 }
	if a, hits := ask(true, ""); a.status != 200 || !only(hits, "key-a") {
		t.Fatalf("first turn: %d %v %s", a.status, hits, a.body)
	}
	const thought = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"state-of-a"},`
	if p := g.admin(http.MethodPatch, "/api/providers/a", `{"priority":3}`); p.status != 200 {
		t.Fatalf("%d %s", p.status, p.body)
	}
	if a, hits := ask(true, thought); a.status != 200 || !only(hits, "key-a") || a.header.Get("X-Weir-Degraded") != "" || strings.Count(u.record(), thought) != 1 {
		t.Errorf("healthy: %d %v %v", a.status, hits, a.header)
	}
	if a, hits := ask(false, ""); a.status != 200 || !only(hits, "key-b") {
		t.Errorf("without state: %d %v %s", a.status, hits, a.body)
	}
	u.answers("key-a", fails(429, `{"error":{"message":"slow down"}}`, "Retry-After", "600"))
	ask(false, thought)
	a, hits := ask(false, thought)
	if a.status != 200 || !only(hits, "key-b") || a.header.Get("X-Weir-Degraded") != "encrypted_state" {
		t.Errorf("cooling: %d %v %v %s", a.status, hits, a.header, a.body)
	}
	for line := range strings.SplitSeq(u.record(), "\n") {
		if strings.Contains(line, "key-b") && strings.Contains(line, "state-of-a") {
			t.Errorf("another account was sent: %s", line)
		}
	}
	if p := g.admin(http.MethodPatch, "/api/resilience", `{"routeDefaults":{"encryptedState":"refuse"},"waitForCooldown":{"enabled":false}}`); p.status != 200 {
		t.Fatalf("%d %s", p.status, p.body)
	}
	ask(true, thought) // the account may be due for a test
	if a, hits := ask(true, thought); a.status != http.StatusConflict || len(hits) > 0 || a.field("error", "code") != "encrypted_state_elsewhere" || a.header.Get("Retry-After") == "" {
		t.Errorf("refused: %d %v %v %s", a.status, hits, a.header, a.body)
	}
}
