// Command demo is the plugin behind weir serve --demo (OBJ-26): a provider that answers by itself, and that misbehaves in
// four well-known ways, so that restatement, fallback and cooldown can be seen without any account.
package main

import (
	"github.com/weirgate/weir/sdk"
	"github.com/weirgate/weir/sdk/wire"
)

func main() {}

const (
	endpoint = "/v1/chat/completions"
	provider = "demo"
)

func init() {
	passthrough := false
	sdk.Register(sdk.Plugin{
		Name: "demo", Version: "0.1.0", License: "MIT",
		Summary:   "A provider that answers by itself, and misbehaves on request",
		Providers: []string{provider},
		Needs:     wire.Needs{ErrorText: "prefix", RequestFields: fields()},
		Entries: []wire.Provider{{
			ID: provider, Name: "Demo", Auth: wire.AuthLocal, Category: "apikey", // a few failures do not open its breaker
			Dialects:          map[string]wire.Dialect{endpoint: wire.OpenAIChat},
			Models:            models(),
			PassthroughModels: &passthrough,
		}},
		Plans: []wire.PlanRow{{
			Match: wire.Match{Providers: []string{provider}},
			Plan: wire.Plan{
				Upstream: "none", Dialect: wire.OpenAIChat,
				Error: &wire.PlanError{
					TextPaths: []string{"error.message"}, CodePaths: []string{"error.code"}, TypePaths: []string{"error.type"},
					InStream: &wire.PlanErrorInSt{Path: "error"},
				},
				Usage: &wire.PlanUsage{InputTokens: "usage.prompt_tokens", OutputTokens: "usage.completion_tokens"},
			},
		}},
		Permissions: wire.Permissions{KV: &wire.KVPermission{Bytes: 4096, Reason: "count the calls of flaky and limited"}},
		Respond:     respond,
		Restate: sdk.Rules{{
			ID: "demo-quota-misstatus", Evidence: "the same answer as a relay gives (RST-1)",
			Status: sdk.S(403), TextContains: []string{"用户额度不足"}, To: 429, ToCode: "rate_limit_exceeded",
		}},
		Classify: sdk.Rules{{
			ID: "demo-quota", Evidence: "the same answer as a relay gives (RUL-10)",
			TextContains: []string{"用户额度不足"}, Reason: sdk.QuotaExhausted, Scope: sdk.Connection,
		}},
		Examples: examples(),
	})
}

func models() []wire.Model {
	return []wire.Model{
		{ID: "echo", Name: "Says the last user text again"},
		{ID: "slow", Name: "As echo, but slowly"},
		{ID: "flaky", Name: "Every odd call fails with 503"},
		{ID: "limited", Name: "2 calls per connection in 10 seconds"},
		{ID: "misstating", Name: "demo-a answers a used-up quota as 403"},
	}
}
