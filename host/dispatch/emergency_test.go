package dispatch_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

// rescue adds the emergency's provider, with an account unless bare.
func (b *bench) rescue(bare bool, h http.HandlerFunc) *bench {
	b.t.Helper()
	in := &catalog.Input{Name: "weir.yaml"}
	if !bare {
		in.Connections = []catalog.Entry[catalog.ConnectionInput]{{Object: catalog.ConnectionInput{ID: "free", Provider: "nvidia", APIKey: "free"}}}
	}
	snap, faults := catalog.Build(catalog.Sources{File: in, Described: []catalog.Described{{Plugin: "bench", Builtin: true, Providers: []wire.Provider{{
		ID: "nvidia", BaseURL: b.prov.BaseURL, Category: "local", Auth: wire.AuthAPIKey, PassthroughModels: new(true),
		Dialects: map[string]wire.Dialect{"/v1/chat/completions": wire.OpenAIChat}}}}}})
	if len(faults) > 0 {
		b.t.Fatal(faults)
	}
	values := *b.snap.Settings
	values.Emergency = settings.Emergency{Enabled: true, Provider: "nvidia", Model: "openai/gpt-oss-120b", MaxOutput: 4096}
	snap.Settings = &values
	b.snap, b.by["free"] = snap, h
	return b
}

const noMoney = `{"error":{"message":"You are out_of_credits","type":"billing_error"}}`

// OTH-23: a request that fails for lack of money goes once to the free model, with a bounded answer; what it may not rescue stays failed.
func TestEmergency(t *testing.T) {
	plain := `{"model":"acme/large","messages":[{"role":"user","content":"hi"}],"max_tokens":9000}`
	for _, c := range []struct {
		name    string
		status  int
		text    string
		body    string
		bare    bool
		change  func(*bench)
		rescued bool
	}{
		{"OTH-23 402", 402, `{"error":{"message":"pay"}}`, plain, false, nil, true},
		{"OTH-23 budget words under another status", 403, noMoney, plain, false, nil, true},
		{"OTH-23 another failure", 400, `{"error":{"message":"bad request"}}`, plain, false, nil, false},
		{"OTH-23 tools", 402, noMoney, strings.Replace(plain, `"messages"`, `"tools":[{"type":"function","function":{"name":"f"}}],"messages"`, 1), false, nil, false},
		{"OTH-23 an empty list of tools", 402, noMoney, strings.Replace(plain, `"messages"`, `"tools":[],"messages"`, 1), false, nil, true},
		{"OTH-23 switched off", 402, noMoney, plain, false, func(b *bench) { b.snap.Settings.Emergency.Enabled = false }, false},
		{"OTH-23 no account", 402, noMoney, plain, true, nil, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t).with("a", fails(c.status, c.text)).rescue(c.bare, answers)
			if c.change != nil {
				c.change(b)
			}
			got, trail := b.ask(wire.OpenAIChat, "/v1/chat/completions", c.body, false)
			hits := b.seen()
			if !c.rescued {
				if trail.Failure == nil || trail.Rescue != "" || slices.Contains(hits, "free") {
					t.Errorf("%v %q %+v", hits, trail.Rescue, trail.Failure)
				}
				return
			}
			if got.status != 200 || trail.Failure != nil || trail.Rescue != "nvidia/openai/gpt-oss-120b" || !slices.Equal(hits, []string{"a", "free"}) {
				t.Fatalf("%v %d %+v", hits, got.status, trail.Failure)
			}
			sent := gjson.Parse(b.bodies[len(b.bodies)-1])
			if sent.Get("max_tokens").Int() != 4096 || sent.Get("model").Str != "openai/gpt-oss-120b" {
				t.Errorf("sent %s", sent.Raw)
			}
		})
	}
}

// OTH-23: when the free model fails too, the first failure is told, and nothing is tried again.
func TestEmergencyThatFails(t *testing.T) {
	b := newBench(t).with("a", fails(402, `{"error":{"message":"pay"}}`)).rescue(false, fails(402, `{"error":{"message":"no credits here"}}`))
	_, trail := b.ask(wire.OpenAIChat, "/v1/chat/completions", `{"model":"acme/large","messages":[{"role":"user","content":"hi"}]}`, false)
	if trail.Failure == nil || !strings.HasPrefix(trail.Failure.Message, "pay") || trail.Rescue != "" || !slices.Equal(b.seen(), []string{"a", "free"}) {
		t.Errorf("%+v", trail.Failure)
	}
}

// OTH-23: the key's models hold for the emergency too.
func TestEmergencyNeedsTheKeysLeave(t *testing.T) {
	b := newBench(t).with("a", fails(402, noMoney)).rescue(false, answers)
	b.key = &catalog.Key{ID: "k", AllowedModels: []string{"acme/*"}, Scopes: []string{"inference"}}
	_, trail := b.ask(wire.OpenAIChat, "/v1/chat/completions", `{"model":"acme/large","messages":[{"role":"user","content":"hi"}]}`, false)
	if trail.Failure == nil || slices.Contains(b.seen(), "free") {
		t.Errorf("%+v", trail)
	}
}

// OTH-20: background is taken out of the request, in its own dialect and towards another one, and the answer says so.
func TestBackground(t *testing.T) {
	text := `{"model":"acme/large","background":true,"input":"hi","odd":1}`
	own := newBench(t).speaks(wire.OpenAIResponses, "/v1/responses", "/responses").with("a", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"id":"r","object":"response","status":"completed","background":false,"output":[{"type":"message","content":[{"type":"output_text","text":"hello"}]}]}`))
	})
	other := newBench(t).messages().with("a", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(messagesAnswer))
	})
	for name, b := range map[string]*bench{"own": own, "other": other} {
		got, trail := b.ask(wire.OpenAIResponses, "/v1/responses", text, false)
		if got.status != 200 || trail.Degraded != "background" || gjson.Get(got.body.String(), "background").Raw != "false" {
			t.Errorf("%s: %d %q %s", name, got.status, trail.Degraded, got.body.String())
		}
		if gjson.Get(b.bodies[0], "background").Raw == "true" {
			t.Errorf("%s: sent %s", name, b.bodies[0])
		}
	}
	if got := own.bodies[0]; got != `{"model":"m","background":false,"input":"hi","odd":1}` {
		t.Errorf("sent %s", got)
	}
}
