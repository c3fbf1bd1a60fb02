package packs_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// answer is one line of testdata/upstream-errors.jsonl.
type answer struct {
	ID       string            `json:"id"`
	Provider string            `json:"provider"`
	Auth     wire.Auth         `json:"auth"`
	Model    string            `json:"model"`
	Status   int               `json:"status"`
	Headers  map[string]string `json:"headers"`
	Body     string            `json:"body"`
	Stream   bool              `json:"stream_error"`
	Now      time.Time         `json:"now"`
	Expect   struct {
		Status   int         `json:"status"`
		Reason   wire.Reason `json:"reason"`
		Scope    wire.Scope  `json:"scope"`
		Fallback bool        `json:"retryable_elsewhere"`
		WaitMS   *int64      `json:"cooldown_ms"`
		Breaker  bool        `json:"trips_breaker"`
		Terminal bool        `json:"terminal"`
	} `json:"expect"`
}

func answers(t testing.TB, file string) []answer {
	t.Helper()
	f, err := os.Open("testdata/" + file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []answer
	sc := bufio.NewScanner(f)
	sc.Buffer(nil, 1<<20)
	for sc.Scan() {
		var a answer
		if err := json.Unmarshal(sc.Bytes(), &a); err != nil {
			t.Fatal(err)
		}
		if a.Now.IsZero() {
			a.Now = time.Date(2026, 5, 4, 20, 0, 0, 0, time.UTC)
		}
		all = append(all, a)
	}
	if err := sc.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

func (a answer) reply() *rules.Reply {
	r := &rules.Reply{Provider: a.Provider, Auth: a.Auth, Model: a.Model, Endpoint: "/v1/chat/completions", Attempt: 1,
		Source: wire.SourceHTTP, Status: a.Status, Original: a.Status, Header: map[string][]string{}, Body: []byte(a.Body), Now: a.Now}
	switch {
	case a.Status == 0:
		r.Source = wire.SourceTransport
	case a.Stream:
		r.Source = wire.SourceStream
	}
	for k, v := range a.Headers {
		r.Header[k] = []string{v}
	}
	return r
}

// judged is what the packs and the host's own reading make of an answer.
type judged struct {
	status int
	wire.Verdict
}

// judge runs the stages as dispatch does: restate, classify by phase, else by status. A 200 that no rule speaks of is a
// good answer; a stream that broke without saying why is a connection that failed (corpus README, rule 1).
func judge(set *rules.Set, r *rules.Reply) judged {
	rules.Read(r)
	m := set.Match(r)
	if re, _, ok := m.Restate(0, set.Len()); ok && !re.Keep {
		r.Status, r.Restated = re.Status, re.Rule
	}
	for _, phase := range []rules.Phase{rules.Guard, rules.Normal, rules.Late} {
		if v, _, ok := m.Classify(phase, 0, set.Len()); ok {
			return judged{rules.HostStatus(r), v}
		}
	}
	if r.Status == 200 && r.Source == wire.SourceHTTP {
		return judged{200, wire.Verdict{Reason: wire.NoReason, Scope: wire.ScopeNone}}
	}
	if r.Status == 200 {
		r.Source = wire.SourceTransport
	}
	return judged{rules.HostStatus(r), rules.ByStatus(r)}
}

// notYet are the lines whose verdict differs from the recorded one, with the fields that do; a field that comes to pass
// must leave the list.
var notYet = map[string]string{}

// CLS-2, and "Who wins": every recorded answer gets the recorded verdict.
func TestCorpus(t *testing.T) {
	set := compile(load(t))
	right := map[string]int{}
	all := answers(t, "upstream-errors.jsonl")
	for _, a := range all {
		t.Run("CLS-2/"+a.ID, func(t *testing.T) {
			got := judge(set, a.reply())
			wrong := compare(a, got, right)
			if wrong != notYet[a.ID] {
				t.Errorf("differs in %q, known are %q\n got %d %s %s fallback=%v wait=%v breaker=%v terminal=%v by %s/%s\nwant %+v",
					wrong, notYet[a.ID], got.status, got.Reason, got.Scope, got.Fallback, got.RetryAfter, got.Breaker, got.Terminal, got.Plugin, got.Rule, a.Expect)
			}
		})
	}
	for _, field := range []string{"status", "reason", "scope", "fallback", "wait", "breaker", "terminal"} {
		t.Logf("%-8s %d of %d", field, right[field], len(all))
	}
}

func compare(a answer, got judged, right map[string]int) string {
	var wrong []string
	check := func(field string, same bool) {
		if same {
			right[field]++
		} else {
			wrong = append(wrong, field)
		}
	}
	want := "nothing"
	if a.Expect.WaitMS != nil {
		want = fmt.Sprint(*a.Expect.WaitMS)
	}
	wait := "nothing"
	if got.Hinted {
		wait = fmt.Sprint(got.RetryAfter.Milliseconds())
	}
	check("status", got.status == a.Expect.Status)
	check("reason", got.Reason == a.Expect.Reason)
	check("scope", got.Scope == a.Expect.Scope)
	check("fallback", got.Fallback == a.Expect.Fallback)
	check("wait", wait == want)
	check("breaker", got.Breaker == a.Expect.Breaker)
	check("terminal", got.Terminal == a.Expect.Terminal)
	return strings.Join(wrong, " ")
}
