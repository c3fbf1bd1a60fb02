// Command hooks is the guest of the host's own tests: each hook does what the member mode of the request, or an event, says.
package main

import "github.com/weirgate/weir/sdk"

func main() {}

func init() {
	passthrough := true
	sdk.Register(sdk.Plugin{
		Name: "hooks", Version: "1.0.0", Summary: "Hooks that behave, and that do not", Providers: []string{"hooks"},
		Headers: []string{"x-quota"}, RequestFields: []string{"mode", "usage.prompt_tokens"},
		Entries: []sdk.ProviderEntry{{
			ID: "hooks", Name: "Hooks", Auth: sdk.AuthAPIKey, BaseURL: "https://hooks.example/v1",
			Dialects: map[string]sdk.Dialect{"/v1/chat/completions": sdk.OpenAIChat}, PassthroughModels: &passthrough,
		}},
		Plan: plan, OnRequest: onRequest, OnResponse: onResponse, OnEvent: onEvent,
	})
}

func plan(r *sdk.PlanRequest) *sdk.Plan {
	p := sdk.POST("{{connection.base_url}}/chat").Header("authorization", "Bearer {{secret.api_key}}").Dialect(sdk.OpenAIChat)
	if r.Stream {
		return p.HookStreams()
	}
	return p.Set("tier", "plan").HookRequest().Buffer()
}

func onRequest(r *sdk.Request) *sdk.Edits {
	mode, _ := r.Field("mode").Text()
	switch mode {
	case "spin":
		for {
		}
	case "panic":
		panic("on purpose")
	case "host":
		return new(sdk.Edits).Header("host", "elsewhere.example").Set("tier", "hook")
	}
	return new(sdk.Edits).Header("x-tier", "hook").Set("tier", "hook").Delete("mode")
}

func onResponse(r *sdk.Response) *sdk.Edits {
	tokens, _ := r.Field("usage.prompt_tokens").Int()
	return new(sdk.Edits).Header("x-left", r.Header("x-quota")).Set("usage.prompt_tokens", tokens+1)
}

// seen counts the events of each stream.
var seen sdk.Streams[int]

func onEvent(e *sdk.Event) sdk.Action {
	n := seen.Of(e.Stream)
	*n++
	text, ok := e.JSON("say").Text()
	switch {
	case !ok:
		return sdk.Pass
	case text == "hush":
		return sdk.Drop
	case text == "stop":
		return sdk.EndStream(sdk.Internal, "stopped by the guest")
	case text == "panic":
		panic("on purpose")
	}
	var w sdk.Writer
	w.Object(func() {
		w.Key("choices").List(func() {
			w.Object(func() {
				w.Key("delta").Object(func() { w.Key("content").Text(text) })
			})
		})
		w.Key("n").Int(int64(*n))
	})
	return e.Replace(w.Bytes())
}
