package devkit

import (
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// Answer is one recorded answer of an upstream, a line of the corpus; or, when Hint is set, one way of saying when to retry.
type Answer struct {
	ID       string            `json:"id"`
	Provider string            `json:"provider"`
	Auth     wire.Auth         `json:"auth"`
	Model    string            `json:"model"`
	Endpoint string            `json:"endpoint"` // chat completions when it is absent
	Status   *int              `json:"status"`
	Headers  map[string]string `json:"headers"`
	Body     string            `json:"body"`
	Stream   bool              `json:"stream_error"`
	Now      time.Time         `json:"now"` // of its arrival; the present when it is absent
	Expect   map[string]any    `json:"expect"`
	Hint     bool              `json:"-"` // the line has expect_ms: its times are read, and nothing else
	Wait     *int64            `json:"expect_ms"`
}

// Answers reads recorded answers as JSON Lines. With expect each line must say what is expected of it. The error is that of r.
func Answers(name string, r io.Reader, expect bool) ([]Answer, []LineFault, error) {
	var all []Answer
	faults, err := lines(name, r, func(n int, b []byte) error {
		a, err := readAnswer(b, expect)
		if err != nil {
			return err
		}
		if a.ID == "" {
			a.ID = fmt.Sprintf("%s:%d", name, n)
		}
		all = append(all, a)
		return nil
	})
	return all, faults, err
}

func readAnswer(b []byte, expect bool) (Answer, error) {
	var a Answer
	if err := decode(b, &a); err != nil {
		return a, err
	}
	var has map[string]json.RawMessage
	if err := decode(b, &has); err != nil {
		return a, err
	}
	if _, a.Hint = has["expect_ms"]; a.Hint {
		return a, nil
	}
	switch {
	case a.Provider == "":
		return a, fmt.Errorf("provider is missing; name who answered")
	case a.Status == nil:
		return a, fmt.Errorf("status is missing; give the HTTP status as it came, 0 for no answer")
	case *a.Status != 0 && (*a.Status < 100 || *a.Status > 599):
		return a, fmt.Errorf("status is %d; it must be 0 or between 100 and 599", *a.Status)
	case a.Auth != "" && a.Auth != wire.AuthAPIKey && a.Auth != wire.AuthOAuth && a.Auth != wire.AuthLocal:
		return a, fmt.Errorf("auth is %q; it must be api_key, oauth or local", a.Auth)
	case expect && a.Expect == nil:
		return a, fmt.Errorf("expect is missing; add it, or leave out --expect")
	}
	for field := range a.Expect {
		if !known[field] {
			return a, fmt.Errorf("expect.%s is unknown; the fields are status, reason, scope, retryable_elsewhere, cooldown_ms, trips_breaker and terminal", field)
		}
	}
	return a, nil
}

// known are the fields of expect.
var known = map[string]bool{
	"status": true, "reason": true, "scope": true, "retryable_elsewhere": true, "cooldown_ms": true, "trips_breaker": true, "terminal": true,
}

// reply is the answer as the rules see it.
func (a *Answer) reply(now time.Time) *rules.Reply {
	r := &rules.Reply{
		Provider: a.Provider, Auth: a.Auth, Model: a.Model, Endpoint: a.Endpoint, Attempt: 1, Source: wire.SourceHTTP,
		Status: *a.Status, Original: *a.Status, Header: a.header(), Body: []byte(a.Body), BodyBytes: len(a.Body), Now: now,
	}
	if r.Endpoint == "" {
		r.Endpoint = "/v1/chat/completions"
	}
	r.Body = r.Body[:min(len(r.Body), rules.MaxText)]
	switch {
	case *a.Status == 0:
		r.Source = wire.SourceTransport
	case a.Stream:
		r.Source, r.Stream = wire.SourceStream, true
	}
	return r
}

func (a *Answer) header() map[string][]string {
	h := make(map[string][]string, len(a.Headers))
	for name, value := range a.Headers {
		h[name] = []string{value}
	}
	return h
}
