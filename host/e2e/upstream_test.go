package e2e_test

import (
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// upstream is a scripted provider that speaks chat completions: what it does depends on the key that it is asked with.
type upstream struct {
	url string

	mu     sync.Mutex
	script map[string]behaviour // by key; guarded by mu
	hits   map[string]int       // by key; guarded by mu
	seen   []string             // every request as it came, headers and body; guarded by mu
}

type behaviour func(w http.ResponseWriter, r *http.Request, stream bool)

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{script: map[string]behaviour{}, hits: map[string]int{}}
	srv := httptest.NewServer(u)
	u.url = srv.URL
	t.Cleanup(func() {
		srv.CloseClientConnections()
		srv.Close()
	})
	return u
}

// answers sets what the upstream does for a key.
func (u *upstream) answers(key string, b behaviour) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.script[key] = b
}

// counts returns the hits so far, and forgets them.
func (u *upstream) counts() (byKey map[string]int, total int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	byKey = maps.Clone(u.hits)
	clear(u.hits)
	for _, n := range byKey {
		total += n
	}
	return byKey, total
}

// record is everything that was sent to the upstream, as text.
func (u *upstream) record() string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return strings.Join(u.seen, "\n")
}

func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	u.mu.Lock()
	u.hits[key]++
	u.seen = append(u.seen, fmt.Sprintf("%s %s %s %v %s", r.Method, r.Host, r.URL, r.Header, body))
	b := u.script[key]
	u.mu.Unlock()
	switch {
	case strings.HasSuffix(r.URL.Path, "/models"):
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`)
	case b == nil:
		good(w, r, strings.Contains(string(body), `"stream":true`))
	default:
		b(w, r, strings.Contains(string(body), `"stream":true`))
	}
}

const goodText = "as high as the weir"

// good answers.
func good(w http.ResponseWriter, _ *http.Request, stream bool) {
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`, goodText)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for i, word := range strings.SplitAfter(goodText, " ") {
		send(w, chunk(i, word))
	}
	send(w, `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
	send(w, "data: [DONE]")
}

func chunk(i int, word string) string {
	role := ""
	if i == 0 {
		role = `"role":"assistant",`
	}
	return fmt.Sprintf(`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{%s"content":%q},"finish_reason":null}]}`, role, word)
}

func send(w http.ResponseWriter, event string) {
	fmt.Fprint(w, event, "\n\n")
	_ = http.NewResponseController(w).Flush() // a gateway that left ends the handler by its context
}

// fails answers with an error status.
func fails(status int, body string, headers ...string) behaviour {
	return func(w http.ResponseWriter, _ *http.Request, _ bool) {
		w.Header().Set("Content-Type", "application/json")
		for i := 0; i+1 < len(headers); i += 2 {
			w.Header().Set(headers[i], headers[i+1])
		}
		w.WriteHeader(status)
		fmt.Fprint(w, body)
	}
}

// resets drops the connection without a word.
func resets(w http.ResponseWriter, _ *http.Request, _ bool) { drop(w) }

func drop(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // so that it is a reset
	}
	_ = c.Close() // whatever happens to it, the gateway sees an end
}

// hangs takes the request and says nothing.
func hangs(_ http.ResponseWriter, r *http.Request, _ bool) { <-r.Context().Done() }

// stalls answers with a good head, or a comment of a stream, and then says nothing.
func stalls(w http.ResponseWriter, r *http.Request, stream bool) {
	if stream {
		w.Header().Set("Content-Type", "text/event-stream")
		send(w, ": working on it")
	} else {
		w.Header().Set("Content-Type", "application/json")
		_ = http.NewResponseController(w).Flush() // as in send
	}
	<-r.Context().Done()
}

// slowly streams n words, one each period, and then ends well; in the meantime it tells left when the gateway is gone.
func slowly(n int, period time.Duration, left chan<- time.Time) behaviour {
	return func(w http.ResponseWriter, r *http.Request, _ bool) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range n {
			send(w, chunk(i, fmt.Sprintf("word%d ", i)))
			select {
			case <-r.Context().Done():
				if left != nil {
					left <- time.Now()
				}
				return
			case <-time.After(period):
			}
		}
		send(w, `data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}`)
		send(w, "data: [DONE]")
	}
}

// events streams what it is given, flushed one by one, and then ends, or drops the connection; plain requests it answers well.
func events(list []string, cut bool) behaviour {
	return func(w http.ResponseWriter, r *http.Request, stream bool) {
		if !stream {
			good(w, r, false)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for _, e := range list {
			send(w, e)
		}
		if cut {
			time.Sleep(20 * time.Millisecond) // so that what was sent arrives before the reset
			drop(w)
		}
	}
}

// text is the content of a good answer, plain or streamed; empty when the answer is not a whole one.
func text(a answer, stream bool) string {
	if a.status != http.StatusOK {
		return ""
	}
	if !stream {
		var b strings.Builder
		choices, _ := a.field("choices").([]any)
		for _, c := range choices {
			m, _ := c.(map[string]any)
			msg, _ := m["message"].(map[string]any)
			s, _ := msg["content"].(string)
			b.WriteString(s)
		}
		return b.String()
	}
	if !strings.HasSuffix(a.body, "data: [DONE]\n\n") || !strings.Contains(a.body, `"finish_reason":"stop"`) || strings.Contains(a.body, `"error"`) {
		return ""
	}
	return streamed(a.body)
}

// streamed joins the words of a stream.
func streamed(body string) string {
	var b strings.Builder
	for line := range strings.Lines(body) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		choices, _ := (answer{body: data}).field("choices").([]any)
		for _, c := range choices {
			m, _ := c.(map[string]any)
			delta, _ := m["delta"].(map[string]any)
			s, _ := delta["content"].(string)
			b.WriteString(s)
		}
	}
	return b.String()
}
