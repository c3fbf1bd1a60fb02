// Package scripted owns a provider whose behaviour is data, for tests: a few lines of text say what it answers by provider,
// key, model and time, and it counts what it heard. It speaks chat completions, plain and streamed.
package scripted

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Upstream answers POST /PROVIDER/v1/chat/completions and GET /PROVIDER/v1/models as its script says; what no line matches
// is answered well. Safe for concurrent use.
type Upstream struct {
	now func() time.Time

	mu    sync.Mutex
	begun time.Time   // of the script; guarded by mu
	lines []*line     // guarded by mu
	hits  map[Hit]int // guarded by mu
	left  []time.Time // when a gateway hung up on an answer that was not over, in real time; guarded by mu
	open  int         // answers under way; guarded by mu
	most  int         // the most of them at once; guarded by mu
}

// Hit is whom a request was for.
type Hit struct{ Provider, Key, Model string }

// New returns an upstream that tells the time by now; nil is time.Now.
func New(now func() time.Time) *Upstream {
	if now == nil {
		now = time.Now
	}
	return &Upstream{now: now, begun: now(), hits: map[Hit]int{}}
}

// Script replaces the script; its times count from this moment. See parse for the language. read opens a file that a line
// names by @.
func (u *Upstream) Script(text string, read func(name string) ([]byte, error)) error {
	lines, err := parse(text, read)
	if err != nil {
		return err
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.begun, u.lines = u.now(), lines
	return nil
}

// Hits returns the chat requests that were heard since the last call.
func (u *Upstream) Hits() map[Hit]int {
	u.mu.Lock()
	defer u.mu.Unlock()
	heard := maps.Clone(u.hits)
	clear(u.hits)
	return heard
}

// Left returns when, in real time, gateways hung up on answers that were not over.
func (u *Upstream) Left() []time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Clone(u.left)
}

// Open is how many answers are under way, and how many there were at once at most.
func (u *Upstream) Open() (now, most int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.open, u.most
}

// ServeHTTP answers one request.
func (u *Upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	provider, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	key := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway went away
	}
	var asked struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
	}
	_ = json.Unmarshal(body, &asked) // a request without a body asks for the list of models
	test := strings.HasSuffix(r.URL.Path, "/models")
	does := u.choose(Hit{provider, key, asked.Model}, test)
	u.count(1)
	defer u.count(-1)
	if !u.pause(r, does.slow) {
		return
	}
	if test && does.status < 400 {
		reply(w, 200, nil, []byte(`{"object":"list","data":[{"id":"m","object":"model"}]}`))
		return
	}
	u.play(w, r, does, asked.Stream, asked.Model)
}

func (u *Upstream) count(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.open += n
	u.most = max(u.most, u.open)
}

// choose counts the request and finds what is to be done with it.
func (u *Upstream) choose(h Hit, test bool) behaviour {
	u.mu.Lock()
	defer u.mu.Unlock()
	if !test {
		u.hits[h]++
	}
	since := u.now().Sub(u.begun)
	for _, l := range u.lines {
		if l.matches(h, since) {
			l.used++
			return l.does
		}
	}
	return behaviour{}
}

// pause waits, unless the gateway leaves.
func (u *Upstream) pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		u.mu.Lock()
		defer u.mu.Unlock()
		u.left = append(u.left, time.Now())
		return false
	}
}

// forever is longer than any test.
const forever = time.Hour

func (u *Upstream) play(w http.ResponseWriter, r *http.Request, b behaviour, stream bool, model string) {
	switch {
	case b.reset:
		drop(w)
	case b.hang:
		u.pause(r, forever)
	case b.stall:
		w.Header().Set("Content-Type", "text/event-stream")
		send(w, ": working on it\n\n")
		u.pause(r, forever)
	case b.status >= 400 || b.body != nil:
		body := b.body
		if body == nil {
			body = usual(b.status)
		}
		reply(w, cmp.Or(b.status, 200), b.header, body)
	case stream:
		u.stream(w, r, b, model)
	default:
		reply(w, 200, b.header, fmt.Appendf(nil, `{"id":"c1","object":"chat.completion","created":1,"model":%q,"choices":[{"index":0,`+
			`"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":4,"total_tokens":7}}`, model, Text))
	}
}

// Text is what a good answer says, a word per event.
const Text = "as high as the weir"

func (u *Upstream) stream(w http.ResponseWriter, r *http.Request, b behaviour, model string) {
	w.Header().Set("Content-Type", "text/event-stream")
	chunk := func(delta, finish string) string {
		return fmt.Sprintf(`data: {"id":"c1","object":"chat.completion.chunk","created":1,"model":%q,"choices":[{"index":0,"delta":%s,"finish_reason":%s}]}`+"\n\n", model, delta, finish)
	}
	for i, word := range strings.SplitAfter(Text, " ") {
		if b.cut > 0 && i == b.cut {
			u.pause(r, 20*time.Millisecond) // so that what was sent arrives before the reset
			drop(w)
			return
		}
		send(w, chunk(fmt.Sprintf(`{"role":"assistant","content":%q}`, word), "null"))
		if !u.pause(r, b.each) {
			return
		}
	}
	send(w, chunk("{}", `"stop"`))
	send(w, "data: [DONE]\n\n")
}

func send(w http.ResponseWriter, event string) {
	_, _ = io.WriteString(w, event)           // a gateway that left ends the answer by its context
	_ = http.NewResponseController(w).Flush() // likewise
}

func reply(w http.ResponseWriter, status int, header http.Header, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	if bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
		w.Header().Set("Content-Type", "text/html")
	}
	maps.Copy(w.Header(), header)
	w.WriteHeader(status)
	_, _ = w.Write(body) // as in send
}

// usual is the body that providers send with a status.
func usual(status int) []byte {
	message, kind, code := http.StatusText(status), "server_error", "server_error"
	switch status {
	case 400:
		message, kind, code = "Invalid value for temperature", "invalid_request_error", "invalid_value"
	case 401:
		message, kind, code = "Incorrect API key provided", "invalid_request_error", "invalid_api_key"
	case 402:
		message, kind, code = "Payment required", "billing_error", "payment_required"
	case 403:
		message, kind, code = "Forbidden", "permission_error", "forbidden"
	case 404:
		message, kind, code = "The model does not exist", "invalid_request_error", "model_not_found"
	case 429:
		message, kind, code = "Rate limit reached for requests", "requests", "rate_limit_exceeded"
	}
	return fmt.Appendf(nil, `{"error":{"message":%q,"type":%q,"code":%q}}`, message, kind, code)
}

// drop ends the connection with a reset.
func drop(w http.ResponseWriter) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // so that it is a reset
	}
	_ = c.Close() // the gateway sees an end either way
}

// Summary writes hits as one sorted line, by key, or by key and model where a key was asked for several.
func Summary(hits map[Hit]int) string {
	models := map[string]map[string]bool{}
	for h := range hits {
		if models[h.Key] == nil {
			models[h.Key] = map[string]bool{}
		}
		models[h.Key][h.Model] = true
	}
	counts := map[string]int{}
	for h, n := range hits {
		name := h.Key
		if len(models[h.Key]) > 1 {
			name += "/" + h.Model
		}
		counts[name] += n
	}
	if len(counts) == 0 {
		return "none"
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, name+" "+strconv.Itoa(counts[name]))
	}
	return strings.Join(parts, ", ")
}
