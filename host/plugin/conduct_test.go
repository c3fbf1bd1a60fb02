package plugin

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/plugin/quarantine"
	"github.com/weirgate/weir/sdk/wire"
)

// clock is a time that tests move, from any goroutine.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.ns.Store(1_790_000_000e9)
	return c
}

func (c *clock) now() time.Time       { return time.Unix(0, c.ns.Load()) }
func (c *clock) pass(d time.Duration) { c.ns.Add(int64(d)) }
func (c *clock) hasty() time.Time     { c.pass(10 * time.Millisecond); return c.now() } // ten milliseconds at each look
func firstOf(r *Runtime) Status       { return r.List()[0] }

// obeying is a guest that answers nothing, and traps while the first byte of its text is T.
func obeying() module {
	return module{manifest: hookManifest, call: append(append([]byte{}, whenFirst('T', 0x00)...), codeZero...)}
}

// whenFirst is code that runs for an input whose error text begins with c: it stands behind "text":" in the input, so the whole
// input is searched for it.
func whenFirst(c byte, code ...byte) []byte {
	// hookInput begins with {"provider":"acme","connection_id":"; the test puts c at the start of the connection's id.
	at := int64(3<<16 + len(`{"provider":"acme","connection_id":"`))
	return append(append(append(append(i32(at), 0x2d, 0, 0), i32(int64(c))...), 0x46, 0x04, 0x40), append(code, 0x0b)...)
}

func ask(t testing.TB, s *Set, connection string) {
	t.Helper()
	r := failed("acme", "m", 500, "x")
	r.Connection = connection
	if v, ok := judge(s, "acme").Classify(t.Context(), r); ok {
		t.Errorf("verdict %+v", v)
	}
}

// A plugin that breaks the rules five times in a minute is left alone for one, then tried (ABI-8, PLG-5, SCN-19).
func TestQuarantine(t *testing.T) {
	c := newClock()
	var events []string
	o := Options{Now: c.now, OnEvent: func(e Event) { events = append(events, e.Kind) }}
	r, s := setOf(t, o, guestFile(obeying()))
	events = nil
	state := func(want string) {
		t.Helper()
		if st := firstOf(r); st.State != want || (st.Quarantine != nil) != (want == StateQuarantined) {
			t.Fatalf("state %s, quarantine %+v, want %s", st.State, st.Quarantine, want)
		}
	}
	for range 4 {
		ask(t, s, "Trap")
	}
	state(StateDegraded)
	c.pass(61 * time.Second)
	state(StateActive)
	for range 5 {
		ask(t, s, "Trap")
	}
	state(StateQuarantined)
	if v := firstOf(r).Violation; v == nil || v.Kind != violationTrap || v.Cause != "unreachable" || v.Op != "classify" || v.At != c.now() {
		t.Errorf("the last violation is %+v", v)
	}
	before := firstOf(r).Counters
	for range 10 {
		ask(t, s, "ok")
	}
	if after := firstOf(r).Counters; after.Calls != before.Calls || after.Quarantined != 10 {
		t.Errorf("called while quarantined: %+v", after)
	}
	c.pass(60 * time.Second)
	ask(t, s, "Trap") // the trial fails: two minutes
	c.pass(119 * time.Second)
	state(StateQuarantined)
	ask(t, s, "ok")
	c.pass(time.Second)
	for range 2 {
		ask(t, s, "ok")
		state(StateQuarantined)
	}
	ask(t, s, "ok")
	state(StateActive)
	if want := []string{"plugin.quarantined", "plugin.quarantined", "plugin.restored"}; !cmp.Equal(events, want) {
		t.Errorf("events %v", events)
	}
}

func TestQuarantineByHand(t *testing.T) { // PLG-5
	c := newClock()
	r, s := setOf(t, Options{Now: c.now}, guestFile(obeying()))
	if r.Unquarantine("acme") {
		t.Error("lifted what is not there")
	}
	for range 5 {
		ask(t, s, "Trap")
	}
	if !r.Unquarantine("acme") || firstOf(r).State == StateQuarantined {
		t.Errorf("%+v", firstOf(r))
	}
	calls := firstOf(r).Counters.Calls
	ask(t, s, "ok")
	if firstOf(r).Counters.Calls != calls+1 {
		t.Error("not called after the quarantine was lifted")
	}
}

// A pack has no code, so that there is no quarantine of it: to lift it is refused, and the runtime goes on.
func TestQuarantineOfAPack(t *testing.T) { // PLG-5
	r, _ := setOf(t, Options{}, thirdParty(string(rule("acme", "1.0.0", "overloaded"))))
	if r.Unquarantine("acme") {
		t.Error("lifted what cannot be there")
	}
	if n := len(r.List()); n != 1 {
		t.Errorf("%d plugins", n)
	}
}

// The conduct belongs to the digest: loading the same bytes again lifts nothing, new bytes start clean (ABI-8).
func TestQuarantineOfADigest(t *testing.T) {
	c := newClock()
	r, s := setOf(t, Options{Now: c.now}, guestFile(obeying()))
	for range 5 {
		ask(t, s, "Trap")
	}
	replace := func(m module) {
		t.Helper()
		src := source{origin: OriginFolder, file: "guest.wasm", bytes: m.wasm()}
		v, f := r.loader().load(t.Context(), src)
		if f != nil {
			t.Fatal(f)
		}
		r.settle(r.slot(OriginFolder, "guest.wasm", 0), v.digest, v, nil, true)
	}
	replace(obeying())
	if st := firstOf(r); st.State != StateQuarantined {
		t.Errorf("the same digest is %s", st.State)
	}
	other := obeying()
	other.pages = 5
	replace(other)
	if st := firstOf(r); st.State != StateActive || st.Violation != nil {
		t.Errorf("a new digest is %s, %+v", st.State, st.Violation)
	}
	replace(obeying())
	if st := firstOf(r); st.State != StateQuarantined {
		t.Errorf("the old digest is %s when it comes back", st.State)
	}
	for i := range 3 * maxWards {
		other.pages = uint64(6 + i)
		replace(other)
	}
	if n := len(r.wards["acme"]); n > maxWards+1 {
		t.Errorf("%d digests are remembered", n)
	}
}

// While an executor is quarantined its target is skipped, its static plans stay in use, and a built-in executor of the provider
// takes over where there is one (ABI-8).
func TestQuarantinedExecutor(t *testing.T) {
	c := newClock()
	manifest := `{"name":"own","version":"1.0.0","kinds":["executor"],"hooks":["plan","on_request"],"permissions":{"providers":{"ids":["acme"],"reason":"x"}},` +
		`"matches":[{"providers":["acme"]}],"plans":[{"match":{"endpoints":["/v1/embeddings"]},"plan":{"url":"{{connection.base_url}}/e"}}]}`
	for _, on := range []string{FailOpen, FailClosed} {
		t.Run(on, func(t *testing.T) {
			o := Options{Now: c.now, Settings: map[string]Settings{"own": {Grants: Grants{Providers: []string{"acme"}}, OnViolation: on}}}
			_, s := setOf(t, o, builtin(acmeProvider), guestFile(module{manifest: manifest, call: codeTrap}))
			e, err := s.Executor(&catalog.Provider{ID: "acme", Plugin: "acme", Executor: "acme"})
			if err != nil || e.Name() != "own" {
				t.Fatalf("%v, %v", e.Name(), err)
			}
			closed := on == FailClosed
			for i := range 8 {
				_, err := e.Plan(t.Context(), wire.PlanQuery{Provider: "acme", Endpoint: "/v1/chat/completions"}, wire.AuthAPIKey)
				if !errors.Is(err, ErrUnavailable) || errors.Is(err, errQuarantined) != (i >= 5) {
					t.Errorf("call %d: %v", i, err)
				}
			}
			if _, err := e.Plan(t.Context(), wire.PlanQuery{Provider: "acme", Endpoint: "/v1/embeddings"}, wire.AuthAPIKey); err != nil {
				t.Error("a static plan is data:", err)
			}
			if edits, err := e.Request(t.Context(), wire.RequestFacts{}, nil); edits != nil || errors.Is(err, ErrUnavailable) != closed {
				t.Errorf("on_request: %+v, %v", edits, err)
			}
			if err := e.Ready(); (err != nil) != closed || closed && !errors.Is(err, ErrUnavailable) {
				t.Errorf("ready: %v", err)
			}
			if closed {
				if e.Fallback() != nil {
					t.Error("another one takes over for a plugin that is not to be gone without")
				}
				return
			}
			if f := e.Fallback(); f == nil || f.Name() != "acme" || f.Fallback() != nil {
				t.Fatalf("the built-in executor does not take over: %+v", f)
			}
			if p, err := e.Fallback().Plan(t.Context(), wire.PlanQuery{Provider: "acme", Endpoint: "/v1/chat/completions"}, wire.AuthAPIKey); err != nil || p.URL != "{{connection.base_url}}/chat" {
				t.Errorf("%+v, %v", p, err)
			}
		})
	}
}

// A judge that is not to be gone without rejects the target when it fails (ABI-8, on_violation).
func TestFailClosed(t *testing.T) {
	both := strings.NewReplacer(`["classifier"]`, `["classifier","restatement"]`, `["classify"]`, `["classify","restate"]`).Replace(hookManifest)
	last := builtin("name: last\nversion: 1.0.0\nkinds: [classifier, restatement]\nrules:\n- {id: r, status: [403], then: {reason: overloaded}}\n- {id: s, status: [403], then: {restate_status: 429}}\n")
	o := Options{Settings: map[string]Settings{"acme": {OnViolation: FailClosed}}}
	_, s := setOf(t, o, guestFile(module{manifest: both, call: codeTrap}), last)
	for range 8 { // also while it is quarantined
		r := failed("acme", "m", 403, `{"error":"no"}`)
		if x, ok := judge(s, "acme").Restate(t.Context(), r); !ok || !x.Rejected || !x.Keep || x.Plugin != "acme" {
			t.Fatalf("restatement %+v, %v", x, ok)
		}
		v, ok := judge(s, "acme").Classify(t.Context(), r)
		if want := wire.Rejection("acme", "classify", v.Digest); !ok || v != want || v.Breaker || v.Terminal || !v.Fallback || v.Scope != wire.ScopeRequest {
			t.Fatalf("verdict %+v, %v", v, ok)
		}
	}
	declines := guestFile(module{manifest: both, answer: `{"error":{"code":"unsupported","message":"no"}}`})
	_, s = setOf(t, o, declines, last)
	if v, _ := judge(s, "acme").Classify(t.Context(), failed("acme", "m", 403, `{"error":"no"}`)); v.Plugin != "last" {
		t.Errorf("ABI-1 one that declines on purpose fails nothing: %+v", v)
	}
}

// The wall clock is checked between host functions (ABI-8): the guest gets errors, comes back, and keeps its instance; its
// answer does not count.
func TestWallClock(t *testing.T) {
	c := newClock()
	// Asks the host 40 times, then answers a verdict. The clock moves by 10 ms at each look.
	calls := bytes.Repeat([]byte{0x10, 0, 0x1a}, 40)
	verdict := `{"reason":"overloaded"}`
	slow := module{manifest: hookManifest, imports: []string{"#weir.now_ms"}, answer: verdict,
		call: append(append([]byte{}, calls...), place(uint64(manifestAt+len(hookManifest)), uint64(len(verdict)))...)}
	for range lookEach * 10 {
		slow.call = append(append([]byte{}, bytes.Repeat([]byte{0x10, 0, 0x1a}, lookEach)...), slow.call...)
	}
	r, s := setOf(t, Options{Now: c.hasty}, guestFile(slow))
	g := s.byName["acme"].v.guest
	for range 2 {
		if v, ok := judge(s, "acme").Classify(t.Context(), failed("acme", "m", 403, "x")); ok {
			t.Errorf("ABI-8 the answer of a call that took too long counts: %+v", v)
		}
	}
	if n := r.counts["acme"].read(); n.Violations[violationDeadline] != 2 || len(n.Violations) != 1 {
		t.Errorf("%+v", n)
	}
	if g.pool.free() != 1 || g.pool.idle[0].calls != 3 { // configure and both calls
		t.Errorf("ABI-8 the instance is not kept: %d", g.pool.free())
	}
	if st := firstOf(r); st.State != StateActive {
		t.Errorf("no instance was lost, and the plugin is %s", st.State)
	}
	if w := weightOf(violationDeadline); w != 2 || weightOf(violationTrap) != 10 || quarantine.Limit != 50 {
		t.Errorf("weights %d", w)
	}
}

// Each operation has its own fuel (ABI-8), the manifest lowers it, and the operator moves it up to the maximum.
func TestFuel(t *testing.T) {
	events := strings.NewReplacer(`"kinds":["classifier"]`, `"kinds":["classifier","executor"]`, `["classify"]`, `["classify","plan","on_event"]`).Replace(hookManifest)
	lowered := strings.Replace(events, `"hooks"`, `"limits":{"fuel":{"classify":1000,"plan":5000}},"hooks"`, 1)
	for _, c := range []struct {
		name     string
		manifest string
		limits   Limits
		op       wire.Op
		want     string
	}{
		{"ABI-8 a hook", events, Limits{}, wire.OpClassify, "classify used up its fuel of 2000000"},
		{"ABI-8 a plan", events, Limits{}, wire.OpPlan, "plan used up its fuel of 20000000"},
		{"ABI-8 an event", events, Limits{}, wire.OpEvent, "on_event used up its fuel of 200000"},
		{"ABI-2 lowered by the manifest", lowered, Limits{}, wire.OpClassify, "classify used up its fuel of 1000"},
		{"ABI-8 raised by the operator", events, Limits{Fuel: map[string]int64{"on_event": 2_000_000}}, wire.OpEvent, "fuel of 2000000"},
		{"ABI-8 never above the maximum", events, Limits{Fuel: map[string]int64{"on_event": 9_000_000}}, wire.OpEvent, "fuel of 2000000"},
		{"ABI-2 the manifest lowers the operator's too", lowered, Limits{Fuel: map[string]int64{"plan": 9_000_000}}, wire.OpPlan, "fuel of 5000"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			o := Options{Settings: map[string]Settings{"acme": {Limits: c.limits}}, Log: slog.New(slog.NewTextHandler(&log, nil))}
			_, s := setOf(t, o, guestFile(module{manifest: c.manifest, call: codeSpin}))
			err := s.byName["acme"].v.guest.call(t.Context(), c.op, []byte("{}"), func([]byte) error { return nil })
			v, ok := errors.AsType[*violation](err)
			if !ok || v.kind != violationFuel || !strings.Contains(v.cause, c.want) {
				t.Errorf("%v", err)
			}
			if !strings.Contains(log.String(), c.want) {
				t.Errorf("the log does not say so: %s", &log)
			}
		})
	}
	t.Run("ABI-8 loading", func(t *testing.T) {
		for what, m := range map[string]module{
			"_initialize": {manifest: hookManifest, init: codeSpin[:5]}, "describe": {manifest: hookManifest, describe: codeSpin},
		} {
			if _, f := loadFile(t, Options{}, "a.wasm", m.wasm()); f == nil || !strings.Contains(f.Message, what+" used up its fuel of 20000000") {
				t.Errorf("%s: %v", what, f)
			}
		}
	})
}

func TestStderrOfATrap(t *testing.T) { // ABI-8: 4 KiB of it stand in the log and in List; DATA-1: no secret
	// fd_write(2, vectors, 1, result): the vector lies in the answer, which the manifest's text stands before.
	m := module{manifest: hookManifest, imports: []string{"$wasi_snapshot_preview1.fd_write"}}
	text := strings.Repeat("early ", 1000) + "s3cret-value, the last words"
	at := int64(manifestAt + len(hookManifest))
	vector := make([]byte, 8)
	for i, n := range []int64{at + 8, int64(len(text))} {
		for k := range 4 {
			vector[4*i+k] = byte(n >> (8 * k))
		}
	}
	m.answer = string(vector) + text
	m.call = append(append(append(append(append(i32(2), i32(at)...), i32(1)...), i32(answerAt)...), 0x10, 0, 0x1a), codeTrap...)
	var log bytes.Buffer
	redact := func(s string) string { return strings.ReplaceAll(s, "s3cret-value", "[redacted]") }
	r, s := setOf(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Ports: Ports{Redact: redact}}, guestFile(m))
	ask(t, s, "c")
	v := firstOf(r).Violation
	if v == nil || !strings.HasSuffix(v.Stderr, "[redacted], the last words") || strings.Contains(log.String(), "s3cret") || len(v.Stderr) > 4096 || len(v.Stderr) < 4000 {
		t.Fatalf("%+v", v)
	}
	if !strings.Contains(log.String(), "the last words") || !strings.Contains(log.String(), "cause=unreachable") {
		t.Errorf("%.300s", &log)
	}
}

// Waiting for an instance is no violation (ABI-7): the call goes without, and is counted.
func TestBusyIsNoViolation(t *testing.T) {
	o := &observed{}
	r, s := setOf(t, Options{Observer: o}, guestFile(module{manifest: hookManifest}))
	g := s.byName["acme"].v.guest
	g.pool.init(1)
	held, err := g.begin(t.Context(), wire.OpClassify, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	for range 6 {
		ask(t, s, "c")
	}
	held.end(nil, resultOK)
	if c := r.counts["acme"].read(); c.Busy != 6 || len(c.Violations) != 0 || firstOf(r).State != StateActive {
		t.Errorf("%+v, %s", c, firstOf(r).State)
	}
	ask(t, s, "c")
	if o.busy.Load() != 6 || o.results.Load() != 2 {
		t.Errorf("observed %d busy calls, %d results", o.busy.Load(), o.results.Load())
	}
}

type observed struct{ busy, results atomic.Int64 }

func (o *observed) PluginCall(name, op, result string, took time.Duration) {
	if name == "acme" && op == "classify" && (result == resultOK || result == resultNoOpinion) && took >= 0 {
		o.results.Add(1)
	}
}
func (o *observed) PluginBusy(string) { o.busy.Add(1) }

// What an instance was lost to is replaced in the background, so that the next call does not wait (ABI-7 step 7).
func TestLostInstancesAreReplaced(t *testing.T) {
	_, s := setOf(t, Options{}, guestFile(obeying()))
	g := s.byName["acme"].v.guest
	ask(t, s, "ok")
	lost := g.pool.idle[0]
	ask(t, s, "Trap")
	eventually(t, "a spare instance", func() bool { return g.pool.free() == 1 })
	g.pool.mu.Lock()
	defer g.pool.mu.Unlock()
	if !lost.mod.IsClosed() || g.pool.idle[0] == lost || g.pool.idle[0].calls != 1 { // configure
		t.Errorf("the spare one was called %d times", g.pool.idle[0].calls)
	}
}

// An instance that cannot be made is a violation too, of the operation that it broke in (ABI-8).
func TestInstancesThatCannotBeMade(t *testing.T) {
	at := int64(3<<16 + len(`{"config":{`))
	// configure is fine at the load, where the input buffer is not yet used, and traps for a config with a member.
	m := module{manifest: hookManifest, configure: append(append(append(append(i32(at), 0x2d, 0, 0), i32('"')...), 0x46, 0x04, 0x40, 0x00, 0x0b), 0x42, 0)}
	_, s := setOf(t, Options{}, guestFile(m))
	g := s.byName["acme"].v.guest
	g.settings = []byte(`{"config":{"a":1}}`)
	for range 2 {
		ask(t, s, "c")
	}
	_, _, last := g.ward.see(time.Now())
	if c := g.counters.read(); last == nil || last.Op != "configure" || last.Kind != violationTrap || c.Violations[violationTrap] != 2 || g.pool.count() != 0 {
		t.Errorf("%+v, %+v, %d instances", last, c, g.pool.count())
	}
}
