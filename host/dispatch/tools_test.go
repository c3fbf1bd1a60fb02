package dispatch_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/sdk/wire"
)

// withTools sends a chat request with n tools along a route.
func (b *bench) withTools(rt *catalog.Route, n int, stream bool) (*client, *dispatch.Trail) {
	b.t.Helper()
	var tools []string
	for i := range n {
		tools = append(tools, fmt.Sprintf(`{"type":"function","function":{"name":"t%d","parameters":{"type":"object"}}}`, i))
	}
	text := fmt.Sprintf(`{"model":"m","stream":%v,"messages":[{"role":"user","content":"hi"}],"tools":[%s]}`, stream, strings.Join(tools, ","))
	buf, err := body.Read(strings.NewReader(text), int64(len(text)), 1<<20)
	if err != nil {
		b.t.Fatal(err)
	}
	defer buf.Release()
	scan, err := buf.Scan()
	if err != nil {
		b.t.Fatal(err)
	}
	c := &client{}
	return c, b.d.Do(b.t.Context(), &dispatch.Call{
		RequestID: "req-1", Endpoint: "/v1/chat/completions", Dialect: wire.OpenAIChat, Catalog: b.snap, Route: rt, Model: "m", Stream: stream,
		Body: buf, Scan: scan, Header: http.Header{},
	}, c)
}

// tooled is a bench with two providers, acme whose connection a takes 3 tools, and other whose connection b takes 50.
func tooled(t *testing.T) (b *bench, other *catalog.Provider) {
	b = newBench(t)
	b.snap.Settings.ToolTruncate = true
	b.with("a", nil)
	other = &catalog.Provider{ID: "other", BaseURL: b.prov.BaseURL, Category: catalog.Local, Auth: wire.AuthAPIKey, Passthrough: true}
	other.Connections = []*catalog.Connection{{ID: "b", Provider: "other", AuthType: wire.AuthAPIKey, Active: true, Priority: 1,
		Secrets: map[string]catalog.Secret{"api_key": catalog.NewSecret("b")}}}
	b.takesOf("a", 3)
	b.takesOf("b", 50)
	return b, other
}

// takesOf lets a connection take n tools. The bench has read the request by the time it is asked, so the answer goes by what it kept.
func (b *bench) takesOf(id string, n int) {
	b.by[id] = func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		text := b.bodies[len(b.bodies)-1]
		b.mu.Unlock()
		r.Body = http.NoBody
		if sent := gjson.Get(text, "tools.#").Int(); sent > int64(n) {
			fails(400, fmt.Sprintf(`{"error":{"message":"too many tools: %d > %d maximum","type":"invalid_request_error"}}`, sent, n))(w, r)
			return
		}
		answers(w, r)
	}
}

// sentTools are the numbers of tools of the requests since the last call.
func (b *bench) sentTools() (all []int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.bodies {
		all = append(all, int(gjson.Get(text, "tools.#").Int()))
	}
	b.bodies = nil
	return all
}

func (b *bench) wantTools(keys []string, sent ...int) {
	b.t.Helper()
	if got := b.seen(); !slices.Equal(got, keys) {
		b.t.Errorf("asked %v, want %v", got, keys)
	}
	if got := b.sentTools(); !slices.Equal(got, sent) {
		b.t.Errorf("sent %v tools, want %v", got, sent)
	}
}

func outcome(c *client, trail *dispatch.Trail) string {
	if trail.Failure != nil {
		return fmt.Sprintf("%d %s", trail.Failure.Status, trail.Failure.Code)
	}
	return fmt.Sprintf("%d %s", c.status, trail.FewerTools)
}

// OTH-21, OTH-22: a combo learns the limit of a provider from its refusal, goes on, and skips the provider's targets for requests
// with more tools for 24 hours; those with fewer go there.
func TestToolLimitInCombos(t *testing.T) {
	for _, stream := range []bool{false, true} {
		b, other := tooled(t)
		rt := combo("priority", b.prov, other)
		for _, c := range []struct {
			after time.Duration
			tools int
			keys  []string
			sent  []int
		}{
			{0, 5, []string{"a", "b"}, []int{5, 5}},
			{0, 5, []string{"b"}, []int{5}},
			{0, 3, []string{"a"}, []int{3}},
			{24 * time.Hour, 5, []string{"a", "b"}, []int{5, 5}},
		} {
			b.later(c.after)
			if got := outcome(b.withTools(rt, c.tools, stream)); got != "200 " {
				t.Errorf("%s", got)
			}
			b.wantTools(c.keys, c.sent...)
		}
		if b.cooled() != 0 {
			t.Error("a limit of tools cooled a connection")
		}
	}
}

// OTH-22: when no target takes the tools, a combo's are asked with as many as they take; what failed otherwise is not asked again.
func TestToolsAreCutWhenNothingElseIsLeft(t *testing.T) {
	b, other := tooled(t)
	b.by["b"] = fails(500, `{"error":{"message":"oops"}}`)
	rt := combo("priority", b.prov, other)
	rt.Config.MaxRetries = some(0)
	if got := outcome(b.withTools(rt, 5, false)); got != "200 tools; sent=3; of=5" {
		t.Error(got)
	}
	b.wantTools([]string{"a", "b", "a"}, 5, 5, 3)
	only := combo("priority", b.prov)
	if got := outcome(b.withTools(only, 6, true)); got != "200 tools; sent=3; of=6" {
		t.Error(got)
	}
	b.wantTools([]string{"a"}, 3)
	b.snap.Settings.ToolTruncate = false
	c, trail := b.withTools(only, 5, false)
	if got := outcome(c, trail); got != "400 too_many_tools" || trail.Excluded[0].Refusal.Gate != "tool_limit" {
		t.Error(got, trail.Excluded)
	}
	b.wantTools(nil)
}

// OTH-22: a direct request has its tools cut, at once when the provider says so for the first time, and is told; a lower word counts.
func TestToolLimitOfDirectRequests(t *testing.T) {
	b, _ := tooled(t)
	if got := outcome(b.withTools(b.direct(), 5, false)); got != "200 tools; sent=3; of=5" {
		t.Error(got)
	}
	b.wantTools([]string{"a", "a"}, 5, 3)
	if got := outcome(b.withTools(b.direct(), 4, true)); got != "200 tools; sent=3; of=4" {
		t.Error(got)
	}
	b.wantTools([]string{"a"}, 3)
	b.takesOf("a", 2)
	if got := outcome(b.withTools(b.direct(), 4, false)); got != "200 tools; sent=2; of=4" {
		t.Error(got)
	}
	b.wantTools([]string{"a", "a"}, 3, 2)
	if got := outcome(b.withTools(b.direct(), 2, false)); got != "200 " {
		t.Error(got)
	}
	b.wantTools([]string{"a"}, 2)
}

// OTH-22: with WEIR_TOOL_TRUNCATE=false the first refusal is the provider's own, and the next requests are refused without it.
func TestToolsAreNotCut(t *testing.T) {
	b, _ := tooled(t)
	b.snap.Settings.ToolTruncate = false
	_, trail := b.withTools(b.direct(), 5, false)
	if trail.Failure == nil || trail.Failure.Status != 400 || trail.Failure.Code == "too_many_tools" || trail.Unchanged == nil {
		t.Errorf("%+v", trail.Failure)
	}
	b.wantTools([]string{"a"}, 5)
	c, trail := b.withTools(b.direct(), 5, true)
	if got := outcome(c, trail); got != "400 too_many_tools" || trail.Failure.Type != "invalid_request_error" {
		t.Error(got)
	}
	b.wantTools(nil)
}

// OTH-21: the limits that need no learning, and a provider without any.
func TestKnownToolLimits(t *testing.T) {
	for provider, limit := range map[string]int{"grok-cli": 200, "nvidia": 1536, "acme": 0} {
		b, _ := tooled(t)
		b.prov.ID = provider
		b.takesOf("a", 10_000)
		for _, n := range []int{limit, limit + 1, 2000} {
			sent := n
			if limit > 0 {
				sent = min(n, limit)
			}
			b.withTools(b.direct(), n, false)
			b.wantTools([]string{"a"}, sent)
		}
	}
}

// OTH-21: a refusal of something else teaches nothing.
func TestOtherRefusalsOfToolsTeachNothing(t *testing.T) {
	for _, message := range []string{"messages: maximum number of items is 2", "tools[1].function.name is longer than 3", "too many tools: 9 > 7"} {
		b, _ := tooled(t)
		b.by["a"] = fails(400, fmt.Sprintf(`{"error":{"message":%q}}`, message))
		b.withTools(b.direct(), 5, false)
		b.withTools(b.direct(), 5, false)
		b.wantTools([]string{"a", "a"}, 5, 5)
	}
}

// OTH-22: tools are counted and cut on either side of a translation.
func TestToolsOfAnotherDialect(t *testing.T) {
	b := newBench(t).messages()
	b.snap.Settings.ToolTruncate = true
	b.with("a", func(w http.ResponseWriter, r *http.Request) {
		b.mu.Lock()
		text := b.bodies[len(b.bodies)-1]
		b.mu.Unlock()
		if gjson.Get(text, "tools.#").Int() > 2 {
			fails(400, `{"type":"error","error":{"type":"invalid_request_error","message":"tools: maximum number of items is 2"}}`)(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(messagesAnswer))
	})
	for _, keys := range [][]string{{"a", "a"}, {"a"}} {
		if got := outcome(b.withTools(b.direct(), 4, false)); got != "200 tools; sent=2; of=4" {
			t.Error(got)
		}
		if got := b.seen(); !slices.Equal(got, keys) {
			t.Errorf("%v", got)
		}
	}
	if last := b.bodies[len(b.bodies)-1]; gjson.Get(last, "tools.#.name").Raw != `["t0","t1"]` {
		t.Error(last)
	}
}

// CMB-18, OTH-22: the refusal of too many tools is the answer only when nobody says anything else; what comes of fewer tools is.
func TestTheWordOnToolsIsTheLastOne(t *testing.T) {
	b, _ := tooled(t)
	first := true
	b.by["a"] = func(w http.ResponseWriter, r *http.Request) {
		if first {
			first = false
			fails(400, `{"error":{"message":"too many tools: 5 > 3"}}`)(w, r)
			return
		}
		fails(422, `{"error":{"message":"the weather is bad"}}`)(w, r)
	}
	rt := b.direct()
	rt.Config.MaxRetries = some(0)
	_, trail := b.withTools(rt, 5, false)
	if trail.Failure == nil || trail.Failure.Status != 422 || trail.FewerTools == "" {
		t.Errorf("%+v", trail.Failure)
	}
	b.wantTools([]string{"a", "a"}, 5, 3)
}
