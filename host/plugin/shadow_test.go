package plugin

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// call is one failed answer as the dispatcher has it judged. The release is that of the call's end.
func call(r *Runtime, reply *rules.Reply) (v wire.Verdict, release func()) {
	w := r.Watch(r.Acquire())
	j := w.Judge(&catalog.Provider{ID: reply.Provider})
	if re, ok := j.Restate(context.Background(), reply); ok {
		reply.Status, reply.Restated = re.Status, re.Rule
	}
	v, ok := j.Classify(context.Background(), reply)
	if !ok {
		v = rules.ByStatus(reply)
	}
	return v, w.Release
}

func tallyOf(r *Runtime, name string) Tally {
	d, _ := r.Detail(name)
	if d.Shadow == nil {
		return Tally{}
	}
	return *d.Shadow
}

// A shadow sees what the active plugins saw, after the answer was sent; what it says is compared and counted and changes nothing.
func TestShadow(t *testing.T) { // PLG-4
	t.Parallel()
	redact := func(s string) string { return strings.ReplaceAll(s, "sk-secret", "[redacted]") }
	r := started(t, Options{Ports: Ports{Redact: redact}})
	put(t, r, "acme", rule("acme", "1.0.0", "overloaded"), PutOptions{})
	if s := r.Acquire(); s.Shadowed() {
		t.Error("calls are watched without a shadow")
	} else {
		s.Release()
	}
	put(t, r, "acme", []byte(`name: acme
version: 2.0.0
kinds: [restatement, classifier]
matches: [{providers: [acme]}]
rules:
- {id: same, status: [403], text_contains: [same], then: {reason: overloaded}}
- {id: quota, status: [403], text_contains: [quota], then: {restate_status: 429}}
- {id: limited, status: [429], then: {reason: quota_exhausted, message: "of sk-secret"}}
- {id: r, status: [403], then: {reason: overloaded}}
`), PutOptions{Mode: ModeShadow})

	reply := failed("acme", "m", 403, `{"error":{"message":"quota of sk-secret reached"}}`)
	v, release := call(r, reply)
	if v.Reason != "overloaded" || reply.Status != 403 {
		t.Errorf("PLG-4: the shadow was applied: %+v, status %d", v, reply.Status)
	}
	if got := tallyOf(r, "acme"); got != (Tally{}) {
		t.Errorf("PLG-4: the shadow ran before the answer was sent: %+v", got)
	}
	copy(reply.Body, "the call's buffers are used by another one now") // what the shadow reads is its own
	release()
	eventually(t, "PLG-4 differed", func() bool { return tallyOf(r, "acme").Differed == 1 })
	_, release = call(r, failed("acme", "m", 403, "the same"))
	release()
	eventually(t, "PLG-4 agreed", func() bool { return tallyOf(r, "acme").Agreed == 1 })

	d := only(t, r, "acme")
	if len(d.Differences) != 1 {
		t.Fatalf("PLG-4: %+v", d.Differences)
	}
	diff := d.Differences[0]
	if diff.Counted.Status != 403 || diff.Shadow.Status != 429 || diff.Shadow.DecidedBy != "acme/limited" || diff.Counted.DecidedBy != "acme/r" ||
		!strings.Contains(string(diff.Shadow.Verdict), `"quota_exhausted"`) || diff.Provider != "acme" || diff.Status != 403 || diff.At.IsZero() {
		t.Errorf("PLG-4: %+v", diff)
	}
	if diff.Excerpt != "quota of [redacted] reached" || !strings.Contains(string(diff.Shadow.Verdict), "of [redacted]") {
		t.Errorf("DATA-1: %q %s", diff.Excerpt, diff.Shadow.Verdict)
	}
	if _, release := call(r, failed("zeta", "m", 403, "x")); release != nil {
		release() // of a provider that the shadow does not speak for
	}
	if err := r.Promote(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	if d := only(t, r, "acme"); d.Shadow != nil || d.Version != "2.0.0" || d.Differences == nil {
		t.Errorf("PLG-4: %+v", d)
	}
}

func TestLastFiftyDifferences(t *testing.T) { // PLG-4, PLG-15
	t.Parallel()
	r := started(t, Options{Modes: map[string]string{"acme": ModeShadow}})
	put(t, r, "acme", rule("acme", "1.0.0", "banned"), PutOptions{})
	for i := range 60 {
		_, release := call(r, failed("acme", fmt.Sprintf("m%d", i), 403, "x"))
		release()
	}
	eventually(t, "all compared", func() bool { return tallyOf(r, "acme").Differed == 60 })
	d := only(t, r, "acme")
	if len(d.Differences) != 50 || d.Differences[0].Model != "m59" || d.Differences[49].Model != "m10" {
		t.Errorf("%d differences, from %s", len(d.Differences), d.Differences[0].Model)
	}
	if says(r) != "" {
		t.Error("PLG-4: a plugin in shadow decided")
	}
}

// A shadow that traps is counted and costs the calls nothing; its digest is quarantined as any other (PLG-5).
func TestShadowThatFails(t *testing.T) { // PLG-4, PLG-5
	t.Parallel()
	r := started(t, Options{})
	put(t, r, "acme", module{manifest: hookManifest, answer: `{"reason":"overloaded"}`}.wasm(), PutOptions{})
	put(t, r, "acme", module{manifest: strings.Replace(hookManifest, "1.0.0", "2.0.0", 1), call: codeTrap}.wasm(), PutOptions{Mode: ModeShadow})
	for range 8 {
		v, release := call(r, failed("acme", "m", 403, "x"))
		if v.Reason != "overloaded" {
			t.Errorf("PLG-4: %+v", v)
		}
		release()
	}
	eventually(t, "PLG-4 failed", func() bool { return tallyOf(r, "acme").Failed == 8 })
	d := only(t, r, "acme")
	if d.Counters.Calls != 8 || len(d.Counters.Violations) != 0 || d.State != StateActive || d.Candidate.State != StateQuarantined {
		t.Errorf("PLG-4: the shadow counts against the active version, or its guest was asked twice: %+v, %+v", d.Counters, d.Candidate)
	}
	if refused(t, r.Promote(t.Context(), "acme"), 409) != CodeStale || only(t, r, "acme").Version != "1.0.0" {
		t.Error("PLG-2: a version in quarantine replaced one that works")
	}
}

// When shadows are slow, calls are not: what does not fit into the queue is dropped and counted.
func TestShadowOverload(t *testing.T) { // PLG-4
	t.Parallel()
	r := New(Options{}) // nobody compares before Start
	put(t, r, "acme", rule("acme", "1.0.0", "overloaded"), PutOptions{Mode: ModeShadow})
	for range maxWaiting + 7 {
		_, release := call(r, failed("acme", "m", 403, "x"))
		release()
	}
	if got := tallyOf(r, "acme"); got.Dropped != 7 || got.Agreed+got.Differed != 0 {
		t.Errorf("PLG-4: %+v", got)
	}
	if err := r.Close(context.Background()); err != nil { // and gives back what waits
		t.Error(err)
	}
}

// What a candidate keeps is not for the active version of its name (PLG-4).
func TestCandidatesKeepApart(t *testing.T) {
	t.Parallel()
	r := started(t, Options{})
	guest := func(version string) []byte {
		return module{manifest: strings.Replace(hookManifest, "1.0.0", version, 1), answer: `{"reason":"overloaded"}`}.wasm()
	}
	put(t, r, "acme", guest("1.0.0"), PutOptions{})
	put(t, r, "acme", guest("2.0.0"), PutOptions{Mode: ModeShadow})
	r.mu.Lock()
	defer r.mu.Unlock()
	a, b := r.slots[slotKey(OriginAPI, "acme", inForce)].active, r.slots[slotKey(OriginAPI, "acme", asCandidate)].active
	if a.guest.kv == b.guest.kv || a.counters == b.counters || a.guest.kv != r.rooms.space("acme") {
		t.Error("the candidate shares kv or counters with the active version")
	}
}
