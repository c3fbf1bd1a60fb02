package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

// OBJ-23: every kind of event about a provider or an account is a sentence: which answer, by which rule, moved what, until when.
func TestStory(t *testing.T) {
	const cause = `"cause":{"status":429,"originalStatus":403,"plugin":"generic","rule":"quota","source":"header:retry-after","requestId":"r-1"}`
	local := func(text string) string { // @hh:mm:ss stands for that time of the day in UTC, as this machine shows it
		for {
			i := strings.Index(text, "@")
			if i < 0 {
				return text
			}
			at, err := time.Parse("15:04:05", text[i+1:i+9])
			if err != nil {
				t.Fatal(err)
			}
			day := time.Date(2026, 7, 1, at.Hour(), at.Minute(), at.Second(), 0, time.UTC)
			text = text[:i] + day.Local().Format("2006-01-02 15:04:05") + text[i+9:]
		}
	}
	for _, c := range []struct{ kind, data, want string }{
		{"breaker.changed", `{"state":"OPEN","failureCount":12,"until":"2026-07-01T12:00:30.000Z","transitionHistory":[{"from":"DEGRADED","to":"OPEN","reason":"elevated-failures"}],` + cause + `}`,
			"the breaker of openai opened after 12 failures, the last a 429 (sent as 403) by the rule generic/quota, in request r-1; it lets a probe through at @12:00:30"},
		{"breaker.changed", `{"state":"OPEN","failureCount":1,"transitionHistory":[{"from":"CLOSED","to":"OPEN","reason":"kind:transient"}],"cause":{}}`,
			"the breaker of openai opened after 1 failure, the last without an answer"},
		{"breaker.changed", `{"state":"OPEN","until":"2026-07-01T12:01:00.000Z","transitionHistory":[{"from":"HALF_OPEN","to":"OPEN","reason":"probe-failed"}]}`,
			"the breaker of openai opened again, for its probe failed; it lets a probe through at @12:01:00"},
		{"breaker.changed", `{"failureCount":7,"transitionHistory":[{"from":"CLOSED","to":"DEGRADED","reason":"elevated-failures"}]}`, "the breaker of openai is degraded after 7 failures"},
		{"breaker.changed", `{"transitionHistory":[{"from":"OPEN","to":"HALF_OPEN","reason":"timeout-elapsed"}]}`, "the breaker of openai lets one probe through"},
		{"breaker.changed", `{"transitionHistory":[{"from":"HALF_OPEN","to":"CLOSED","reason":"probe-success"}]}`, "the breaker of openai closed, for its probe was answered"},
		{"breaker.changed", `{"transitionHistory":[{"from":"DEGRADED","to":"CLOSED","reason":"recovery"}]}`, "the breaker of openai closed, for answers came again"},
		{"breaker.changed", `{"transitionHistory":[{"from":"DEGRADED","to":"CLOSED","reason":"quiet-window"}]}`, "the breaker of openai closed, for no failure came for a long while"},
		{"breaker.changed", `{"transitionHistory":[{"from":"DEGRADED","to":"CLOSED","reason":"connection-test"}]}`, "the breaker of openai closed, for the test of a connection passed"},
		{"breaker.changed", `{"transitionHistory":[{"from":"OPEN","to":"CLOSED","reason":"manual-reset"}]}`, "the breaker of openai closed, for a person reset it"},
		{"breaker.changed", `{"state":"CLOSED"}`, "the breaker of openai is closed"},
		{"breaker.counted", `{"failureCount":3,` + cause + `}`, "the breaker of openai counts 3 failures, the last a 429 (sent as 403) by the rule generic/quota, in request r-1"},
		{"lockout.set", `{"shape":"exact","until":"2026-07-01T12:10:00.000Z","reason":"server_error",` + cause + `}`,
			"the model gpt-5 on a is locked out until @12:10:00, for server_error: an answer with status 429 (sent as 403) that said so in its header retry-after, by the rule generic/quota, in request r-2"},
		{"lockout.set", `{"shape":"family","until":"2026-07-01T12:10:00.000Z"}`, "the quota of gpt-5 on a is locked out until @12:10:00"},
		{"lockout.decayed", `{"failureCount":2}`, "the model gpt-5 on a answered; its count of failures is 2 now"},
		{"lockout.cleared", `{}`, "the model gpt-5 on a is enabled again"},
		{"connection.cooldown", `{"rateLimitedUntil":"2026-07-01T13:00:00.000Z","nextProbeAt":"2026-07-01T12:01:00.000Z","lastErrorType":"rate_limit_exceeded"}`,
			"a (gpt-5) cools down until @13:00:00 (probed from @12:01:00), for rate_limit_exceeded"},
		{"connection.probe", `{"rateLimitedUntil":"2026-07-01T13:00:00.000Z","nextProbeAt":"2026-07-01T12:03:00.000Z"}`,
			"a (gpt-5) failed its probe and cools down until @13:00:00 (probed from @12:03:00)"},
		{"connection.terminal", `{"testStatus":"credits_exhausted","recheckAt":"2026-07-01T13:00:00.000Z"}`,
			"a (gpt-5) is credits_exhausted until a person or new credentials help, and is tested again at @13:00:00"},
		{"connection.terminal", `{"testStatus":"banned"}`, "a (gpt-5) is banned until a person or new credentials help"},
		{"connection.cleared", `{}`, "a (gpt-5) is healthy again"},
		{"rejected.counted", `{"reason":"request_rejected"}`, "a (gpt-5) refused a request, for request_rejected"},
	} {
		e := event{At: "2026-07-01T12:00:00.000Z", Kind: c.kind, Provider: "openai"}
		if !strings.HasPrefix(c.kind, "breaker") {
			e.ConnectionID, e.Model = "a", "gpt-5"
		}
		if strings.HasPrefix(c.kind, "lockout.set") {
			e.RequestID = "r-2"
		}
		if err := json.Unmarshal([]byte(c.data), &e.Data); err != nil {
			t.Fatal(err)
		}
		if want := local("@12:00:00  " + c.want); e.sentence() != want {
			t.Errorf("%s\n got %s\nwant %s", c.kind, e.sentence(), want)
		}
	}
}
