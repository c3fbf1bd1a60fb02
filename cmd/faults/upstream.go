package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

// hit is one request that a provider heard.
type hit struct {
	at      time.Time
	prefill bool // its last turn is the assistant's
}

// ask is a request that a mock provider is to answer.
type ask struct {
	w       http.ResponseWriter
	r       *http.Request
	dialect *spoken
	n       int // from 1
	stream  bool
	prefix  string // the assistant's last turn
	model   string // for the answer
}

// upstream is the mock provider: what it does hangs on the path, /FAULT-DIALECT-ROLE/v1/...
type upstream struct {
	url string
	srv *http.Server

	mu   sync.Mutex
	does map[string]func(*ask) // guarded by mu
	hits map[string][]hit      // guarded by mu
}

func newUpstream() (*upstream, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	u := &upstream{url: "http://" + l.Addr().String(), does: map[string]func(*ask){}, hits: map[string][]hit{}}
	u.srv = &http.Server{Handler: u, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = u.srv.Serve(l) }() // ended by close
	return u, nil
}

func (u *upstream) close() { _ = u.srv.Close() }

func (u *upstream) set(name string, does func(*ask)) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.does[name] = does
}

// heard is what a provider was asked so far.
func (u *upstream) heard(name string) []hit {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append([]hit(nil), u.hits[name]...)
}

// ServeHTTP answers one request.
func (u *upstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name, path, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if strings.HasSuffix(path, "models") {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"list","data":[{"id":"m","object":"model"}]}`) // nobody waits for it
		return
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return // the gateway left
	}
	var body struct {
		Stream   bool
		Messages []struct {
			Role    string
			Content json.RawMessage
		}
	}
	if err := json.Unmarshal(b, &body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a := &ask{w: w, r: r, stream: body.Stream, dialect: chat, model: name}
	if strings.HasSuffix(path, "messages") {
		a.dialect = messages
	}
	if n := len(body.Messages); n > 0 && body.Messages[n-1].Role == "assistant" {
		_ = json.Unmarshal(body.Messages[n-1].Content, &a.prefix) // always text here
	}
	u.mu.Lock()
	u.hits[name] = append(u.hits[name], hit{time.Now(), a.prefix != ""})
	a.n = len(u.hits[name])
	does := u.does[name]
	u.mu.Unlock()
	if does != nil {
		does(a)
	}
}

// tokens is how many an answer has.
const tokens = 60

// token is the n-th token of every whole answer.
func token(n int) string { return fmt.Sprintf("token%02d ", n) }

func text(from, to int) string {
	var b strings.Builder
	for i := from; i < to; i++ {
		b.WriteString(token(i))
	}
	return b.String()
}

// fails answers with an error.
func (a *ask) fails(status int, kind, code, message string, header ...string) {
	a.w.Header().Set("Content-Type", "application/json")
	for i := 0; i+1 < len(header); i += 2 {
		a.w.Header().Set(header[i], header[i+1])
	}
	a.w.WriteHeader(status)
	b := fmt.Sprintf(`{"error":{"message":%q,"type":%q,"code":%q,"param":null}}`, message, kind, code)
	if a.dialect == messages {
		b = fmt.Sprintf(`{"type":"error","error":{"type":%q,"message":%q}}`, kind, message)
	}
	_, _ = io.WriteString(a.w, b) // as all writes here: a gateway that left ends the handler by its context
}

// good answers whole.
func (a *ask) good() {
	if !a.stream {
		a.w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(a.w, a.dialect.document(a.model, text(0, tokens)))
		return
	}
	a.begin()
	for i := range tokens {
		a.tell(a.dialect.delta(a.model, token(i)))
	}
	a.end()
}

// goesOn answers with what is missing behind the assistant's last turn, as a model does that takes it.
func (a *ask) goesOn() {
	whole := text(0, tokens)
	rest := strings.TrimPrefix(whole, a.prefix)
	a.begin()
	for piece := range pieces(rest, 8) {
		a.tell(a.dialect.delta(a.model, piece))
	}
	a.end()
}

func pieces(s string, n int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for len(s) > 0 {
			k := min(n, len(s))
			if !yield(s[:k]) {
				return
			}
			s = s[k:]
		}
	}
}

func (a *ask) begin() {
	a.w.Header().Set("Content-Type", "text/event-stream")
	a.tell(a.dialect.opening(a.model))
}

func (a *ask) end() {
	a.tell(a.dialect.finish(a.model))
	a.tell(a.dialect.mark)
}

func (a *ask) tell(events string) {
	_, _ = io.Copy(a.w, bytes.NewReader([]byte(events)))
	_ = http.NewResponseController(a.w).Flush()
}

// pause waits, and says whether the gateway is still there.
func (a *ask) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-a.r.Context().Done():
		return false
	}
}

// cut drops the connection, behind what was sent.
func (a *ask) cut() { a.drop(false) }

// reset drops it with a TCP reset.
func (a *ask) reset() { a.drop(true) }

func (a *ask) drop(reset bool) {
	conn, _, err := http.NewResponseController(a.w).Hijack()
	if err != nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok && reset {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}
