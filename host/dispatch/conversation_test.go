package dispatch_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/sdk/wire"
)

// INF-14: the identity of a conversation, in the order of its sources.
func TestConversation(t *testing.T) {
	for _, c := range []struct {
		name, body, want string
		header           []string
	}{
		{"nothing", `{}`, "", nil},
		{"codex", `{"prompt_cache_key":"p"}`, "x", []string{"X-Codex-Session-Id", "x", "X-Session-Id", "y"}},
		{"a session", `{"session_id":"s"}`, "y", []string{"X-Session-Id", "y"}},
		{"our own", `{}`, "w", []string{"X-Weir-Session", "w"}},
		{"our older name", `{}`, "o", []string{"X-Omniroute-Session", "o"}},
		{"metadata", `{"metadata":{"session_id":"m"},"session_id":"s"}`, "m", []string{"Session-Id", "h"}},
		{"metadata of another spelling", `{"metadata":{"sessionId":"m"}}`, "m", nil},
		{"conversation", `{"conversation_id":"c","session_id":"s"}`, "c", nil},
		{"cache key", `{"prompt_cache_key":"p"}`, "p", []string{"X-Claude-Code-Session-Id", "h"}},
		{"INF-14 Claude Code", `{}`, "h", []string{"X-Claude-Code-Session-Id", "h", "Session-Id", "i"}},
		{"INF-14 a session of codex", `{}`, "i", []string{"Session-Id", "i", "Thread-Id", "j"}},
		{"INF-14 a thread", `{}`, "j", []string{"Thread-Id", "j", "X-Session-Affinity", "k"}},
		{"INF-14 opencode", `{"metadata":{"user_id":"{\"session_id\":\"u\"}"}}`, "k", []string{"X-Session-Affinity", "k"}},
		{"INF-14 within user_id", `{"metadata":{"user_id":"{\"device_id\":\"d\",\"session_id\":\"u\"}"}}`, "u", nil},
		{"a user_id that is none", `{"metadata":{"user_id":"someone"}}`, "", nil},
		{"an identity that is no text", `{"session_id":5}`, "", nil},
		{"an identity that is too long", `{}`, "", []string{"Session-Id", strings.Repeat("x", 1000)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			buf, err := body.Read(strings.NewReader(c.body), int64(len(c.body)), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			defer buf.Release()
			scan, err := buf.Scan()
			if err != nil {
				t.Fatal(err)
			}
			call := &dispatch.Call{Scan: scan, Header: http.Header{}}
			for i := 0; i+1 < len(c.header); i += 2 {
				call.Header.Set(c.header[i], c.header[i+1])
			}
			if got := call.Conversation(); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			tag := call.ConversationTag()
			if (tag == "") != (c.want == "") || tag != "" && strings.Contains(tag, c.want) && len(c.want) > 1 {
				t.Errorf("tag %q", tag)
			}
			if call.Key = (&catalog.Key{ID: "k"}); tag != "" && call.ConversationTag() == tag {
				t.Error("two clients share a tag")
			}
		})
	}
}

const turn = `{"model":"acme/large","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"hi"}]}`

// INF-36, INF-44: what a failed stream left behind holds for what its client sends next: the plain request of the same conversation, and
// each further one, cost the account that failed no attempt.
func TestRetriesOfTheClient(t *testing.T) {
	b := newBench(t).messages().with("a", streams(start, overloaded)).with("b", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(messagesAnswer))
	})
	b.by["b"] = streams(start, opened, delta, overloaded) // after the first word, so that the client sees the failure
	c, trail := b.ask(wire.AnthropicMessages, "/v1/messages", turn, true, "Session-Id", "s")
	if !trail.Partial || !slices.Equal(b.seen(), []string{"a", "b"}) || !strings.Contains(c.body.String(), "event: error") {
		t.Fatalf("%+v %s", trail, c.body.String())
	}
	b.with("c", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(messagesAnswer))
	})
	for range 3 {
		c, _ = b.ask(wire.AnthropicMessages, "/v1/messages", strings.Replace(turn, `"stream":true,`, "", 1), false, "Session-Id", "s")
		if hits := b.seen(); c.status != 200 || !slices.Equal(hits, []string{"c"}) {
			t.Errorf("%d, asked %v", c.status, hits)
		}
	}
}

// INF-46: a 400 that the caller made cools nothing and is not tried on another account.
func TestBadRequestOfTheCaller(t *testing.T) {
	b := newBench(t).messages().with("a", fails(400, `{"type":"error","error":{"type":"invalid_request_error","message":"thinking.display: Extra inputs are not permitted"}}`)).with("b", answers)
	for range 6 { // as Claude Code does, with fewer betas each time
		_, trail := b.ask(wire.AnthropicMessages, "/v1/messages", turn, true)
		if trail.Failure == nil || trail.Failure.Status != 400 || !slices.Equal(b.seen(), []string{"a"}) {
			t.Fatalf("%+v", trail.Failure)
		}
	}
	if n := b.cooled(); n != 0 {
		t.Errorf("%d connections cool", n)
	}
}

// INF-13: an upstream of messages gets a version when its client names none, the client's own else, and betas that nobody knows, all of
// them.
func TestVersionAndBetas(t *testing.T) {
	var got http.Header
	b := newBench(t).messages().with("a", func(w http.ResponseWriter, r *http.Request) {
		got = r.Header
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(messagesAnswer))
	})
	plain := strings.Replace(turn, `"stream":true,`, "", 1)
	b.ask(wire.AnthropicMessages, "/v1/messages", plain, false)
	if got.Get("Anthropic-Version") != "2023-06-01" {
		t.Errorf("no version: %v", got)
	}
	c, _ := b.ask(wire.AnthropicMessages, "/v1/messages", plain, false, "Anthropic-Version", "2099-01-01", "Anthropic-Beta", "a-2099,b-2099")
	if c.status != 200 || got.Get("Anthropic-Beta") != "a-2099,b-2099" {
		t.Errorf("%d %v", c.status, got)
	}
}
