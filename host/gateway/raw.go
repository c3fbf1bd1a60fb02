package gateway

import (
	"fmt"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/sdk/wire"
)

// rawPaths are the endpoints whose bodies pass without being translated (INF-7).
var rawPaths = [...]string{
	"/v1/embeddings", "/v1/images/generations", "/v1/images/edits", "/v1/audio/transcriptions", "/v1/audio/translations", "/v1/audio/speech",
	"/v1/moderations", "/v1/rerank",
}

// raw answers a call that only its path and its model say anything about (INF-7).
func (g *Gateway) raw(w http.ResponseWriter, r *http.Request, endpoint string) {
	id, began := g.o.RequestID(), g.o.Now()
	s := g.o.Snapshot()
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(g.o.BodyTime)) // as in generate
	heard := func() { _ = rc.SetReadDeadline(time.Time{}) }
	key, failure := g.authorize(r, s)
	if failure != nil {
		g.fail(w, wire.OpenAIChat, *failure, id)
		return
	}
	c := &dispatch.Call{RequestID: id, Endpoint: endpoint, Dialect: wire.RawDialect, Catalog: s, Key: key, Header: r.Header}
	if boundary, is := multipartBoundary(r.Header); is {
		failure = g.readForm(r, c, boundary, heard)
	} else if c.Body, failure = g.read(r); failure == nil {
		heard()
	}
	if failure != nil {
		g.refuse(w, c, wire.OpenAIChat, *failure, began)
		return
	}
	defer c.Body.Release()
	if failure = resolve(c, asked{endpoint: endpoint, dialect: wire.RawDialect}); failure == nil {
		failure = unserved(c)
	}
	if failure != nil {
		g.refuse(w, c, wire.OpenAIChat, *failure, began)
		return
	}
	out := &sink{w: w, c: c, expose: exposes(s.Settings.ExposeRoutingHeaders, r.RemoteAddr)}
	defer out.close()
	t := g.o.Dispatch.Do(r.Context(), c, out)
	g.finish(out, t)
	g.o.Observe(c, t)
	if t.Cut {
		panic(http.ErrAbortHandler)
	}
}

// unserved says that no provider of a call has its endpoint.
func unserved(c *dispatch.Call) *dialect.Failure {
	var lacking []string
	for i := range c.Route.Targets {
		p := c.Route.Targets[i].Provider
		if dispatch.HasEndpoint(p, c.Endpoint) {
			return nil
		}
		if !slices.Contains(lacking, p.ID) {
			lacking = append(lacking, p.ID)
		}
	}
	if len(lacking) == 0 {
		return nil // nothing to ask at all, as dispatch says
	}
	return &dialect.Failure{Status: http.StatusNotFound, Code: "endpoint_not_supported", NoRetry: true,
		Message: fmt.Sprintf("The model %s is served by %s, which has no %s here.", c.Model, strings.Join(lacking, ", "), c.Endpoint)}
}

func multipartBoundary(h http.Header) (boundary string, is bool) {
	media, params, err := mime.ParseMediaType(h.Get("Content-Type"))
	return params["boundary"], err == nil && media == "multipart/form-data" && params["boundary"] != ""
}

// named is a JSON document that only names a model, for what asks a call's body about it.
func named(model string) (*body.Buffer, error) {
	text := fmt.Sprintf(`{"model":%q}`, model)
	return body.Read(strings.NewReader(text), int64(len(text)), int64(len(text)))
}
