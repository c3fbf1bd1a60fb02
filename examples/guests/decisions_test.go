package guests

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

// decision is an answer of a provider, what the client gets of it, and who decided that.
type decision struct {
	name   string
	status int
	body   string

	want       answer // of its message only the beginning
	reason     string
	plugin     string // that decided; empty: none
	rule       string
	restatedTo int // by the plugin; 0: not
}

func wants(status int, code, message, after, restated string) answer {
	a := answer{status: status, after: after, restated: restated}
	a.Error.Code, a.Error.Message = code, message
	return a
}

// windows are decisions about the guest in C.
var windows = []decision{
	{
		name: "the longest window", status: 429,
		body: `{"error":{"message":"no","windows":[{"name":"minute","used":9,"limit":9,"resets_in_s":12},` +
			`{"name":"a \"week\"\u0041","used":5,"limit":5,"resets_in_s":7200},{"name":"year","used":5,"limit":6,"resets_in_s":900000}]}}`,
		want:   wants(429, "rate_limit_exceeded", `Acme's window "a "week"A" is used up`, "7200", ""),
		reason: "quota_exhausted", plugin: "acme-windows", rule: "classify",
	},
	{
		name: "one model's window", status: 429,
		body:   `{"error":{"message":"no","windows":[{"name":"minute","used":9,"limit":9,"resets_in_s":12,"model":"m-large"}]}}`,
		want:   wants(429, "rate_limit_exceeded", `Acme's window "minute" is used up`, "12", ""),
		reason: "rate_limit_exceeded", plugin: "acme-windows", rule: "classify",
	},
	{
		name: "no window is used up", status: 429,
		body:   `{"error":{"message":"no","windows":[{"name":"minute","used":8,"limit":9,"resets_in_s":12}]}}`,
		want:   wants(429, "rate_limit_exceeded", "no", "3", ""),
		reason: "rate_limit_exceeded",
	},
	{
		name: "its rule", status: 402, body: `{"error":{"message":"no","code":"balance_empty"}}`,
		want:   wants(402, "insufficient_quota", "no", "", ""),
		reason: "credits_exhausted", plugin: "acme-windows", rule: "no-credit",
	},
}

// relay are decisions about the guest in Rust.
var relay = []decision{
	{
		name: "a hidden limit", status: 500, body: `{"error":{"message":"upstream answered 429 (account 3): slow down, retry in 20s","type":"relay_error"}}`,
		want:   wants(429, "rate_limit_exceeded", "the relay's own upstream answered 429: slow down, retry in 20s", "20", "restate;from=500"),
		reason: "rate_limit_exceeded", plugin: "relay-status", rule: "classify", restatedTo: 429,
	},
	{
		name: "a hidden refusal", status: 500, body: `{"error":{"message":"upstream answered 401 (account 1): \u00fcber \\ \"key\"","type":"relay_error"}}`,
		want:   wants(401, "invalid_api_key", `the relay's own upstream answered 401: über \ "key"`, "", "restate;from=500"),
		reason: "model_access_denied", plugin: "relay-status", rule: "classify", restatedTo: 401,
	},
	{
		name: "the relay's own fault", status: 500, body: `{"error":{"message":"disk full","type":"relay_error"}}`,
		want:   wants(500, "", "disk full", "", ""),
		reason: "server_error",
	},
	{
		name: "its rules", status: 503, body: `{"error":{"message":"no channel for m-large","type":"relay_error"}}`,
		want:   wants(404, "model_not_found", "no channel for m-large", "", "no-channel;from=503"),
		reason: "model_not_found", plugin: "relay-status", rule: "no-such-model", restatedTo: 404,
	},
}

// harbor are decisions about the guest in AssemblyScript.
var harbor = []decision{
	{
		name: "a time of the day", status: 429, body: `{"error":{"message":"limit reached, resets at 14:30 UTC"}}`,
		want:   wants(429, "rate_limit_exceeded", "limit reached", "*", ""),
		reason: "quota_exhausted", plugin: "harbor-clock", rule: "classify",
	},
	{
		name: "no time of the day", status: 429, body: `{"error":{"message":"limit reached, resets at 25:30 UTC"}}`,
		want:   wants(429, "rate_limit_exceeded", "limit reached", "*", ""),
		reason: "rate_limit_exceeded",
	},
	{
		name: "its rule", status: 402, body: `{"error":{"message":"no credit left"}}`,
		want:   wants(402, "insufficient_quota", "no credit left", "", ""),
		reason: "credits_exhausted", plugin: "harbor-clock", rule: "no-credit",
	},
}

// bay are decisions about the guest of Extism.
var bay = []decision{
	{
		name: "busy", status: 503, body: `{"error":{"message":"busy"}}`,
		want:   wants(503, "server_is_overloaded", "busy", "", ""),
		reason: "overloaded", plugin: "bay-status", rule: "classify",
	},
	{
		name: "anything else", status: 503, body: `{"error":{"message":"no idea"}}`,
		want:   wants(503, "server_is_overloaded", "no idea", "", ""),
		reason: "overloaded",
	},
	{
		name: "the allowance as 500", status: 500, body: `{"error":{"message":"Your allowance is spent"}}`,
		want:   wants(429, "rate_limit_exceeded", "Your allowance is spent", "*", "allowance-as-500;from=500"),
		reason: "quota_exhausted", plugin: "bay-status", rule: "allowance", restatedTo: 429,
	},
}

// quay are decisions about the guest that is written with the PDK of Extism for Go.
var quay = []decision{
	{
		name: "a spent window as 500", status: 500,
		body:   `{"error":{"message":"no"},"windows":[{"name":"5h","left":0,"resets_in_s":60},{"name":"7d","left":0,"resets_in_s":7200},{"name":"30d","left":4,"resets_in_s":90000}]}`,
		want:   wants(429, "rate_limit_exceeded", "no", "7200", "restate;from=500"),
		reason: "quota_exhausted", plugin: "quay-status", rule: "classify", restatedTo: 429,
	},
	{
		name: "busy", status: 503, body: `{"error":{"message":"wait"},"busy":true}`,
		want:   wants(503, "server_is_overloaded", "wait", "", ""),
		reason: "overloaded", plugin: "quay-status", rule: "classify",
	},
	{
		name: "anything else", status: 503, body: `{"error":{"message":"no idea"}}`,
		want:   wants(503, "server_is_overloaded", "no idea", "", ""),
		reason: "overloaded",
	},
	{
		name: "its rule", status: 403, body: `{"error":{"message":"This account is frozen"}}`,
		want:   wants(403, "", "This account is frozen", "", ""),
		reason: "quota_exhausted", plugin: "quay-status", rule: "frozen",
	},
}

// decides loads a module from a plugin folder and lets it decide errors of requests, each about an account of its own
// (ABI-4, ABI-7, ABI-13).
func (g guest) decides(t *testing.T, wasm []byte) {
	gw := serve(t, wasm, g.provider, len(g.decisions))
	for i, d := range g.decisions {
		t.Run(d.name, func(t *testing.T) {
			got := gw.ask(fmt.Sprintf("%s-%d", g.provider, i), d.status, d.body)
			if strings.HasPrefix(got.Error.Message, d.want.Error.Message) {
				got.Error.Message = d.want.Error.Message
			}
			if d.want.after == "*" && got.after != "" {
				got.after = "*"
			}
			if got != d.want {
				t.Errorf("the client got %+v\nwant %+v", got, d.want)
			}
			var want health
			want.LastErrorType, want.Cause.Plugin, want.Cause.Rule = d.reason, d.plugin, d.rule
			want.Cause.Status, want.Cause.OriginalStatus = d.status, d.status
			if d.restatedTo != 0 {
				want.Cause.Status = d.restatedTo
			}
			if got := gw.health(fmt.Sprintf("account-%d", i)); got != want {
				t.Errorf("the account says %+v\nwant %+v", got, want)
			}
		})
	}
	var p plugin
	gw.get("/api/plugins/"+g.plugin, &p)
	if p.State != "active" || p.Origin != "folder" || p.Loader != g.loader || p.Fault != nil || p.Rules == 0 || len(p.Manifest.Examples) < 4 ||
		p.Counters.Calls == 0 || p.Counters.NoOpinion == 0 || len(p.Counters.Violations) > 0 {
		t.Errorf("%+v", p)
	}
}

// refused shows that the examples are run at load: with one of which the outcome is another, the module is refused (ABI-7).
func (g guest) refused(t *testing.T, wasm []byte) {
	written := func(s string) []byte {
		if g.wide {
			s = strings.Join(strings.Split(s, ""), "\x00")
		}
		return []byte(s)
	}
	wrong := bytes.Replace(wasm, written(g.expects), written(g.expects[:len(g.expects)-1]+"9"), 1)
	if bytes.Equal(wrong, wasm) {
		t.Fatalf("no example expects %s", g.expects)
	}
	var list struct{ Plugins []plugin }
	serve(t, wrong, g.provider, 1).get("/api/plugins", &list)
	seen := 0
	for _, p := range list.Plugins {
		if p.Origin != "folder" {
			continue
		}
		seen++
		if p.State != "rejected" || p.Fault == nil || p.Fault.Step != "examples" {
			t.Errorf("%+v", p)
		}
	}
	if seen != 1 {
		t.Errorf("%d plugins of the folder are listed", seen)
	}
}
