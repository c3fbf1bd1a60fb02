package dispatch_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

// thinking answers a request of responses with reasoning that only the account can read.
func thinking(id, state string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body := thoughtOf(id, state)
		if !strings.Contains(readAll(r), `"stream":true`) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, body)
			return
		}
		streams(
			"event: response.created\ndata: "+`{"type":"response.created","response":{"id":"`+id+`"}}`,
			"event: response.output_item.done\ndata: "+`{"type":"response.output_item.done","output_index":0,"item":`+gjson.Get(body, "output.0").Raw+`}`,
			"event: response.output_text.delta\ndata: "+`{"type":"response.output_text.delta","output_index":1,"delta":"hello"}`,
			"event: response.completed\ndata: "+`{"type":"response.completed","response":`+body+`}`,
		)(w, r)
	}
}

func thoughtOf(id, state string) string {
	return `{"id":"` + id + `","object":"response","status":"completed","output":[{"type":"reasoning","id":"rs","summary":[],"encrypted_content":"` + state +
		`"},{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hello"}]}]}`
}

// thinkers is a bench of two accounts that speak responses; each answers with state of its own.
func thinkers(t *testing.T) *bench {
	return newBench(t).speaks(wire.OpenAIResponses, "/v1/responses", "/responses").
		with("a", thinking("resp_a", "state-of-a")).with("b", thinking("resp_b", "state-of-b"))
}

// turn is a request that carries items of earlier answers.
func (b *bench) turn(stream bool, items ...string) (*client, string, []string, string) {
	b.t.Helper()
	text := fmt.Sprintf(`{"model":"acme/large","stream":%v,"input":[%s]}`, stream, strings.Join(append(items, `{"role":"user","content":"go on"}`), ","))
	c, trail := b.ask(wire.OpenAIResponses, "/v1/responses", text, stream)
	sent := ""
	if len(b.bodies) > 0 {
		sent = b.bodies[len(b.bodies)-1]
	}
	b.bodies = nil
	explained := trail.Degraded + "; " + strings.Join(trail.Notes, "; ")
	if trail.Failure != nil {
		explained = fmt.Sprintf("%d %s %s %s", trail.Failure.Status, trail.Failure.Code, trail.Failure.RetryAfter.Round(time.Second), trail.Failure.Message)
	}
	return c, sent, b.seen(), explained
}

const (
	thoughtA   = `{"type":"reasoning","id":"rs","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"state-of-a"}`
	thoughtB   = `{"type":"reasoning","id":"rt","summary":[],"encrypted_content":"state-of-b"}`
	said       = `{"role":"assistant","content":[{"type":"output_text","text":"hello"}]}`
	compaction = `{"type":"compaction","encrypted_content":"state-of-a"}`
)

// askAlong sends items along a route, and returns what was noted.
func (b *bench) askAlong(rt *catalog.Route, items ...string) (*client, string) {
	b.t.Helper()
	text := `{"model":"acme/large","input":[` + strings.Join(append(items, `{"role":"user","content":"go on"}`), ",") + `]}`
	buf, err := body.Read(strings.NewReader(text), int64(len(text)), 1<<20)
	if err != nil {
		b.t.Fatal(err)
	}
	defer buf.Release()
	scan, err := buf.Scan()
	if err != nil {
		b.t.Fatal(err)
	}
	c := &client{}
	trail := b.d.Do(b.t.Context(), &dispatch.Call{RequestID: "req-1", Endpoint: "/v1/responses", Dialect: wire.OpenAIResponses, Catalog: b.snap,
		Route: rt, Model: "acme/large", Body: buf, Scan: scan, Header: http.Header{}}, c)
	return c, trail.Degraded
}

// document is answer with whole documents as they stand in the script.
func (l *lab) document(ctx context.Context, f wire.RequestFacts) (*wire.Answer, error) {
	a, err := l.answer(ctx, f)
	var text string
	if err == nil && json.Unmarshal(a.Body, &text) == nil {
		a.Body = wire.Raw(text)
	}
	return a, err
}

// prefer turns the order of the accounts around.
func (b *bench) prefer(id string) {
	slices.SortStableFunc(b.prov.Connections, func(x, y *catalog.Connection) int {
		return strings.Compare(fmt.Sprint(x.ID != id), fmt.Sprint(y.ID != id))
	})
}

// SCN-16, TR-18: a turn that carries an account's encrypted state goes to that account, whoever would come first, byte for byte; when
// that one cools another account answers without the state, and the answer says so.
func TestStateGoesHome(t *testing.T) {
	for _, stream := range []bool{false, true} {
		t.Run(fmt.Sprintf("SCN-16 stream=%v", stream), func(t *testing.T) {
			b := thinkers(t)
			if c, _, hits, _ := b.turn(stream); c.status != 200 || !slices.Equal(hits, []string{"a"}) {
				t.Fatalf("first turn: %d %v", c.status, hits)
			}
			b.prefer("b")
			c, sent, hits, explained := b.turn(stream, thoughtA, said)
			if c.status != 200 || !slices.Equal(hits, []string{"a"}) || !strings.Contains(sent, `"input":[`+thoughtA+`,`+said+`,`) || strings.HasPrefix(explained, "encrypted") {
				t.Errorf("healthy: %d %v %s %s", c.status, hits, sent, explained)
			}
			if _, _, hits, _ = b.turn(stream); !slices.Equal(hits, []string{"b"}) {
				t.Errorf("a turn without state: %v", hits)
			}
			b.by["a"] = fails(429, `{"error":{"message":"slow down"}}`, "Retry-After", "60")
			c, sent, hits, _ = b.turn(stream, thoughtA, said, thoughtB) // the latest is b's
			if c.status != 200 || !slices.Equal(hits, []string{"b"}) || strings.Contains(sent, "state-of-a") || !strings.Contains(sent, thoughtB) || !strings.Contains(sent, said) {
				t.Errorf("mixed: %d %v %s", c.status, hits, sent)
			}
			for _, want := range [][]string{{"a", "b"}, {"b"}} { // as it fails, and while it cools
				c, sent, hits, explained = b.turn(stream, thoughtA, said)
				if c.status != 200 || !slices.Equal(hits, want) || strings.Contains(sent, "state-of-a") || strings.Contains(sent, "hm") || !strings.Contains(sent, said) {
					t.Errorf("cooling: %d %v %s", c.status, hits, sent)
				}
				if !strings.HasPrefix(explained, "encrypted_state; ") || !strings.Contains(explained, "1 reasoning items dropped: another account issued them") {
					t.Errorf("explained: %s", explained)
				}
			}
		})
	}
}

// SCN-16: with encryptedState: refuse no other account is asked: the client hears why, and when to come again.
func TestStateIsRefused(t *testing.T) {
	b := thinkers(t)
	b.turn(false)
	b.snap.Settings.RouteDefaults.EncryptedState = "refuse"
	b.by["a"] = fails(429, `{"error":{"message":"slow down"}}`, "Retry-After", "60")
	if _, _, hits, explained := b.turn(false, thoughtA, said); !slices.Equal(hits, []string{"a"}) || !strings.HasPrefix(explained, "429 ") {
		t.Errorf("as it fails: %v %s", hits, explained)
	}
	c, _, hits, explained := b.turn(false, thoughtA, said)
	if c.status != 0 || len(hits) > 0 || !strings.HasPrefix(explained, "409 encrypted_state_elsewhere 1m0s The encrypted state in this request can only be read by the account that issued it") {
		t.Errorf("cooling: %v %s", hits, explained)
	}
	if c, _, hits, _ = b.turn(false, said); c.status != 200 || !slices.Equal(hits, []string{"b"}) {
		t.Errorf("without state: %d %v", c.status, hits)
	}
	b.prov.Connections = b.prov.Connections[1:] // its account is gone for good
	if _, _, hits, explained = b.turn(false, thoughtA, said); len(hits) > 0 || !strings.HasPrefix(explained, "409 encrypted_state_elsewhere 0s ") {
		t.Errorf("gone: %v %s", hits, explained)
	}
	rt := b.direct()
	rt.Config.EncryptedState = "strip" // a combo's own word beats the default
	if c, _ := b.askAlong(rt, thoughtA); c.status != 200 {
		t.Errorf("a route that strips: %d", c.status)
	}
}

// SCN-16: with encryptedState: refuse a short cooldown of the issuer is waited for, although another account is free.
func TestStateWaits(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.plan.Dialect = wire.OpenAIResponses
		l.clock = time.Time{}
		l.snap.Settings.RouteDefaults.EncryptedState = "refuse"
		l.snap.Settings.WaitForCooldown = settings.WaitForCooldown{Enabled: true, MaxRetries: 3, MaxRetryWait: 10 * time.Second, Budget: 20 * time.Second}
		good := reply{status: 200, text: thoughtOf("resp_a", "state-of-a")}
		l.by = map[string]http.HandlerFunc{}
		l.with("a", nil).with("b", nil)
		l.script["a"] = []reply{good, says(429, "slow down", 3), good}
		l.script["b"] = []reply{good}
		l.guest.respond = l.document
		first, _ := l.ask(wire.OpenAIResponses, "/v1/responses", `{"model":"acme/large","input":"hi"}`, false)
		c, trail := l.ask(wire.OpenAIResponses, "/v1/responses", `{"model":"acme/large","input":[`+thoughtA+`]}`, false)
		if first.status != 200 || c.status != 200 || !slices.Equal(l.asked, []string{"a@0", "a@0", "a@3.05"}) {
			t.Errorf("%d %v %+v", c.status, l.asked, trail.Failure)
		}
	})
}

// SCN-16, COOL-70: nobody waits for an account that is not to be asked.
func TestStateWaitsForNobodyElse(t *testing.T) {
	inLab(t, func(t *testing.T, l *lab) {
		l.plan.Dialect = wire.OpenAIResponses
		l.clock = time.Time{}
		l.snap.Settings.RouteDefaults.EncryptedState = "refuse"
		l.by = map[string]http.HandlerFunc{}
		l.with("a", nil).with("b", nil)
		good := reply{status: 200, text: thoughtOf("resp_a", "state-of-a")}
		l.script["a"], l.script["b"] = []reply{good, says(429, "slow down", 600)}, []reply{says(429, "slow down", 3)}
		l.guest.respond = l.document
		ask := func(input string) *dispatch.Trail {
			_, trail := l.ask(wire.OpenAIResponses, "/v1/responses", `{"model":"acme/large","input":[`+input+`]}`, false)
			return trail
		}
		ask(said)
		ask(said) // both cool now, b only for a moment
		l.snap.Settings.WaitForCooldown = settings.WaitForCooldown{Enabled: true, MaxRetries: 3, MaxRetryWait: 10 * time.Second, Budget: 20 * time.Second}
		trail := ask(thoughtA)
		if f := trail.Failure; f == nil || f.Code != "encrypted_state_elsewhere" || f.RetryAfter != 10*time.Minute || trail.Waited != 0 || len(l.asked) != 3 {
			t.Errorf("%v waited %s: %+v", l.asked, trail.Waited, f)
		}
	})
}

// SCN-16: state that is more than reasoning cannot be left out, so nobody but its issuer is asked, whatever the route says.
func TestStateThatCannotBeStripped(t *testing.T) {
	b := thinkers(t)
	b.turn(false)
	if c, sent, hits, _ := b.turn(false, compaction); c.status != 200 || !slices.Equal(hits, []string{"a"}) || !strings.Contains(sent, compaction) {
		t.Errorf("%v %s", hits, sent)
	}
	b.prov.Connections = b.prov.Connections[1:]
	if _, _, hits, explained := b.turn(false, compaction); len(hits) > 0 || !strings.HasPrefix(explained, "409 encrypted_state_elsewhere") || strings.Contains(explained, "encryptedState") {
		t.Errorf("%v %s", hits, explained)
	}
}

// SCN-16: state whose issuer nobody knows passes as before, and an answer that a request goes on with leads to its account.
func TestStateOfUnknownOrigin(t *testing.T) {
	b := thinkers(t)
	if c, sent, hits, explained := b.turn(false, thoughtA); c.status != 200 || !slices.Equal(hits, []string{"a"}) || !strings.Contains(sent, thoughtA) || explained != "; " {
		t.Errorf("%v %s %s", hits, sent, explained)
	}
	b.later(25 * time.Hour)
	b.prefer("b")
	if _, sent, hits, _ := b.turn(false, thoughtA); !slices.Equal(hits, []string{"b"}) || !strings.Contains(sent, thoughtA) {
		t.Errorf("after a day: %v %s", hits, sent)
	}
	b.prefer("a")
	b.turn(true)
	b.prefer("b")
	for id, want := range map[string]string{"resp_a": "a", "resp_b": "b", "resp_x": "b"} {
		c, _ := b.ask(wire.OpenAIResponses, "/v1/responses", `{"model":"acme/large","input":"go on","previous_response_id":"`+id+`"}`, false)
		if hits := b.seen(); c.status != 200 || !slices.Equal(hits, []string{want}) {
			t.Errorf("%s: %v", id, hits)
		}
	}
	b.key = &catalog.Key{ID: "somebody else"}
	b.ask(wire.OpenAIResponses, "/v1/responses", `{"model":"acme/large","input":"go on","previous_response_id":"resp_a"}`, false)
	if hits := b.seen(); !slices.Equal(hits, []string{"b"}) {
		t.Errorf("another client's answer: %v", hits)
	}
}

// SCN-16: the issuer's target comes first in a combo, whatever its strategy, and state at the end of a long answer is found.
func TestStateLeadsACombo(t *testing.T) {
	b := thinkers(t)
	long := strings.Repeat("x", 63<<10)
	b.by["b"] = func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"id":"resp_b","object":"response","status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"`+long+
			`"}]},{"type":"reasoning","encrypted_content":"`+long+`"},{"type":"reasoning","encrypted_content":"state-of-b"}]}`)
	}
	only := func(id string) catalog.RouteTarget {
		i := slices.IndexFunc(b.prov.Connections, func(c *catalog.Connection) bool { return c.ID == id })
		return catalog.RouteTarget{Key: "acme/" + id, Provider: b.prov, Model: "m", Connection: b.prov.Connections[i], Weight: 1}
	}
	b.askAlong(&catalog.Route{Kind: catalog.KindDirect, Name: "acme/m", Targets: []catalog.RouteTarget{only("b")}})
	b.seen()
	combo := &catalog.Route{Kind: catalog.KindCombo, Name: "best", Strategy: catalog.Priority, Targets: []catalog.RouteTarget{only("a"), only("b")}}
	for _, thought := range []string{thoughtB, `{"type":"reasoning","encrypted_content":"` + long + `"}`} {
		if c, trail := b.askAlong(combo, thought); c.status != 200 || trail != "" || !slices.Equal(b.seen(), []string{"b"}) {
			t.Errorf("%d %s", c.status, trail)
		}
	}
}

// TR-18, SCN-16: state that went to a client of another dialect under a seal comes back to the account that issued it, and to no other.
func TestSealedStateGoesHome(t *testing.T) {
	b := thinkers(t)
	user := `{"role":"user","content":"hi"}`
	ask := func(turns string) (*client, string, []string) {
		c, _ := b.ask(wire.AnthropicMessages, "/v1/messages", `{"model":"acme/large","max_tokens":9000,"thinking":{"type":"enabled","budget_tokens":2000},"messages":[`+turns+`]}`, false)
		sent := b.bodies[len(b.bodies)-1]
		return c, sent, b.seen()
	}
	c, _, _ := ask(user)
	turns := user + `,{"role":"assistant","content":` + gjson.Get(c.body.String(), "content").Raw + `},` + user
	if strings.Contains(turns, "state-of-a") || !strings.Contains(turns, "signature") {
		t.Fatalf("%s", turns)
	}
	b.prefer("b")
	if _, sent, hits := ask(turns); !slices.Equal(hits, []string{"a"}) || gjson.Get(sent, "input.1.encrypted_content").Str != "state-of-a" {
		t.Errorf("healthy: %v %s", hits, sent)
	}
	b.by["a"] = fails(500, `{"error":{"message":"down"}}`)
	if c, sent, hits := ask(turns); c.status != 200 || hits[len(hits)-1] != "b" || strings.Contains(sent, "state-of-a") || !strings.Contains(sent, "hello") {
		t.Errorf("failing: %v %s", hits, sent)
	}
}
