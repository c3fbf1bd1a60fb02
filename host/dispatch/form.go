package dispatch

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync/atomic"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/sdk/wire"
)

// Form is the multipart body of a call to a raw endpoint, with the name of its model in a form field (INF-7). What is not in memory
// goes to one upstream only.
type Form struct {
	Type     string // the client's Content-Type, which names the boundary
	Head     []byte // what was read so far
	From, To int    // of the model's name in Head
	Rest     io.Reader
	Size     int64 // of the whole body; negative: not known

	claimed atomic.Bool // an attempt sends Rest
	spent   atomic.Bool // a byte of Rest went out
}

// Spent says whether the body cannot be sent again.
func (f *Form) Spent() bool { return f != nil && f.spent.Load() }

// Once says whether the body can be sent to one upstream only.
func (f *Form) Once() bool { return f != nil && f.Rest != nil }

var errFormSpent = errors.New("the body was sent to another provider and is not kept")

// payload is the body with another name for the model, and its length.
func (f *Form) payload(model string) (io.ReadCloser, int64, error) {
	parts := []io.Reader{bytes.NewReader(f.Head[:f.From]), bytes.NewReader([]byte(model)), bytes.NewReader(f.Head[f.To:])}
	size := int64(len(f.Head) - (f.To - f.From) + len(model))
	if f.Rest == nil {
		return io.NopCloser(io.MultiReader(parts...)), size, nil
	}
	if f.spent.Load() || !f.claimed.CompareAndSwap(false, true) {
		return nil, 0, errFormSpent
	}
	if size = -1; f.Size >= 0 {
		size = f.Size + int64(len(model)-(f.To-f.From))
	}
	return &formBody{Reader: io.MultiReader(append(parts, &spending{f})...), form: f}, size, nil
}

// formBody gives the claim back when nothing was sent of what is not kept.
type formBody struct {
	io.Reader
	form *Form
}

// Close ends the claim.
func (b *formBody) Close() error {
	if !b.form.spent.Load() {
		b.form.claimed.Store(false)
	}
	return nil
}

// spending notes the first read of what is not kept.
type spending struct{ form *Form }

// Read reads from the client.
func (s *spending) Read(p []byte) (int, error) {
	s.form.spent.Store(true)
	return s.form.Rest.Read(p)
}

// sendForm sends the client's form, with the upstream's name of the model.
func (a *attempt) sendForm(ctx context.Context) (*http.Response, error) {
	f := a.r.c.Form
	payload, size, err := f.payload(a.target.Model)
	if err != nil {
		return nil, err
	}
	if a.prep.MaxBody > 0 && size > a.prep.MaxBody {
		payload.Close()
		return nil, errBodyTooLarge
	}
	m := a.moment()
	m.Extra = http.Header{"Content-Type": {f.Type}}
	return a.r.d.Client.Send(ctx, a.prep, m, payload, size)
}

// raw says whether the call goes to an endpoint that no dialect stands for.
func (a *attempt) raw() bool { return a.r.c.Dialect == wire.RawDialect }

// HasEndpoint says whether a provider serves an endpoint; one that names none is taken to.
func HasEndpoint(p *catalog.Provider, endpoint string) bool {
	_, has := p.Dialects[endpoint]
	return has || len(p.Dialects) == 0
}

// lacksEndpoint leaves out a target of a raw call whose provider does not serve the endpoint, as such calls are never translated.
func (r *run) lacksEndpoint(rt *catalog.RouteTarget) bool {
	if r.c.Dialect != wire.RawDialect || HasEndpoint(rt.Provider, r.c.Endpoint) {
		return false
	}
	r.t.exclude(catalog.Target{Provider: rt.Provider, Model: rt.Model, Requested: r.c.Model},
		resilience.Refusal{Gate: "endpoint", Reason: "no_endpoint", Wait: resilience.WaitNever})
	return true
}

// passEvents answers a raw call with an event stream as it comes: nothing is known of its events, so its end is its end.
func (a *attempt) passEvents(ctx, actx context.Context) step {
	buf := make([]byte, 32<<10)
	n, err := 0, error(nil)
	a.clock.limit(phaseEvent, a.eventLimit())
	for n == 0 && err == nil {
		n, err = a.resp.Body.Read(buf)
	}
	if err != nil && (err != io.EOF || n == 0) {
		return a.noAnswer(ctx, actx, err)
	}
	h := a.answerHeader()
	h["Cache-Control"] = []string{"no-cache"}
	a.commit(h)
	for {
		a.clock.limit(phaseIdle, a.r.c.Catalog.Settings.StreamIdleTimeout)
		if n > 0 {
			if a.r.out.Write(buf[:n]) != nil || a.r.out.Flush() != nil {
				return a.clientLeft()
			}
			a.sent += int64(n)
		}
		if err == io.EOF {
			a.settleSuccess()
			return stepDone
		}
		if err != nil {
			return a.brokenLate(ctx, actx, err)
		}
		n, err = a.resp.Body.Read(buf)
	}
}
