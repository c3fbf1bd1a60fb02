package gateway

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/sdk/wire"
)

// Doer answers calls; *dispatch.Dispatcher does.
type Doer interface {
	Do(ctx context.Context, c *dispatch.Call, out dispatch.Sink) *dispatch.Trail
	// Count asks a provider for the tokens of a prompt; false: nobody counted (INF-52).
	Count(ctx context.Context, c *dispatch.Call) (n int64, ok bool)
}

// Options of a Gateway.
type Options struct {
	Snapshot  func() *catalog.Snapshot
	Dispatch  Doer
	RequestID func() string
	Observe   func(c *dispatch.Call, t *dispatch.Trail) // counts one finished call; must not block
	Refused   func(c *dispatch.Call, t *dispatch.Trail) // hears of a request that was answered without dispatch; must not block; nil: nobody does
	KeyUsed   func(k *catalog.Key, now time.Time)       // must not block
	Heard     func(connection string) []string          // model ids that a connection's last test heard (OBJ-11)
	MaxBody   int64                                     // bytes after decoding; default 32 MiB (SEC-4)
	BodyTime  time.Duration                             // for a client to send its body; default 2 min (SEC-4)
	Loopback  bool                                      // the listener is loopback: inference may be open (SEC-2)
	Listen    string                                    // host:port, for the Host check of SEC-7
	Now       func() time.Time
	Log       *slog.Logger
}

// Gateway serves the inference routes. Safe for concurrent use.
type Gateway struct {
	o        Options
	guesses  *guesses
	methods  map[string]string // known exact paths and their Allow header
	listenIP netip.Addr
}

// New makes a gateway.
func New(o Options) *Gateway {
	if o.MaxBody <= 0 {
		o.MaxBody = 32 << 20
	}
	if o.BodyTime <= 0 {
		o.BodyTime = 2 * time.Minute
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	g := &Gateway{o: o, guesses: newGuesses(o.Now), methods: map[string]string{"/v1/models": "GET, HEAD, OPTIONS", "/v1beta/models": "GET, HEAD, OPTIONS"}}
	for _, path := range rawPaths {
		g.methods[path] = "POST, OPTIONS, HEAD"
	}
	for _, paths := range []map[string]asked{generation, counting} {
		for path := range paths {
			g.methods[path] = "POST, OPTIONS, HEAD"
		}
	}
	if ap, err := netip.ParseAddrPort(o.Listen); err == nil {
		g.listenIP = ap.Addr()
	}
	return g
}

// Mount adds the inference routes to r. It must come before any other routes, since gorilla/mux asks them one after the
// other.
func (g *Gateway) Mount(r *mux.Router) {
	for path, e := range generation {
		r.Path(path).Methods(http.MethodPost).HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.generate(w, r, e) })
	}
	for path, e := range counting {
		r.Path(path).Methods(http.MethodPost).HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.count(w, r, e) })
	}
	for _, path := range rawPaths {
		r.Path(path).Methods(http.MethodPost).HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.raw(w, r, path) })
	}
	for _, version := range geminiVersions {
		r.PathPrefix(version).Methods(http.MethodPost).HandlerFunc(g.gemini)
	}
	r.Path("/v1beta/models").Methods(http.MethodGet).HandlerFunc(g.models)
	r.Path("/v1beta/models/{model:.+}").Methods(http.MethodGet).HandlerFunc(g.model)
	r.Path("/v1/models").Methods(http.MethodGet).HandlerFunc(g.models)
	r.Path("/v1/models/{model:.+}").Methods(http.MethodGet).HandlerFunc(g.model)
	for _, version := range geminiVersions {
		r.PathPrefix(version).Methods(http.MethodHead, http.MethodOptions).HandlerFunc(g.probe)
		r.PathPrefix(version).HandlerFunc(g.unknown)
	}
}

// probe answers HEAD and OPTIONS without a key and without an upstream (INF-6).
func (g *Gateway) probe(w http.ResponseWriter, r *http.Request) {
	allow, known := g.allowed(r.URL.Path)
	if !known {
		g.unknown(w, r)
		return
	}
	w.Header().Set("Allow", allow)
	w.Header().Set("X-Request-Id", g.o.RequestID())
	w.WriteHeader(http.StatusNoContent)
}

func (g *Gateway) allowed(path string) (string, bool) {
	if allow, ok := g.methods[path]; ok {
		return allow, true
	}
	rest, ok := geminiName(path)
	if !ok || rest == "" {
		return "", false
	}
	if _, method := splitMethod(rest); method != "" {
		return "POST, OPTIONS, HEAD", true
	}
	if !strings.Contains(path, "/models/") || strings.HasPrefix(path, "/v1alpha/") {
		return "", false
	}
	return "GET, HEAD, OPTIONS", true
}

// unknown is 404 or 405 in the shape that the client's SDK reads (INF-5, INF-3).
func (g *Gateway) unknown(w http.ResponseWriter, r *http.Request) {
	f := dialect.Failure{Status: http.StatusNotFound, Code: "unknown_path", NoRetry: true,
		Message: "There is no " + r.Method + " " + r.URL.Path + " here; generation is at POST /v1/chat/completions, /v1/responses, /v1/messages and " +
			"/v1beta/models/{model}:generateContent, models at GET /v1/models."}
	if allow, ok := g.allowed(r.URL.Path); ok {
		w.Header().Set("Allow", allow)
		f.Status, f.Code = http.StatusMethodNotAllowed, "method_not_allowed"
		f.Message = r.URL.Path + " takes " + allow + ", not " + r.Method + "."
	}
	g.fail(w, guessDialect(r), f, g.o.RequestID())
}

// guessDialect reads from the headers which SDK family asks on a path that belongs to no dialect (INF-3).
func guessDialect(r *http.Request) wire.Dialect {
	switch {
	case r.Header.Get("X-Goog-Api-Key") != "" || r.URL.Query().Get("key") != "",
		strings.HasPrefix(r.URL.Path, "/v1beta/"), strings.HasPrefix(r.URL.Path, "/v1alpha/"):
		return wire.GeminiGenerate
	case strings.HasPrefix(r.URL.Path, "/v1/messages"):
		return wire.AnthropicMessages
	case r.Header.Get("Anthropic-Version") != "":
		return wire.AnthropicMessages
	}
	return wire.OpenAIChat
}

// fail writes f in the client's dialect.
func (g *Gateway) fail(w http.ResponseWriter, d wire.Dialect, f dialect.Failure, id string) {
	f.RequestID = id
	g.failBody(w, d, f, dialect.Body(d, f))
}

func (g *Gateway) failBody(w http.ResponseWriter, d wire.Dialect, f dialect.Failure, b []byte) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Request-Id", f.RequestID)
	if d == wire.AnthropicMessages {
		h.Set("Request-Id", f.RequestID)
	}
	dialect.Headers(h, f)
	w.WriteHeader(dialect.StatusFor(d, f.Status))
	_, _ = w.Write(b) // a client that left needs no answer
}
