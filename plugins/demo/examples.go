package main

import (
	"github.com/weirgate/weir/sdk"
)

const misstated = `{"error":{"message":"用户额度不足","type":"new_api_error"}}`

func ask(model, connection string) *sdk.Input {
	return sdk.Req(provider, model).On(connection).
		Field("messages.-1.role", `"user"`).Field("messages.-1.content", `"hello world"`)
}

func examples() sdk.Examples {
	said := `[{"message":{"role":"assistant","content":"hello world"}}]`
	return sdk.Examples{
		{Name: "echo", Respond: ask("echo", "demo-a"), Want: sdk.Status(200).JSON("body",
			`{"object":"chat.completion","model":"echo","choices":`+said+`,"usage":{"prompt_tokens":3,"completion_tokens":3,"total_tokens":6}}`)},
		{Name: "the first call of flaky fails", Respond: ask("flaky", "demo-a"), Want: sdk.Status(503)},
		{Name: "the first call of limited does not", Respond: ask("limited", "demo-a"), Want: sdk.Status(200)},
		{Name: "misstating on demo-a", Respond: ask("misstating", "demo-a"), Want: sdk.Status(403).JSON("body", misstated)},
		{Name: "misstating on demo-b", Respond: ask("misstating", "demo-b"), Want: sdk.Status(200)},
		{Name: "another model", Respond: ask("other", "demo-a"), Want: sdk.Status(404)},
		{Name: "the misstated status", Restate: sdk.Err(403, misstated), Want: sdk.Status(429)},
		{Name: "another refusal", Restate: sdk.Err(403, `{"error":{"message":"forbidden"}}`), Want: sdk.Keep},
		{Name: "what it means", Classify: sdk.Err(429, misstated).Came(403), Want: sdk.Reason(sdk.QuotaExhausted).Scope(sdk.Connection)},
		{Name: "nothing of its own", Classify: sdk.Err(500, `{}`), Want: sdk.Keep},
	}
}
