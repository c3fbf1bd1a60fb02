package dispatch_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

func edit(op, path, value string) wire.Edit {
	return wire.Edit{Op: op, Path: path, Value: wire.Raw(value)}
}

// ABI-3: on_request hears what was declared of the request, and its edits come after the plan's own.
func TestOnRequest(t *testing.T) {
	b := newBench(t)
	b.plan.Hooks = []string{"on_request"}
	b.plan.Body = []wire.Edit{edit("set", "tier", `"plan"`), edit("set", "kept", `1`)}
	b.guest.fields = []string{"messages.-1.content", "odd", "none"}
	var heard wire.RequestFacts
	b.guest.onRequest = func(f wire.RequestFacts) (*wire.Edits, error) {
		heard = f
		return &wire.Edits{Headers: map[string]string{"x-tier": "hook"}, Body: []wire.Edit{edit("set", "tier", `"hook"`)}}, nil
	}
	var header string
	b.with("a", func(w http.ResponseWriter, r *http.Request) { header = r.Header.Get("X-Tier"); answers(w, r) })
	c, _ := b.do(b.direct(), false)
	if c.status != 200 || header != "hook" {
		t.Errorf("%d, header %q", c.status, header)
	}
	var sent map[string]any
	if err := json.Unmarshal([]byte(b.bodies[0]), &sent); err != nil || sent["tier"] != "hook" || sent["kept"] != 1.0 || sent["model"] != "m" {
		t.Errorf("%s %v", b.bodies[0], err)
	}
	want := map[string]wire.Raw{"messages.-1.content": wire.Raw(`"hi"`), "odd": wire.Raw(`[1, 2]`)}
	if !maps.EqualFunc(heard.Fields, want, func(a, b wire.Raw) bool { return string(a) == string(b) }) || heard.MessageCount != 1 || heard.Connection.ID != "a" {
		t.Errorf("%+v", heard)
	}
	b.do(b.direct(), false)
	if b.guest.planned != 1 {
		t.Errorf("the plan was asked for %d times", b.guest.planned)
	}
}

// ABI-3: a table of 64 edits may follow the plan's own 64.
func TestManyEdits(t *testing.T) {
	b := newBench(t).with("a", answers)
	b.plan.Hooks = []string{"on_request"}
	full := make([]wire.Edit, 64)
	for i := range full {
		full[i] = edit("set", "f"+strconv.Itoa(i), "1")
	}
	b.plan.Body = full
	b.guest.onRequest = func(wire.RequestFacts) (*wire.Edits, error) { return &wire.Edits{Body: full}, nil }
	if c, _ := b.do(b.direct(), false); c.status != 200 || b.guest.refused != nil || !strings.Contains(b.bodies[0], `"f63":1`) {
		t.Error(c.status, b.guest.refused)
	}
}

// ABI-8: a hook that fails, or answers what cannot be sent, is as if it had said nothing; the request is answered all the same.
func TestHooksThatFail(t *testing.T) {
	header := func(name, value string) func() (*wire.Edits, error) {
		return func() (*wire.Edits, error) {
			return &wire.Edits{Headers: map[string]string{name: value, "x-good": "1"}}, nil
		}
	}
	body := func(edits ...wire.Edit) func() (*wire.Edits, error) {
		return func() (*wire.Edits, error) {
			return &wire.Edits{Headers: map[string]string{"x-good": "1"}, Body: edits}, nil
		}
	}
	both := map[string]func() (*wire.Edits, error){
		"fault":       func() (*wire.Edits, error) { return nil, errors.New("trap") },
		"declined":    func() (*wire.Edits, error) { return nil, &rules.Declined{Code: "internal", Message: "no"} },
		"nothing":     func() (*wire.Edits, error) { return nil, nil },
		"length":      header("content-length", "1"),
		"encoding":    header("Transfer-Encoding", "chunked"),
		"hop":         header("connection", "x-good"),
		"line break":  header("x-a", "1\r\nx-b: 2"),
		"name":        header("x a", "1"),
		"placeholder": header("x-a", "{{secret.api_key}}"),
		"unknown op":  body(edit("explode", "a", "1")),
		"many":        body(slices.Repeat([]wire.Edit{edit("set", "a", "1")}, 65)...),
		"not JSON":    body(edit("set", "a", "{")),
	}
	request := maps.Clone(both)
	request["host"] = header("HOST", "evil.example")
	for name, says := range request {
		b := newBench(t)
		b.plan.Hooks = []string{"on_request"}
		b.guest.onRequest = func(wire.RequestFacts) (*wire.Edits, error) { return says() }
		var seen http.Header
		b.with("a", func(w http.ResponseWriter, r *http.Request) { seen = r.Header; answers(w, r) })
		c, trail := b.do(b.direct(), false)
		if c.status != 200 || seen.Get("X-Good") != "" || seen.Get("X-A") != "" || len(trail.Excluded) > 0 || strings.Contains(b.bodies[0], `"a"`) {
			t.Errorf("on_request %s: %d %v %s", name, c.status, seen, b.bodies[0])
		}
	}
	response := maps.Clone(both)
	response["cookie"] = header("set-cookie", "a=1")
	response["page"] = header("access-control-allow-origin", "*")
	response["ours"] = header("x-weir-provider", "other")
	for name, says := range response {
		b := newBench(t).with("a", answers)
		b.plan.Hooks, b.plan.Response.Mode = []string{"on_response"}, "buffer"
		b.guest.onResponse = func(wire.ResponseFacts) (*wire.Edits, error) { return says() }
		c, trail := b.do(b.direct(), false)
		if c.status != 200 || c.header.Get("X-Good") != "" || !strings.Contains(c.body.String(), "hello") || !trail.Attempts[0].OK || len(b.events) > 0 {
			t.Errorf("on_response %s: %d %v", name, c.status, c.header)
		}
	}
}

// ABI-3: on_response in mode buffer sees fields of the answer and may edit it; its length is told anew.
func TestOnResponseBuffered(t *testing.T) {
	big := strings.Repeat("x", 300<<10)
	for name, text := range map[string]string{"short": "hello", "long": big} {
		b := newBench(t).with("a", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Quota", "7")
			fmt.Fprintf(w, `{"choices":[{"message":{"content":%q}}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`, text)
		})
		b.plan.Hooks, b.plan.Response.Mode = []string{"on_response"}, "buffer"
		b.guest.fields = []string{"usage.prompt_tokens", "choices"}
		var heard wire.ResponseFacts
		b.guest.onResponse = func(f wire.ResponseFacts) (*wire.Edits, error) {
			heard = f
			return &wire.Edits{Headers: map[string]string{"x-seen": "1"}, Body: []wire.Edit{edit("set", "model", `"mine"`)}}, nil
		}
		c, trail := b.do(b.direct(), false)
		var got struct{ Model string }
		if err := json.Unmarshal([]byte(c.body.String()), &got); err != nil || got.Model != "mine" {
			t.Errorf("%s: %q %v", name, got.Model, err)
		}
		if c.header.Get("X-Seen") != "1" || c.header.Get("Content-Length") != strconv.Itoa(c.body.Len()) || trail.Usage.Input != 3 || !trail.Attempts[0].OK {
			t.Errorf("%s: %v %+v", name, c.header, trail)
		}
		cut := string(heard.Fields["choices"]) != fmt.Sprintf(`[{"message":{"content":%q}}]`, text)
		if heard.Status != 200 || heard.Headers["x-quota"] != "7" || string(heard.Fields["usage.prompt_tokens"]) != "3" || cut != (name == "long") {
			t.Errorf("%s: %+v", name, heard.Headers)
		}
	}
}

// ABI-3: above 4 MiB an answer passes as it is, and a failed one is judged as it came, whatever on_response would make of it.
func TestOnResponseThatIsNotBuffered(t *testing.T) {
	b := newBench(t).with("a", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"choices":[{"message":{"content":%q}}]}`, strings.Repeat("x", 5<<20))
	})
	b.plan.Hooks, b.plan.Response.Mode = []string{"on_response"}, "buffer"
	fields := false
	b.guest.onResponse = func(f wire.ResponseFacts) (*wire.Edits, error) {
		fields = fields || f.Fields != nil
		return &wire.Edits{Headers: map[string]string{"x-seen": "1"}, Body: []wire.Edit{edit("set", "model", `"mine"`)}}, nil
	}
	c, trail := b.do(b.direct(), false)
	if c.status != 200 || c.body.Len() < 5<<20 || !json.Valid([]byte(c.body.String())) || strings.Contains(c.body.String(), "mine") || fields || !trail.Attempts[0].OK || c.header.Get("X-Seen") != "1" {
		t.Errorf("%d %d bytes %v", c.status, c.body.Len(), trail.Attempts)
	}
	bad := newBench(t).with("a", fails(200, `{"error":{"message":"full","code":429}}`)).with("b", answers)
	bad.plan, bad.guest.onResponse = b.plan, b.guest.onResponse
	c, trail = bad.do(bad.direct(), false)
	if len(trail.Attempts) != 2 || trail.Attempts[0].Status != 429 || !strings.Contains(c.body.String(), "hello") {
		t.Errorf("%+v %s", trail.Attempts, c.body.String())
	}
}

// ABI-3: without a buffer on_response sees the head of every answer once, and may add headers to those that the client gets.
func TestOnResponseHead(t *testing.T) {
	b := newBench(t).with("a", fails(500, `{}`)).with("b", streams(role, word, finish, done))
	b.plan.Hooks = []string{"on_response"}
	b.plan.Response.StripHeaders = []string{"x-seen"}
	var heard []int
	b.guest.onResponse = func(f wire.ResponseFacts) (*wire.Edits, error) {
		heard = append(heard, f.Status)
		return &wire.Edits{Headers: map[string]string{"x-seen": "1", "content-type": "text/plain"}, Body: []wire.Edit{edit("set", "model", `"mine"`)}}, nil
	}
	c, _ := b.do(b.direct(), true)
	if !slices.Equal(heard, []int{500, 200}) || c.header.Get("X-Seen") != "1" || c.header.Get("Content-Type") != "text/event-stream" || strings.Contains(c.body.String(), "mine") {
		t.Errorf("%v %v", heard, c.header)
	}
}

// ABI-8: a plugin that fails closed rejects the target: nothing is counted, and the next one answers.
func TestFailClosed(t *testing.T) {
	closed := fmt.Errorf("%w: trap", dispatch.ErrPluginUnavailable)
	for name, set := range map[string]func(b *bench){
		"quarantine": func(b *bench) { b.guest.unready = closed },
		"no plan":    func(b *bench) { b.guest.planFault = closed },
		"on_request": func(b *bench) {
			b.plan.Hooks = []string{"on_request"}
			b.guest.onRequest = func(wire.RequestFacts) (*wire.Edits, error) { return nil, closed }
		},
		"on_response": func(b *bench) {
			b.plan.Hooks = []string{"on_response"}
			b.guest.onResponse = func(wire.ResponseFacts) (*wire.Edits, error) { return nil, closed }
		},
		"buffer": func(b *bench) {
			b.plan.Hooks, b.plan.Response.Mode = []string{"on_response"}, "buffer"
			b.guest.onResponse = func(wire.ResponseFacts) (*wire.Edits, error) { return nil, closed }
		},
	} {
		b := newBench(t).with("a", answers)
		set(b)
		c, trail := b.do(b.direct(), false)
		if c.status != 0 || len(trail.Excluded) != 1 || trail.Excluded[0].Refusal.Reason != "plugin_unavailable" || len(b.events) > 0 || len(trail.Attempts) > 0 || trail.Failure.Status != 502 {
			t.Errorf("%s: %d %+v %+v", name, c.status, trail.Excluded, trail.Failure)
		}
	}
}

// ABI-8: plans that were cached stay in use when the guest is not to be had any more, and a built-in executor takes over for the
// others.
func TestUnavailableExecutor(t *testing.T) {
	b := newBench(t).with("a", answers)
	if c, _ := b.do(b.direct(), false); c.status != 200 {
		t.Fatal(c.status)
	}
	b.guest.planFault = fmt.Errorf("%w: quarantined", dispatch.ErrPluginUnavailable)
	if c, _ := b.do(b.direct(), false); c.status != 200 || b.guest.planned != 1 {
		t.Errorf("a cached plan: %d", c.status)
	}
	if c, trail := b.do(b.direct(), true); c.status != 0 || trail.Excluded[0].Refusal.Reason != "plugin_unavailable" || len(b.events) > 0 {
		t.Errorf("a new plan: %d %+v", c.status, trail.Excluded)
	}
	second := newBench(t)
	second.plan.Headers = map[string]string{"authorization": "Bearer {{secret.api_key}}", "x-by": "builtin"}
	b.guest.fallback = &substitute{second}
	var by string
	b.by["a"] = func(w http.ResponseWriter, r *http.Request) {
		by = r.Header.Get("X-By")
		streams(word, finish, done)(w, r)
	}
	if c, _ := b.do(b.direct(), true); c.status != 200 || by != "builtin" {
		t.Errorf("the built-in one: %d by %q", c.status, by)
	}
}

// ABI-8: a built-in executor takes over for an answer that the guest cannot give; one that fails closed has none.
func TestRespondTakenOver(t *testing.T) {
	for _, over := range []bool{true, false} {
		b := newBench(t).with("a", answers)
		second := &substitute{newBench(t)}
		second.plan = b.plan
		b.plan = wire.Plan{Upstream: "none", Dialect: wire.OpenAIChat}
		b.guest.respondFault = fmt.Errorf("%w: trap", dispatch.ErrPluginUnavailable)
		if over {
			b.guest.fallback = second
		}
		c, trail := b.do(b.direct(), false)
		if over != (c.status == 200) || over != (len(trail.Excluded) == 0) || len(b.events) > 0 {
			t.Errorf("%v: %d %+v", over, c.status, trail.Excluded)
		}
	}
}

// substitute is an executor with a digest of its own.
type substitute struct{ *bench }

func (*substitute) Digest() string { return "e" }

// ABI-8: a classifier that fails closed leaves the target for another, and nothing counts against it.
func TestRejectedVerdict(t *testing.T) {
	for name, j := range map[string]rejects{"classify": {}, "restate": {restates: true}} {
		asked := 0
		b := newBench(t).with("a", func(w http.ResponseWriter, r *http.Request) {
			if asked++; asked == 1 {
				fails(429, `{"error":{"message":"slow down"}}`)(w, r)
				return
			}
			answers(w, r)
		})
		b.d.Plugins = judged{b, j}
		rt := b.direct()
		rt.Kind, rt.Targets = catalog.KindCombo, append(rt.Targets, catalog.RouteTarget{Key: "acme/n", Provider: b.prov, Model: "n"})
		c, trail := b.do(rt, false)
		if c.status != 200 || len(b.events) > 0 || len(trail.Excluded) != 1 || trail.Excluded[0].Refusal.Reason != "plugin_unavailable" {
			t.Errorf("%s: %d %+v %v", name, c.status, trail.Excluded, b.events)
		}
	}
}

type rejects struct{ restates bool }

func (r rejects) Restate(context.Context, *rules.Reply) (wire.Restatement, bool) {
	return wire.Restatement{Keep: true, Rejected: true, Plugin: "p"}, r.restates
}

func (r rejects) Classify(context.Context, *rules.Reply) (wire.Verdict, bool) {
	return wire.Rejection("p", "classify", "d"), !r.restates
}

type judged struct {
	*bench
	judge dispatch.Judge
}

func (j judged) Acquire() dispatch.PluginSet            { return j }
func (j judged) Judge(*catalog.Provider) dispatch.Judge { return j.judge }
