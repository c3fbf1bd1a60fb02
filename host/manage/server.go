package manage

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gorilla/mux"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/document"
)

// maxBody is the limit of a management body.
const maxBody = 1 << 20

// Server answers the management API. Safe for concurrent use.
type Server struct {
	ports  Ports
	table  []endpoint
	gate   *gatekeeper
	router *mux.Router

	writing sync.Mutex // held by each call that reads, merges and writes objects
}

// New returns a server over p. It fails when a port that has no default is missing.
func New(p Ports) (*Server, error) {
	if err := p.check(); err != nil {
		return nil, err
	}
	s := &Server{ports: p, table: endpoints()}
	s.gate = newGatekeeper(p.AdminKey, s.scopesOf, p.Now)
	s.router = s.routes()
	return s, nil
}

// Handler answers every path of the table, and with 404 all others.
func (s *Server) Handler() http.Handler { return s.router }

// Prefixes are the paths to hand to Handler; one that ends in a slash means all below it.
func Prefixes() []string {
	return []string{"/api/", "/healthz", "/readyz", "/metrics", "/debug/pprof/"}
}

// endpoint is one row of the table.
type endpoint struct {
	method, path string
	needs        scope
	changes      bool // writes objects: one such call at a time
	summary      string
	query        []string // names of query parameters
	body         any      // zero value of the request's type; nil: none
	optional     bool     // the body may be absent
	answer       any      // zero value of the answer's type
	status       int      // of the answer; 0: 200
	binary       int64    // the most bytes of a body that is no JSON; 0: the body is JSON
	headers      []string // names of request headers that have a meaning here
	also         []int    // further statuses of the answer
	serve        func(*Server, *call) (any, error)
}

// call is one request on its way through a handler.
type call struct {
	w       http.ResponseWriter
	r       *http.Request
	now     time.Time
	catalog *catalog.Snapshot
	id      string // the path's {id} or {name}, decoded
}

func (c *call) ctx() context.Context { return c.r.Context() }

// withStatus is an answer whose status depends on what happened.
type withStatus struct {
	status int
	answer any
}

// answered is returned by handlers that wrote their answer themselves.
type answered struct{}

func (s *Server) routes() *mux.Router {
	r := mux.NewRouter().SkipClean(true).UseEncodedPath()
	byPath := map[string]map[string]*endpoint{}
	var order []string
	for i := range s.table {
		e := &s.table[i]
		if byPath[e.path] == nil {
			byPath[e.path] = map[string]*endpoint{}
			order = append(order, e.path)
		}
		byPath[e.path][e.method] = e
	}
	for _, path := range order {
		methods := byPath[path]
		r.HandleFunc(path, func(w http.ResponseWriter, req *http.Request) { s.serve(w, req, methods) })
	}
	r.PathPrefix("/debug/pprof/").HandlerFunc(s.profiles)
	r.NotFoundHandler = http.HandlerFunc(s.unknownPath)
	return r
}

// serve runs one request: names it, checks access, calls the row's function and writes what that returned.
func (s *Server) serve(w http.ResponseWriter, r *http.Request, methods map[string]*endpoint) {
	id := s.ports.RequestID()
	w.Header().Set("X-Request-Id", id)
	log := s.ports.Log.With("request_id", id)
	defer s.recovered(w, r, log)
	method := r.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	e, ok := methods[method]
	if !ok {
		s.wrongMethod(w, r, methods)
		return
	}
	if p := s.admit(r, e); p != nil {
		p.write(w)
		return
	}
	name, err := pathID(r)
	if err != nil {
		problem(http.StatusBadRequest, "The path is not encoded properly.").write(w)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, max(e.binary, maxBody))
	answer, err := s.run(e, &call{w: w, r: r, now: s.ports.Now(), id: name})
	if err != nil {
		p := asProblem(err)
		if p.Status == http.StatusInternalServerError {
			log.LogAttrs(r.Context(), slog.LevelError, "management call failed", slog.String("method", r.Method),
				slog.String("path", e.path), slog.String("error", err.Error()))
		}
		p.write(w)
		return
	}
	switch a := answer.(type) {
	case answered:
	case withStatus:
		writeJSON(w, a.status, a.answer)
	default:
		writeJSON(w, max(e.status, http.StatusOK), answer)
	}
}

// run calls the row's function. One that changes objects sees the catalogue that the change before it left.
func (s *Server) run(e *endpoint, c *call) (any, error) {
	if e.changes {
		s.writing.Lock()
		defer s.writing.Unlock()
	}
	c.catalog = s.ports.Catalog()
	return e.serve(s, c)
}

// admit checks the Host and Origin of everything but the probes, then the caller's right.
func (s *Server) admit(r *http.Request, e *endpoint) *Problem {
	needs := e.needs
	probe := e.path == "/healthz" || e.path == "/readyz" // called by orchestrators under any name
	if !probe {
		if p := s.ports.Listener.admits(r); p != nil {
			return p
		}
	}
	if needs == metrics {
		needs = read
		if s.ports.Listener.loopback() {
			needs = open
		}
	}
	return s.gate.admit(r, needs)
}

func (s *Server) profiles(w http.ResponseWriter, r *http.Request) {
	if p := s.admit(r, &endpoint{path: "/debug/pprof/", needs: write}); p != nil {
		p.write(w)
		return
	}
	s.ports.Profiles.ServeHTTP(w, r)
}

func (s *Server) unknownPath(w http.ResponseWriter, r *http.Request) {
	if p := s.admit(r, &endpoint{needs: read}); p != nil { // strangers do not learn what there is
		p.write(w)
		return
	}
	problem(http.StatusNotFound, "There is no endpoint %s; GET /api/openapi.json lists all.", r.URL.Path).write(w)
}

func (s *Server) wrongMethod(w http.ResponseWriter, r *http.Request, methods map[string]*endpoint) {
	allowed := make([]string, 0, len(methods))
	for m := range methods {
		allowed = append(allowed, m)
	}
	slices.Sort(allowed)
	w.Header().Set("Allow", strings.Join(allowed, ", "))
	problem(http.StatusMethodNotAllowed, "%s is not possible here; use %s.", r.Method, strings.Join(allowed, " or ")).write(w)
}

func (s *Server) recovered(w http.ResponseWriter, r *http.Request, log *slog.Logger) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler {
		panic(cause)
	}
	log.LogAttrs(r.Context(), slog.LevelError, "management call panicked", slog.String("path", r.URL.Path),
		slog.String("error", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())))
	asProblem(fmt.Errorf("panic")).write(w)
}

// pathID returns the path's one variable. The router matches the encoded path, so that a name may hold a slash.
func pathID(r *http.Request) (string, error) {
	for _, v := range mux.Vars(r) {
		return url.PathUnescape(v)
	}
	return "", nil
}

// scopesOf finds a client key that may be used now (OBJ-15).
func (s *Server) scopesOf(text string) (scopes []string, ok bool) {
	k, ok := s.ports.Catalog().KeyByText(text)
	if !ok || !k.Active || k.Expired(s.ports.Now()) {
		return nil, false
	}
	return k.Scopes, true
}

// body reads the request's body as one JSON object (API-2).
func (c *call) body() (*document.Node, error) {
	b, err := io.ReadAll(c.r.Body)
	if err != nil {
		return nil, err
	}
	n, faults := document.ParseJSON("", b)
	if n == nil || n.Kind != document.Map {
		for _, f := range faults {
			if f.Path != "" { // a name that is given twice is valid JSON
				return nil, faulty(faults)
			}
		}
		return nil, invalidJSON()
	}
	return n, nil
}

// read decodes the body into dst, strictly.
func (c *call) read(dst any) error {
	n, err := c.body()
	if err != nil {
		return err
	}
	if faults := n.Decode(dst); len(faults) > 0 {
		return faulty(faults)
	}
	return nil
}

// page is the part of a list that the query asks for (OBJ-3).
type page struct{ limit, offset int }

func (c *call) page() (page, error) {
	limit, err := c.number("limit", 200, 1, 1000)
	if err != nil {
		return page{}, err
	}
	offset, err := c.number("offset", 0, 0, 1<<31-1)
	return page{limit, offset}, err
}

// number reads a whole number from the query.
func (c *call) number(name string, without, low, high int) (int, error) {
	text := c.r.URL.Query().Get(name)
	if text == "" {
		return without, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < low || n > high {
		return 0, invalid(Detail{name, fmt.Sprintf("must be a whole number from %d to %d", low, high)})
	}
	return n, nil
}

// cut returns the part of all that p asks for.
func cut[T any](all []T, p page) []T {
	start := min(p.offset, len(all))
	part := all[start:min(start+p.limit, len(all))]
	if part == nil {
		part = []T{}
	}
	return part
}

// expected reads If-Match (OBJ-4): the revision that the caller saw, or nil.
func (c *call) expected() (*uint64, error) {
	text := strings.TrimSpace(c.r.Header.Get("If-Match"))
	if text == "" || text == "*" {
		return nil, nil
	}
	n, err := strconv.ParseUint(strings.Trim(strings.TrimPrefix(text, "W/"), `"`), 10, 64)
	if err != nil {
		return nil, invalid(Detail{"If-Match", `must be a revision in quotes, such as "3"`})
	}
	return &n, nil
}

// stamp writes a time as OBJ-1 asks: RFC 3339, UTC, milliseconds; null for no time.
func stamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	s := t.UTC().Format("2006-01-02T15:04:05.000Z")
	return &s
}

// orNull is nil for an empty text.
func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
