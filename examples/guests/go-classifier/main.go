// Command go-classifier is a guest that says what the failures of one provider mean: a table for what words and codes tell,
// and one function for what they do not.
//
//	GOOS=wasip1 GOARCH=wasm go build -trimpath -buildmode=c-shared -ldflags='-s -w' -o acme-errors.wasm .
package main

import "github.com/weirgate/weir/sdk"

func main() {}

func init() {
	sdk.Register(sdk.Plugin{
		Name: "acme-errors", Version: "1.0.0", License: "MIT",
		Summary:   "Acme: credits, unknown models, and the weekly quota with its reset time",
		Providers: []string{"acme", "acme-*"},
		ErrorText: sdk.Full,
		Headers:   []string{"x-acme-load"},
		Classify: sdk.Rules{
			{ID: "credits", Code: []string{"insufficient_credits"}, Reason: sdk.CreditsExhausted, Scope: sdk.Connection, Fallback: true},
			{ID: "no-model", Status: sdk.S(404), TextMatches: []string{`model .* not found`}, Reason: sdk.ModelNotFound, Scope: sdk.Model, Fallback: true},
			{ID: "busy", Status: sdk.Range(500, 599), Header: sdk.Header("x-acme-load").Equals("full"), Reason: sdk.Overloaded, CooldownMS: 15_000},
			{ID: "rate", Status: sdk.S(429), TextContains: []string{"slow down"}, Reason: sdk.RateLimitExceeded, RetryAfter: sdk.FromText(`try again in ([0-9.]+)s`, sdk.Seconds)},
		},
		OnClassify: weekly,
		Examples: sdk.Examples{
			{Name: "credits", Classify: sdk.Err(402, `{"error":{"code":"insufficient_credits"}}`), Want: sdk.Reason(sdk.CreditsExhausted)},
			{Name: "no model", Classify: sdk.Err(404, `{"error":{"message":"model acme/tiny not found"}}`), Want: sdk.Reason(sdk.ModelNotFound).Scope(sdk.Model)},
			{Name: "busy", Classify: sdk.Err(503, `{}`).Header("x-acme-load", "full"), Want: sdk.Reason(sdk.Overloaded).JSON("cooldown_ms", "15000")},
			{Name: "not busy", Classify: sdk.Err(503, `{}`), Want: sdk.Keep},
			{Name: "rate", Classify: sdk.Err(429, "slow down, try again in 2.5s"), Want: sdk.Reason(sdk.RateLimitExceeded).RetryAfter(2500)},
			{
				Name: "weekly quota", Classify: sdk.Err(429, `{"quota":{"weekly":{"used":100,"limit":100,"reset_epoch":1790000060}}}`), NowMS: 1_790_000_000_000,
				Want: sdk.Reason(sdk.QuotaExhausted).Scope(sdk.Connection).RetryAfter(60_000),
			},
			{Name: "a quota that is not used up", Classify: sdk.Err(429, `{"quota":{"weekly":{"used":12,"limit":100,"reset_epoch":1790000060}}}`), Want: sdk.Keep},
			{Name: "no quota", Classify: sdk.Err(429, `{"error":"no"}`), Want: sdk.Keep},
		},
	})
}

// weekly is what the table cannot say: the quota is used up when two numbers are equal, and then it comes back at an epoch.
func weekly(e *sdk.Failure) *sdk.Verdict {
	if e.Status() != 429 {
		return nil
	}
	used, _ := e.JSON("quota.weekly.used").Int()
	limit, _ := e.JSON("quota.weekly.limit").Int()
	reset, ok := e.JSON("quota.weekly.reset_epoch").Int()
	if !ok || used < limit {
		return nil // no opinion
	}
	return &sdk.Verdict{Reason: sdk.QuotaExhausted, Scope: sdk.Connection, Fallback: true, ResetAtMS: reset * 1000}
}
