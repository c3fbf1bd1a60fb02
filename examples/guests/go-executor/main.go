// Command go-executor is a guest that knows how to call one provider, and mends its streams: Acme repeats the whole text in
// each event, where a client of chat completions expects only what is new.
//
//	GOOS=wasip1 GOARCH=wasm go build -trimpath -buildmode=c-shared -ldflags='-s -w' -o acme-stream.wasm .
package main

import "github.com/weirgate/weir/sdk"

func main() {}

const provider = "acme-stream"

func init() {
	passthrough := true
	sdk.Register(sdk.Plugin{
		Name: provider, Version: "1.0.0", License: "MIT",
		Summary:   "Acme's chat endpoint, with streams that say only what is new",
		Providers: []string{provider},
		Entries: []sdk.ProviderEntry{{
			ID: provider, Name: "Acme", Auth: sdk.AuthAPIKey, BaseURL: "https://api.acme.example/v1",
			Dialects:          map[string]sdk.Dialect{"/v1/chat/completions": sdk.OpenAIChat},
			Models:            []sdk.ModelEntry{{ID: "large"}, {ID: "small"}},
			PassthroughModels: &passthrough,
		}},
		Plan:    plan,
		OnEvent: onEvent,
		Examples: sdk.Examples{
			{
				Name: "a stream", Plan: sdk.Req(provider, "large").Streaming(),
				Want: sdk.PlanURL("{{connection.base_url}}/chat").JSON("response", `{"events":"hook","stateful":true}`).JSON("hooks", `["on_event","on_end"]`),
			},
			{
				Name: "no stream", Plan: sdk.Req(provider, "large"),
				Want: sdk.PlanURL("{{connection.base_url}}/chat").JSON("response", "null").JSON("body", `[{"op":"set","path":"model","value":"large"},{"op":"delete"},{"op":"rename"},{"op":"clamp","min":0,"max":1}]`),
			},
			{Name: "an organisation", Plan: sdk.Req(provider, "small").Data("org", "o-1"), Want: sdk.PlanURL("{{connection.base_url}}/chat").JSON("headers", `{"x-acme-org":"{{connection.data.org}}"}`)},
			{Name: "another endpoint", Plan: sdk.Req(provider, "large").At("/v1/embeddings"), Want: sdk.Declined(sdk.Unsupported)},
		},
	})
}

// plan is asked once for each connection and model; the host caches the answer.
func plan(r *sdk.PlanRequest) *sdk.Plan {
	if r.Endpoint != "/v1/chat/completions" {
		return sdk.NoPlan(sdk.Unsupported, "Acme has chat completions only")
	}
	p := sdk.POST("{{connection.base_url}}/chat").
		Header("authorization", "Bearer {{secret.api_key}}").
		Dialect(sdk.OpenAIChat).
		Set("model", r.UpstreamModel).
		Delete("store").
		Rename("max_tokens", "max_completion_tokens").
		Clamp("temperature", 0, 1).
		ErrorText("fault.message").ErrorCode("fault.code").
		Usage("usage.prompt_tokens", "usage.completion_tokens").
		Timeouts(10_000, 60_000, 120_000)
	if r.Data("org") != "" {
		p.Header("x-acme-org", "{{connection.data.org}}")
	}
	if r.Stream {
		p.Set("stream_options.include_usage", true).HookStreams()
	}
	return p
}
