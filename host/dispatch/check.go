package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// checkTime bounds a connection test (OBJ-11).
const checkTime = 20 * time.Second

// listBytes bounds the model list that a test reads.
const listBytes = 8 << 20

// maxHeard is how many model ids a test keeps (OBJ-11).
const maxHeard = 2000

// Check is what a test of one connection found. A failure is shown as its verdict and changes no state by itself.
type Check struct {
	OK      bool
	Status  int // restated
	Verdict wire.Verdict
	Message string
	Models  []string // ids that the provider's model list named
}

// Check asks the provider for its model list where it has one, else for one token (OBJ-11). Nothing counts for breakers or
// cooldowns; what a success heals is the caller's to apply (COOL-52).
func (d *Dispatcher) Check(ctx context.Context, s *catalog.Snapshot, conn *catalog.Connection) Check {
	p := s.Provider(conn.Provider)
	if p == nil {
		return Check{Message: fmt.Sprintf("The provider %s of this connection is not in the catalogue.", conn.Provider)}
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	set := d.Plugins.Acquire()
	defer set.Release()
	if _, ok := p.Dialects["/v1/models"]; ok {
		return d.check(ctx, s, set, conn, p, "/v1/models", wire.RawDialect, "list", `{"model":"list"}`)
	}
	model := testModel(p, conn)
	if model == "" {
		return Check{Message: "The provider lists no model that a test could ask for; give the connection one in models."}
	}
	return d.check(ctx, s, set, conn, p, "/v1/chat/completions", wire.OpenAIChat, model,
		fmt.Sprintf(`{"model":%q,"max_tokens":1,"messages":[{"role":"user","content":"ping"}]}`, model))
}

func testModel(p *catalog.Provider, conn *catalog.Connection) string {
	for _, m := range conn.Models {
		return m
	}
	for i := range p.Models {
		if conn.Serves(p.Models[i].ID) {
			return p.Models[i].ID
		}
	}
	return ""
}

func (d *Dispatcher) check(ctx context.Context, s *catalog.Snapshot, set PluginSet, conn *catalog.Connection, p *catalog.Provider,
	endpoint string, dial wire.Dialect, model, text string,
) Check {
	buf, err := body.Read(bytes.NewReader([]byte(text)), int64(len(text)), 1<<20)
	if err != nil {
		return Check{Message: err.Error()}
	}
	defer buf.Release()
	scan, err := buf.Scan()
	if err != nil {
		return Check{Message: err.Error()}
	}
	c := &Call{RequestID: "test-" + conn.ID, Endpoint: endpoint, Dialect: dial, Catalog: s, Model: p.ID + "/" + model,
		Route: &catalog.Route{Kind: catalog.KindDirect}, Body: buf, Scan: scan}
	t := &Trail{Began: d.Now()}
	a := &attempt{r: &run{d: d, c: c, t: t, plugins: set}, began: t.Began, settled: true,
		target: catalog.Target{Provider: p, Connection: conn, Model: model, Requested: c.Model}}
	return a.check(ctx, endpoint == "/v1/models")
}

func (a *attempt) check(ctx context.Context, list bool) Check {
	if err := a.ready(ctx); err != nil {
		return Check{Message: a.r.d.Redact(err.Error())}
	}
	resp, err := a.ask(ctx, list)
	if err != nil {
		code := upstream.TransportCode(err)
		return a.checked(ctx, &rules.Reply{Source: wire.SourceTransport, Facts: rules.Facts{Code: code, Message: transportMessage(code)}})
	}
	a.resp = resp
	defer resp.Body.Close()
	text, total := readBounded(resp.Body, listBytes)
	failed, status := false, resp.StatusCode
	if status >= 200 && status < 300 && a.prep.Dialect != wire.RawDialect {
		if failed, status = a.looksFailed(text); !failed {
			status = resp.StatusCode
		}
	}
	if status >= 200 && status < 300 {
		return Check{OK: true, Status: status, Models: heard(text)}
	}
	return a.checked(ctx, &rules.Reply{
		Source: wire.SourceHTTP, Status: status, Original: resp.StatusCode, Header: resp.Header,
		Body: text[:min(len(text), rules.MaxText)], BodyBytes: total,
	})
}

func (a *attempt) ask(ctx context.Context, list bool) (*http.Response, error) {
	if !list || a.prep.Respond {
		return a.send(ctx, ctx)
	}
	m := upstream.Moment{RequestID: a.r.c.RequestID, Now: a.began}
	return a.r.d.Client.Send(ctx, a.prep, m, http.NoBody, 0)
}

// checked is a failure with its meaning.
func (a *attempt) checked(ctx context.Context, reply *rules.Reply) Check {
	v, facts := a.meaning(ctx, reply)
	return Check{Status: facts.status, Verdict: v, Message: shorten(a.r.d.Redact(facts.message), 500)}
}

// heard reads the ids of a model list in the shape of OpenAI.
func heard(b []byte) []string {
	var d struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if json.Unmarshal(b, &d) != nil {
		return nil
	}
	var ids []string
	for _, m := range d.Data[:min(len(d.Data), maxHeard)] {
		if m.ID != "" {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
