package sdk_test

import "github.com/weirgate/weir/sdk"

// A plugin that knows two answers of a provider. In a plugin this stands in init, beside a main that does nothing.
func Example() {
	sdk.Register(sdk.Plugin{
		Name: "acme-status", Version: "1.0.0", Providers: []string{"acme"},
		Restate: sdk.Rules{
			{Status: sdk.S(403), TextContains: []string{"quota"}, To: 429, ToCode: "rate_limit_exceeded",
				RetryAfter: sdk.FromText(`try again in ([0-9.]+)s`, sdk.Seconds)},
		},
		Classify: sdk.Rules{
			{Code: []string{"insufficient_credits"}, Reason: sdk.CreditsExhausted, Scope: sdk.Connection, Fallback: true},
		},
		Examples: sdk.Examples{
			{Restate: sdk.Err(403, "quota reached, try again in 20s"), Want: sdk.Status(429).RetryAfter(20_000)},
			{Restate: sdk.Err(403, "forbidden"), Want: sdk.Keep},
		},
	})
	// Output:
}
