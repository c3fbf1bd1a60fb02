package gateway

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/sdk/wire"
)

// generate is the way of every generation request: key, body, model, dispatch, answer.
func (g *Gateway) generate(w http.ResponseWriter, r *http.Request, e asked) {
	id, d, began := g.o.RequestID(), e.dialect, g.o.Now()
	s := g.o.Snapshot()
	// The time for the body also holds when it is refused unread, since the server then reads what is left of it. A writer that
	// knows no deadlines has another guard.
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(g.o.BodyTime))
	key, failure := g.authorize(r, s)
	if failure != nil {
		g.fail(w, d, *failure, id)
		return
	}
	c := &dispatch.Call{RequestID: id, Endpoint: e.endpoint, Dialect: d, Catalog: s, Key: key, Header: r.Header, Beta: asksBeta(r, d)}
	if c.Body, failure = g.read(r); failure != nil {
		g.refuse(w, c, d, *failure, began)
		return
	}
	defer c.Body.Release()
	_ = rc.SetReadDeadline(time.Time{}) // from here on the server only listens whether the client leaves
	if failure := resolve(c, e); failure != nil {
		g.refuse(w, c, d, *failure, began)
		return
	}
	out := &sink{w: w, c: c, expose: exposes(s.Settings.ExposeRoutingHeaders, r.RemoteAddr)}
	defer out.close()
	var t *dispatch.Trail
	if e.array {
		list := &arraySink{sink: out}
		t = g.o.Dispatch.Do(r.Context(), c, list)
		list.end(t)
	} else {
		t = g.o.Dispatch.Do(r.Context(), c, out)
	}
	g.finish(out, t)
	g.o.Observe(c, t)
	if t.Cut {
		panic(http.ErrAbortHandler)
	}
}

// refuse answers a request of a known client that goes nowhere, and tells of it.
func (g *Gateway) refuse(w http.ResponseWriter, c *dispatch.Call, d wire.Dialect, f dialect.Failure, began time.Time) {
	g.fail(w, d, f, c.RequestID)
	if g.o.Refused != nil {
		g.o.Refused(c, dispatch.Refused(began, g.o.Now().Sub(began), dialect.StatusFor(d, f.Status), f))
	}
}

// read takes the body in, within its size (SEC-4, INF-15).
func (g *Gateway) read(r *http.Request) (*body.Buffer, *dialect.Failure) {
	buf, err := g.readBody(r)
	if err == nil {
		return buf, nil
	}
	return nil, g.unread(err)
}

func (g *Gateway) unread(err error) *dialect.Failure {
	switch {
	case errors.Is(err, body.ErrTooLarge):
		return g.tooLarge()
	case errors.Is(err, body.ErrEncoding):
		return &dialect.Failure{Status: http.StatusUnsupportedMediaType, Code: "unsupported_encoding", NoRetry: true,
			Message: "The Content-Encoding is not known here; send the body plain, or as gzip or zstd."}
	}
	return &dialect.Failure{Status: http.StatusBadRequest, Code: "unreadable_body", NoRetry: true,
		Message: "The request body could not be read to its end."}
}

func (g *Gateway) readBody(r *http.Request) (*body.Buffer, error) {
	encoding := r.Header.Get("Content-Encoding")
	if encoding == "" || strings.EqualFold(encoding, "identity") {
		return body.Read(r.Body, r.ContentLength, g.o.MaxBody)
	}
	decoded, err := body.Decode(encoding, r.Body)
	if err != nil {
		return nil, err
	}
	defer decoded.Close() //nolint:errcheck // what it has to say, Read said
	return body.Read(decoded, -1, g.o.MaxBody)
}

// maxModelName bounds what a client may call a model: the name goes into logs, messages and caches.
const maxModelName = 512

// resolve finds model, stream and route in the body (gates 1, 2 and 5).
func resolve(c *dispatch.Call, e asked) *dialect.Failure {
	scan, err := c.Body.Scan()
	if err != nil {
		return &dialect.Failure{Status: http.StatusBadRequest, NoRetry: true, Message: "The " + err.Error() + "."}
	}
	model, ok := scan.Model()
	stream := scan.Stream()
	if e.model != "" { // the path says it (INF-1)
		model, ok, stream = e.model, true, e.stream
	}
	if !ok || model == "" {
		return &dialect.Failure{Status: http.StatusBadRequest, NoRetry: true, Facts: nil,
			Message: "The request has no model; give its name as text in the field model."}
	}
	if len(model) > maxModelName {
		return &dialect.Failure{Status: http.StatusBadRequest, NoRetry: true,
			Message: fmt.Sprintf("The name in the field model has %d bytes; names end at %d.", len(model), maxModelName)}
	}
	c.Scan, c.Model, c.Stream = scan, model, stream
	if c.Key != nil && !c.Key.AllowsModel(model) {
		return &dialect.Failure{Status: http.StatusForbidden, Type: "permission_error", Code: "model_not_allowed", NoRetry: true,
			Message: fmt.Sprintf("The client key may not use the model %s.", model)}
	}
	rt, err := c.Catalog.Resolve(model)
	if err != nil {
		return unresolved(err)
	}
	c.Route = rt
	return nil
}

// unresolved says which names come close (CFG-4).
func unresolved(err error) *dialect.Failure {
	f := &dialect.Failure{Status: http.StatusNotFound, Code: "model_not_found", NoRetry: true}
	if unknown, ok := errors.AsType[*catalog.UnknownModel](err); ok {
		f.Message = fmt.Sprintf("The model %s is not known here.", unknown.Name)
		if len(unknown.Nearest) > 0 {
			f.Message += " Did you mean " + strings.Join(unknown.Nearest, ", ") + "?"
		}
		return f
	}
	if many, ok := errors.AsType[*catalog.AmbiguousModel](err); ok {
		f.Code = "model_ambiguous"
		f.Message = fmt.Sprintf("The model %s is listed by several providers (%s); ask for provider/%s.",
			many.Name, strings.Join(many.Providers, ", "), many.Name)
		return f
	}
	f.Message = err.Error()
	return f
}

// statusClientLeft is recorded for a request whose client went away (OV-4).
const statusClientLeft = 499

// finish writes what dispatch could not answer.
func (g *Gateway) finish(out *sink, t *dispatch.Trail) {
	switch {
	case t.Cancelled:
		t.Status = statusClientLeft
		if !t.Committed {
			out.w.WriteHeader(statusClientLeft) // for a log in front of us; the client is gone
		}
	case t.Committed:
	case t.Failure != nil:
		f := *t.Failure
		f.RequestID = out.c.RequestID
		t.Status = dialect.StatusFor(out.c.Dialect, f.Status)
		out.describe(out.w.Header(), t)
		out.tell(out.w.Header(), t)
		b := t.Unchanged
		if b == nil {
			b = dialect.Body(out.c.Dialect, f)
		}
		g.failBody(out.w, out.c.Dialect, f, b)
	default: // no path of dispatch ends so; an empty 200 would look like an answer
		t.Status = http.StatusInternalServerError
		g.fail(out.w, out.c.Dialect, dialect.Failure{Status: t.Status, Message: "The gateway gave no answer."}, out.c.RequestID)
	}
}
