package gateway

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gorilla/mux"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/sdk/wire"
)

// models answers GET /v1/models: what the key may use, from memory, in a stable order (INF-50, INF-51).
func (g *Gateway) models(w http.ResponseWriter, r *http.Request) {
	id, d := g.o.RequestID(), guessDialect(r)
	s := g.o.Snapshot()
	key, failure := g.authorize(r, s)
	if failure != nil {
		g.fail(w, d, *failure, id)
		return
	}
	names := g.withHeard(s, key, s.ModelNames(key))
	entries := make([]entry, 0, len(names))
	for _, name := range names {
		entries = append(entries, entryOf(s, name))
	}
	g.send(w, id, list(d, entries, r.URL.Query()))
}

// withHeard adds what the tests of connections heard, for providers that pass any model through (OBJ-11).
func (g *Gateway) withHeard(s *catalog.Snapshot, key *catalog.Key, names []string) []string {
	if g.o.Heard == nil {
		return names
	}
	known := make(map[string]bool, len(names))
	for _, n := range names {
		known[n] = true
	}
	var more []string
	for _, p := range s.Providers {
		for _, c := range p.Connections {
			if !p.Passthrough || (key != nil && !key.AllowsConnection(c.ID)) {
				continue
			}
			for _, id := range g.o.Heard(c.ID) {
				if name := p.ID + "/" + id; !known[name] && c.Serves(id) && allows(key, name) {
					known[name] = true
					more = append(more, name)
				}
			}
		}
	}
	slices.Sort(more)
	return append(names, more...)
}

// model answers GET /v1/models/{model}.
func (g *Gateway) model(w http.ResponseWriter, r *http.Request) {
	id, d := g.o.RequestID(), guessDialect(r)
	s := g.o.Snapshot()
	key, failure := g.authorize(r, s)
	if failure != nil {
		g.fail(w, d, *failure, id)
		return
	}
	name := mux.Vars(r)["model"]
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	if _, err := s.Resolve(name); err != nil || !allows(key, name) {
		f := dialect.Failure{Status: http.StatusNotFound, NoRetry: true, Message: "The model " + name + " is not known here, or not allowed for this key."}
		if err != nil {
			f = *unresolved(err)
		}
		g.fail(w, d, f, id)
		return
	}
	g.send(w, id, entryOf(s, name).as(d))
}

func (g *Gateway) send(w http.ResponseWriter, id string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		g.fail(w, wire.OpenAIChat, dialect.Failure{Status: 500, Message: "The answer could not be encoded."}, id)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-Id", id)
	_, _ = w.Write(append(b, '\n')) // a client that left needs no answer
}

// entry is one model as the lists show it.
type entry struct {
	name    string
	owner   string
	created int64
	meta    wire.Model
}

func entryOf(s *catalog.Snapshot, name string) entry {
	e := entry{name: name, owner: "weir"}
	provider, model, ok := strings.Cut(name, "/")
	if p := s.Provider(provider); ok && p != nil {
		e.owner = p.ID
		if i := slices.IndexFunc(p.Models, func(m wire.Model) bool { return m.ID == model }); i >= 0 {
			e.meta, e.created = p.Models[i], p.Models[i].Created
		}
	}
	return e
}

func (e entry) as(d wire.Dialect) any {
	display := e.name
	if e.meta.Name != "" {
		display = e.meta.Name
	}
	switch d {
	case wire.AnthropicMessages:
		return map[string]any{"type": "model", "id": e.name, "display_name": display, "created_at": time.Unix(e.created, 0).UTC().Format(time.RFC3339)}
	case wire.GeminiGenerate:
		m := map[string]any{"name": "models/" + e.name, "displayName": display,
			"supportedGenerationMethods": []string{"generateContent", "streamGenerateContent", "countTokens"}}
		if e.meta.ContextWindow > 0 {
			m["inputTokenLimit"] = e.meta.ContextWindow
		}
		if e.meta.MaxOutput > 0 {
			m["outputTokenLimit"] = e.meta.MaxOutput
		}
		return m
	}
	return map[string]any{"id": e.name, "object": "model", "created": e.created, "owned_by": e.owner}
}

// list is a page of entries in the shape of the dialect (INF-50).
func list(d wire.Dialect, all []entry, q url.Values) any {
	switch d {
	case wire.AnthropicMessages:
		return anthropicPage(all, q)
	case wire.GeminiGenerate:
		return geminiPage(all, q)
	}
	return map[string]any{"object": "list", "data": render(all, d)}
}

func render(es []entry, d wire.Dialect) []any {
	out := make([]any, 0, len(es))
	for _, e := range es {
		out = append(out, e.as(d))
	}
	return out
}

func anthropicPage(all []entry, q url.Values) any {
	limit := bounded(q.Get("limit"), 20, 1000)
	at := func(id string) int { return slices.IndexFunc(all, func(e entry) bool { return e.name == id }) }
	page := all
	if i := at(q.Get("after_id")); i >= 0 {
		page = all[i+1:]
	}
	if i := at(q.Get("before_id")); i >= 0 {
		page = all[max(0, i-limit):i]
	}
	more := len(page) > limit
	page = page[:min(len(page), limit)]
	out := map[string]any{"data": render(page, wire.AnthropicMessages), "has_more": more, "first_id": nil, "last_id": nil}
	if len(page) > 0 {
		out["first_id"], out["last_id"] = page[0].name, page[len(page)-1].name
	}
	return out
}

func geminiPage(all []entry, q url.Values) any {
	size := bounded(q.Get("pageSize"), 50, 1000)
	from := min(bounded(q.Get("pageToken"), 0, len(all)), len(all))
	page := all[from:min(len(all), from+size)]
	out := map[string]any{"models": render(page, wire.GeminiGenerate)}
	if from+size < len(all) {
		out["nextPageToken"] = strconv.Itoa(from + size)
	}
	return out
}

func bounded(text string, otherwise, most int) int {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || (n == 0 && otherwise > 0) {
		return otherwise
	}
	return min(n, most)
}
