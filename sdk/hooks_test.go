package sdk

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/sdk/wire"
)

// Every step of the builder writes what ABI-3 names.
func TestPlanBuilder(t *testing.T) { // ABI-3, ABI-12
	p := Plugin{Plan: func(r *PlanRequest) *Plan {
		return POST("{{connection.base_url}}/x").Header("authorization", "Bearer {{secret.api_key}}").Dialect(AnthropicMessages).
			Set("model", r.UpstreamModel).Set("n", 1).Set("list", []string{"a"}).Set("same", r.Get("connection.data")).Set("raw", Raw(`{"b":2}`)).
			SetDefault("max_tokens", 4096).Delete("store").Rename("a", "b").Clamp("temperature", 0, 1.5).
			BodyMax(7).Usage("u.in", "u.out").Timeouts(1000, 2000, 3000).
			ErrorText("error.message").ErrorCode("error.code").ErrorType("error.type").ErrorInStream("error", "error").
			StripHeaders("set-cookie").Buffer().HookRequest().HookStreams().HookStreams().TTL(60_000)
	}}
	m := machine{plugin: &p}
	got := string(m.call(wire.OpPlan, []byte(`{"upstream_model":"large","connection":{"data":{"org":"x"}}}`)))
	want := `{"method":"POST","url":"{{connection.base_url}}/x","headers":{"authorization":"Bearer {{secret.api_key}}"},"dialect":"anthropic_messages","body":[` +
		`{"op":"set","path":"model","value":"large"},{"op":"set","path":"n","value":1},{"op":"set","path":"list","value":["a"]},` +
		`{"op":"set","path":"same","value":{"org":"x"}},{"op":"set","path":"raw","value":{"b":2}},{"op":"set_default","path":"max_tokens","value":4096},` +
		`{"op":"delete","path":"store"},{"op":"rename","path":"a","to":"b"},{"op":"clamp","path":"temperature","min":0,"max":1.5}],"body_max_bytes":7,` +
		`"response":{"mode":"buffer","strip_headers":["set-cookie"],"events":"hook","stateful":true},` +
		`"error":{"text_paths":["error.message"],"code_paths":["error.code"],"type_paths":["error.type"],"in_stream":{"event":"error","path":"error"}},` +
		`"usage":{"input_tokens":"u.in","output_tokens":"u.out"},"timeouts":{"connect_ms":1000,"first_byte_ms":2000,"idle_ms":3000},` +
		`"hooks":["on_response","on_request","on_event","on_end"],"ttl_ms":60000}`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if out := NoUpstream().For(Match{Providers: []string{"a"}}); out.Plan.Upstream != "none" || out.Match.Providers[0] != "a" {
		t.Errorf("%+v", out)
	}
	p.Plan = func(*PlanRequest) *Plan { return GET("x").Set("a", struct{}{}) }
	if got := text(Parse(m.call(wire.OpPlan, []byte(`{}`))), "error.code"); got != Internal {
		t.Errorf("a value that cannot be written: code %q", got)
	}
}

func TestRequestHooks(t *testing.T) { // ABI-3
	p := Plugin{
		OnRequest: func(r *Request) *Edits {
			if r.MessageCount < 2 {
				return nil
			}
			org := r.Data("org")
			return new(Edits).Header("x-org", org).Set("user", r.Field("user")).Delete("metadata").Rename("a", "b").Clamp("t", 0, 1).SetDefault("s", true)
		},
		OnResponse: func(r *Response) *Edits {
			if r.Status != 200 || r.Header("x-cache") == "" {
				return nil
			}
			return new(Edits).Header("x-seen", r.Header("x-cache"))
		},
		Respond: func(r *Request) *Answer {
			if !r.HasSecret("api_key") || r.HasSecret("other") {
				return &Answer{Decline: &Error{MissingSecret, "no key"}}
			}
			return &Answer{Status: 200, Body: []byte(`{}`), Events: []AnswerEvent{{Event: "e", Data: "d", DelayMS: 3}}}
		},
		OnRestate: func(f *Failure) *Restatement { return &Restatement{Decline: &Error{Internal, f.Provider()}} },
		OnClassify: func(f *Failure) *Verdict {
			yes, half := true, 50
			return &Verdict{Reason: Overloaded, CountForBreaker: &yes, Confidence: &half, Message: f.Header("x-a"), CooldownMS: f.ElapsedMS()}
		},
	}
	m := machine{plugin: &p}
	for _, c := range []struct {
		op       wire.Op
		in, want string
	}{
		{wire.OpRequest, `{"message_count":1}`, ""},
		{wire.OpRequest, `{"message_count":2,"connection":{"data":{"org":"x"}},"fields":{"user":"u1"}}`,
			`{"headers":{"x-org":"x"},"body":[{"op":"set","path":"user","value":"u1"},{"op":"delete","path":"metadata"},{"op":"rename","path":"a","to":"b"},{"op":"clamp","path":"t","min":0,"max":1},{"op":"set_default","path":"s","value":true}]}`},
		{wire.OpResponse, `{"status":500,"headers":{"x-cache":"hit"}}`, ""},
		{wire.OpResponse, `{"status":200,"headers":{"x-cache":"hit"}}`, `{"headers":{"x-seen":"hit"}}`},
		{wire.OpRespond, `{}`, `{"error":{"code":"missing_secret","message":"no key"}}`},
		{wire.OpRespond, `{"connection":{"secrets":["a","api_key"]}}`, `{"status":200,"body":{},"events":[{"delay_ms":3,"event":"e","data":"d"}]}`},
		{wire.OpRestate, `{"provider":"p"}`, `{"error":{"code":"internal","message":"p"}}`},
		{wire.OpClassify, `{"headers":{"x-a":"b"},"elapsed_ms":8}`, `{"reason":"overloaded","cooldown_ms":8,"count_for_breaker":true,"message":"b","confidence":50}`},
		{wire.OpClassify, `[]`, ""},
	} {
		if got := string(m.call(c.op, []byte(c.in))); got != c.want {
			t.Errorf("%s of %s:\n got %s\nwant %s", c.op, c.in, got, c.want)
		}
	}
}

// counted is a plugin that lets two events of each stream through.
func counted() (*Plugin, *Streams[int]) {
	var seen Streams[int]
	return &Plugin{
		OnEvent: func(e *Event) Action {
			n := seen.Of(e.Stream)
			*n++
			switch {
			case e.JSON("stop").Bool():
				return EndStream("internal", "stopped")
			case e.Name == "ping":
				return Drop
			case *n > 2:
				return Replace("late", []byte(`{}`))
			case e.JSON("again").Exists():
				return e.Replace([]byte("x"))
			}
			return Pass
		},
	}, &seen
}

// State is kept by stream, and forgotten at the stream's end, without a word of the author.
func TestStreams(t *testing.T) { // ABI-5
	p, seen := counted()
	m := machine{plugin: p}
	for _, c := range []struct {
		stream           uint32
		name, data, want string
	}{
		{7, "delta", `{"a":1}`, ""},
		{8, "delta", `{"again":1}`, "\x02\x05\x00deltax"},
		{7, "ping", ``, "\x01"},
		{7, "delta", `{}`, "\x02\x04\x00late{}"},
		{8, "", `{"again":1}`, "\x02\x00\x00x"},
		{9, "", `{"stop":true}`, "\x03" + `{"error":{"code":"internal","message":"stopped"}}`},
	} {
		in := wire.AppendEvent(nil, wire.Event{Stream: c.stream, Name: []byte(c.name), Data: []byte(c.data)})
		if got := string(m.call(wire.OpEvent, in)); got != c.want {
			t.Errorf("%d %s %s: %q, want %q", c.stream, c.name, c.data, got, c.want)
		}
	}
	if seen.Len() != 3 {
		t.Fatalf("%d streams are remembered", seen.Len())
	}
	if out := m.call(wire.OpEnd, []byte(`{"stream_id":7,"complete":true}`)); out != nil || seen.Len() != 2 || *seen.Of(8) != 2 {
		t.Errorf("%q, %d streams", out, seen.Len())
	}
	for _, garbage := range []string{"", "abc", "\x07\x00\x00\x00\xff\xff"} {
		if out := m.call(wire.OpEvent, []byte(garbage)); out != nil {
			t.Errorf("%q is answered by %q", garbage, out)
		}
	}
}

// An event that passes allocates nothing in a guest, so a stream of them needs no collection.
func TestEventsAllocateNothing(t *testing.T) { // ABI-12
	var seen Streams[int]
	m := machine{plugin: &Plugin{OnEvent: func(e *Event) Action {
		if *seen.Of(e.Stream)++; e.Name == "ping" || e.JSON("stop").Bool() || e.JSON("choices.0.delta.tool_calls").Exists() {
			return Drop
		}
		return Pass
	}}}
	in := wire.AppendEvent(nil, wire.Event{Stream: 1, Name: []byte("delta"), Data: []byte(`{"choices":[{"delta":{"content":"hello"}}],"stop":false}`)})
	m.call(wire.OpEvent, in)
	if n := testing.AllocsPerRun(100, func() { m.call(wire.OpEvent, in) }); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestConfigure(t *testing.T) { // ABI-7
	limit := int64(0)
	p := Plugin{Configure: func(c *Config) error {
		n, ok := c.Get("limit").Int()
		if !ok && c.Get("limit").Exists() {
			return errors.New("limit is a number")
		}
		limit = n
		if c.Granted().Member("terminate").Bool() {
			return &Error{Unsupported, "no"}
		}
		return nil
	}}
	m := machine{plugin: &p}
	if out := m.call(wire.OpConfigure, []byte(`{"config":{"limit":5},"granted":{}}`)); out != nil || limit != 5 {
		t.Errorf("%s %d", out, limit)
	}
	if out := string(m.call(wire.OpConfigure, []byte(`{"config":{"limit":"x"}}`))); out != `{"error":{"code":"invalid_config","message":"limit is a number"}}` {
		t.Error(out)
	}
	if out := string(m.call(wire.OpConfigure, []byte(`{"config":{},"granted":{"terminate":true}}`))); out != `{"error":{"code":"unsupported","message":"no"}}` {
		t.Error(out)
	}
}
