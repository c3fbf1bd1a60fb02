package rules_test

import (
	"testing"
	"time"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

var (
	now  = time.Date(2026, 8, 20, 12, 0, 0, 0, time.UTC)
	full = wire.Needs{ErrorText: "full", Headers: []string{"retry-after", "x-*"}}
)

func parse(t testing.TB, o rules.Options, raw string) *rules.Table {
	t.Helper()
	if o.Needs.ErrorText == "" {
		o.Needs = full
	}
	table, problems := rules.Parse([]byte(raw), o)
	for _, p := range problems {
		t.Error(p)
	}
	if t.Failed() {
		t.FailNow()
	}
	return table
}

// one compiles the table of a single built-in plugin.
func one(t testing.TB, raw string) *rules.Set {
	t.Helper()
	return rules.Compile(rules.Source{Plugin: "p", Digest: "d", Table: parse(t, rules.Options{Builtin: true}, raw)})
}

// answer is an upstream's failed answer, read.
func answer(provider string, status int, body string, header ...string) *rules.Reply {
	r := &rules.Reply{Provider: provider, Model: "m", Endpoint: "/v1/chat/completions", Auth: wire.AuthAPIKey,
		Source: wire.SourceHTTP, Status: status, Original: status, Body: []byte(body), Now: now, Header: map[string][]string{}}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header[header[i]] = append(r.Header[header[i]], header[i+1])
	}
	rules.Read(r)
	return r
}

// restate runs both stages as the dispatcher does, up to the corrected status.
func restate(m *rules.Match, r *rules.Reply, n int) (wire.Restatement, bool) {
	re, _, ok := m.Restate(0, n)
	if ok && !re.Keep {
		r.Status, r.Restated = re.Status, re.Rule
	}
	return re, ok
}

func classify(m *rules.Match, n int) (wire.Verdict, bool) {
	for _, p := range []rules.Phase{rules.Guard, rules.Normal, rules.Late} {
		if v, _, ok := m.Classify(p, 0, n); ok {
			return v, true
		}
	}
	return wire.Verdict{}, false
}
