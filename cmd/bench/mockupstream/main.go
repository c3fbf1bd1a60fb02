// Command mockupstream is a mock LLM provider for benchmarks and failure tests.
//
// It speaks enough of the OpenAI chat-completions, Anthropic messages and Gemini generateContent protocols for a gateway
// to accept it as an upstream. What it does with a request is decided, in rising order of precedence, by flags, by the
// API key, by query parameters, by an X-Mock header and by a directive in the prompt, such as
// "[mock:interval=5ms;chunks=50]", which passes through any gateway.
package main

import (
	"bytes"
	"flag"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

func main() {
	m := newMock(plan{})
	listen := flag.String("listen", "127.0.0.1:9100", "address to listen on (a comma list opens several)")
	procs := flag.Int("procs", 0, "GOMAXPROCS; 0 leaves the default")
	flag.DurationVar(&m.hangMax, "hang-max", 5*time.Minute, "how long a hanging request is held at most")
	flag.DurationVar(&m.base.latency, "latency", 0, "delay before the first byte")
	flag.IntVar(&m.base.size, "size", 1024, "bytes of assistant text in a non-streaming reply")
	flag.IntVar(&m.base.chunks, "chunks", 100, "content chunks in a streaming reply")
	flag.IntVar(&m.base.chunkSize, "chunk-size", 24, "bytes of text in one chunk (at least 20: each starts with its send time)")
	flag.DurationVar(&m.base.interval, "interval", 0, "delay between chunks")
	flag.Float64Var(&m.base.failRatio, "fail-ratio", 0, "share of requests that fail")
	flag.IntVar(&m.base.failCode, "fail-code", 500, "status of those failures; 0 resets the connection")
	flag.StringVar(&m.base.retryIn, "retry-after", "1", "Retry-After of a 429 or 503 (seconds); empty leaves it out")
	flag.Parse()
	if *procs > 0 {
		runtime.GOMAXPROCS(*procs)
	}
	var wg sync.WaitGroup
	for _, addr := range strings.Split(*listen, ",") {
		ln, err := net.Listen("tcp", addr)
		if err != nil {
			log.Fatal(err)
		}
		log.Printf("listening on %s", ln.Addr())
		wg.Go(func() { log.Fatal(m.serveListener(ln)) })
	}
	go m.keepDate(time.Tick(time.Second))
	wg.Wait()
}

// mock is one mock provider. Its counters and its cached replies may be used by any number of connections at once.
type mock struct {
	base    plan
	hangMax time.Duration
	date    atomic.Pointer[string]
	stats   sync.Map // API key to *stat
	replies sync.Map // replyKey to []byte
	streams sync.Map // replyKey to streamParts
}

func newMock(base plan) *mock {
	m := &mock{base: base, hangMax: 5 * time.Minute}
	m.setDate(time.Now())
	return m
}

func (m *mock) setDate(now time.Time) {
	s := now.UTC().Format(http.TimeFormat)
	m.date.Store(&s)
}

// keepDate renews the Date header at each tick.
func (m *mock) keepDate(ticks <-chan time.Time) {
	for now := range ticks {
		m.setDate(now)
	}
}

type dialect int

const (
	openAI dialect = iota
	anthropic
	gemini
)

// dialectOf tells the protocol of a request and whether it asks for a stream.
func dialectOf(path string, body []byte) (dialect, bool) {
	stream := bytes.Contains(body, []byte(`"stream":true`)) || bytes.Contains(body, []byte(`"stream": true`))
	switch {
	case strings.HasSuffix(path, "/messages"):
		return anthropic, stream
	case strings.Contains(path, ":generateContent"):
		return gemini, false
	case strings.Contains(path, ":streamGenerateContent"):
		return gemini, true
	}
	return openAI, stream
}

func (m *mock) serve(w *conn, r *request) {
	switch {
	case r.path == "/__stats":
		m.serveStats(w, r)
		return
	case strings.HasSuffix(r.path, "/models"):
		w.sized(200, "", []byte(`{"object":"list","data":[{"id":"mock-1","object":"model","created":1,"owned_by":"mock"}]}`))
		return
	}
	key := r.key
	if key == "" && r.rawQuery != "" {
		if q, err := url.ParseQuery(r.rawQuery); err == nil {
			key = q.Get("key")
		}
	}
	st := m.statFor(key)
	defer st.begin(len(r.body))()
	model := modelOf(r.body)
	bump(&st.models, model)
	d, stream := dialectOf(r.path, r.body)
	p := m.planFor(r, key)
	if m.misbehave(w, st, d, p) {
		return
	}
	bump(&st.byStatus, 200)
	if stream {
		m.streamReply(w, d, p, model)
		return
	}
	w.sized(200, "", m.reply(d, p.size, model, len(r.body)/4))
}

// misbehave does what the plan asks for in place of a good reply; it also waits for the plan's latency.
func (m *mock) misbehave(w *conn, st *stat, d dialect, p plan) bool {
	if p.hang {
		bump(&st.byStatus, wasHung)
		w.hold(m.hangMax)
		return true
	}
	if p.latency > 0 {
		time.Sleep(p.latency)
	}
	failed := p.failRatio > 0 && (p.failRatio >= 1 || rand.Float64() < p.failRatio)
	switch {
	case p.resetNow, failed && p.failCode == 0:
		bump(&st.byStatus, wasReset)
		w.reset()
	case failed:
		bump(&st.byStatus, p.failCode)
		fail(w, d, p)
	}
	return p.resetNow || failed
}
