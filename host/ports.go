package host

import (
	"context"
	"crypto/rand"
	"errors"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/manage"
	"github.com/weirgate/weir/host/observe"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
)

// ports is what management asks of this host.
func (h *Host) ports() manage.Ports {
	return manage.Ports{
		AdminKey: h.vault.AdminKey(), Listener: h.listens(), Inference: inferenceRoutes(),
		Now: h.o.Now, RequestID: h.ids.Next, Random: rand.Reader, Log: h.o.Log, Facts: h.facts,
		Catalog: h.catalog.Current, Check: h.check, Change: h.change, Documents: h.store, Sealer: h.vault, StoreHealth: h.store.Health,
		States: states{h}, Events: h.record, Order: h.order, Test: h.test, Plugins: h.plugins.List, Unquarantine: h.plugins.Unquarantine,
		Shelf: h.plugins, Replay: h.replay, Preview: h.preview, Errors: h.errors,
		Requests: h.ledger, Prices: h.prices.Load, Quota: h.quota.Snapshot,
		Metrics: h.metrics.Handler(), Profiles: observe.Profiles(), Recent: h.metrics.Recent,
		Stopping: h.stopped, KeyUsed: h.notes.keyUsed, Tested: h.notes.tested,
	}
}

func (h *Host) facts() manage.Facts {
	fs := h.file.Load()
	f := manage.Facts{
		Version: h.o.Version, Started: h.started, Address: "http://" + h.Addr(), Demo: h.o.Demo, PluginsLoaded: true,
		ConfigFile: h.o.ConfigFile, ConfigLoaded: fs.loadedAt,
	}
	if fault := h.fault.Load(); fault != nil {
		f.ConfigFault = h.redact.Text(fault.text)
	}
	return f
}

// order is the order in which a request would try the connections of a route, without any effect.
func (h *Host) order(rt *catalog.Route, key *catalog.Key, now time.Time) []catalog.Target {
	return h.dispatch.Order(h.catalog.Current(), rt, key, now)
}

// check says what would be wrong if the store held the objects of saving in place of those with their ids.
func (h *Host) check(saving catalog.Input) []document.Fault {
	h.building.Lock()
	defer h.building.Unlock()
	stored, _, err := h.loadStored(h.life)
	if err != nil {
		return []document.Fault{{Message: err.Error()}}
	}
	_, faults := h.build(h.file.Load(), overlay(stored, saving), true)
	return faults
}

// overlay returns stored with the objects of saving in place of those with their ids.
func overlay(stored *catalog.Input, saving catalog.Input) *catalog.Input {
	out := *stored
	out.Providers = replaced(out.Providers, saving.Providers, func(p catalog.ProviderInput) string { return p.ID })
	out.Connections = replaced(out.Connections, saving.Connections, func(c catalog.ConnectionInput) string { return c.ID })
	out.Combos = replaced(out.Combos, saving.Combos, func(c catalog.ComboInput) string { return c.Name })
	out.Aliases = replaced(out.Aliases, saving.Aliases, func(a catalog.AliasInput) string { return a.Alias })
	out.Keys = replaced(out.Keys, saving.Keys, func(k catalog.KeyInput) string { return k.ID })
	if saving.Settings != nil {
		out.Settings = saving.Settings
	}
	return &out
}

func replaced[T any](old, news []catalog.Entry[T], id func(T) string) []catalog.Entry[T] {
	out := make([]catalog.Entry[T], 0, len(old)+len(news))
	fresh := map[string]bool{}
	for _, e := range news {
		fresh[id(e.Object)] = true
	}
	for _, e := range old {
		if !fresh[id(e.Object)] {
			out = append(out, e)
		}
	}
	return append(out, news...)
}

// ErrNoConnection: a test was asked for a connection that is not there.
var ErrNoConnection = errors.New("no such connection")

// test asks a connection's provider, notes what it heard, and lets a success heal the connection (COOL-52, OBJ-11).
func (h *Host) test(ctx context.Context, id string) (manage.TestResult, error) {
	s := h.catalog.Current()
	conn := s.Connection(id)
	if conn == nil {
		return manage.TestResult{}, ErrNoConnection
	}
	c := h.dispatch.Check(ctx, s, conn)
	now := h.o.Now()
	h.notes.test(ctx, id, now, c.Models)
	if c.OK {
		at := resilience.Moment{Now: now, Catalog: s}
		h.record.Append(h.book.Passed(at, id)...)
		h.record.Append(h.breakers.Passed(at, conn.Provider)...) // BRK-29
	}
	return manage.TestResult{
		OK: c.OK, Status: c.Status, Reason: string(c.Verdict.Reason), Message: c.Message, Rule: c.Verdict.Evidence(),
		Models: len(c.Models),
	}, nil
}

// condition is the status word of a connection.
func (h *Host) condition(c *catalog.Connection, now time.Time) account.Condition {
	return h.book.Health(c.ID, now).Status
}

// inferenceRoutes are described beside management's own (OBS-7).
func inferenceRoutes() []manage.Route {
	return []manage.Route{
		{Method: "POST", Path: "/v1/chat/completions", Summary: "Answer a chat completion request, plain or as an event stream"},
		{Method: "POST", Path: "/v1/responses", Summary: "Answer a request of the Responses API, plain or as an event stream"},
		{Method: "POST", Path: "/v1/responses/input_tokens", Summary: "Count the tokens of a Responses request"},
		{Method: "POST", Path: "/v1/messages", Summary: "Answer a request of the Messages API, plain or as an event stream"},
		{Method: "POST", Path: "/v1/messages/count_tokens", Summary: "Count the tokens of a Messages request"},
		{Method: "POST", Path: "/v1beta/models/{model}:generateContent", Summary: "Answer a request of the Gemini API; also under /v1/ and /v1alpha/"},
		{Method: "POST", Path: "/v1beta/models/{model}:streamGenerateContent", Summary: "The same as a stream: events with alt=sse, else one JSON array"},
		{Method: "POST", Path: "/v1beta/models/{model}:countTokens", Summary: "Count the tokens of a Gemini request"},
		{Method: "POST", Path: "/v1/embeddings", Summary: "Pass an embeddings request to a provider that has the endpoint"},
		{Method: "POST", Path: "/v1/images/generations", Summary: "Pass a request for images"},
		{Method: "POST", Path: "/v1/images/edits", Summary: "Pass a form with images to edit"},
		{Method: "POST", Path: "/v1/audio/speech", Summary: "Pass a request for speech"},
		{Method: "POST", Path: "/v1/audio/transcriptions", Summary: "Pass a form with audio to transcribe"},
		{Method: "POST", Path: "/v1/audio/translations", Summary: "Pass a form with audio to translate"},
		{Method: "POST", Path: "/v1/moderations", Summary: "Pass a text to moderate"},
		{Method: "POST", Path: "/v1/rerank", Summary: "Pass documents to rank"},
		{Method: "GET", Path: "/v1/models", Summary: "List the models, aliases and combos that the key may use, in the shape that its client reads"},
		{Method: "GET", Path: "/v1/models/{model}", Summary: "Show one model"},
		{Method: "GET", Path: "/v1beta/models", Summary: "List them in the shape of the Gemini API"},
		{Method: "GET", Path: "/v1beta/models/{model}", Summary: "Show one model in the shape of the Gemini API"},
	}
}
