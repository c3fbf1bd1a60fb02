package sdktest

import (
	"context"
	"fmt"
	"time"
)

// Outcome is how a step ended.
type Outcome string

// The outcomes. A warning is nothing that a host refuses, but something to mend.
const (
	Passed  Outcome = "ok"
	Warned  Outcome = "warning"
	Failed  Outcome = "failed"
	Skipped Outcome = "skipped"
)

// Step is one thing that was tried on a guest.
type Step struct {
	Name    string        `json:"name"` // module, start, describe, ...
	ID      string        `json:"id"`   // the section of the ABI that asks for it
	Outcome Outcome       `json:"outcome"`
	Code    string        `json:"code,omitempty"`   // of a failure: a code of PLG-14 when a host refuses the file, or a row of ABI-8
	Detail  string        `json:"detail,omitempty"` // what was seen, what is wrong, and the mend
	Took    time.Duration `json:"took_ns"`
}

// String is one line.
func (s Step) String() string {
	line := fmt.Sprintf("%-8s %-16s %-7s %6d ms", s.Outcome, s.Name, s.ID, s.Took.Milliseconds())
	if s.Detail != "" {
		line += "  " + s.Detail
	}
	if s.Code != "" {
		line += " (" + s.Code + ")"
	}
	return line
}

// Cost is what one operation costs, over many calls.
type Cost struct {
	Op      string        `json:"op"`
	Calls   int           `json:"calls"`
	Mean    time.Duration `json:"mean_ns"`
	MaxFuel int64         `json:"max_fuel"`
	Budget  int64         `json:"fuel_budget"` // that a host gives
}

// Report is what a check found.
type Report struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	OK          bool   `json:"ok"`      // nothing failed
	Size        int    `json:"size"`    // bytes
	Metered     int    `json:"metered"` // bytes, with fuel
	Functions   int    `json:"functions"`
	MemoryFirst uint32 `json:"memory_first"` // bytes, after describe
	MemoryLast  uint32 `json:"memory_last"`  // bytes, after all calls
	Costs       []Cost `json:"costs"`
	Steps       []Step `json:"steps"`
}

// Kit says how hard to try.
type Kit struct {
	Calls int // of each hook, for steadiness; 0: 20,000, and 60 under the race detector, which is slow
}

// Check runs every step of the kit on a module and reports each as it ends; report may be nil. It stops at the first failure
// that makes the others impossible. The error is that of ctx.
func (k Kit) Check(ctx context.Context, wasm []byte, report func(Step)) (Report, error) {
	if k.Calls == 0 {
		k.Calls = usualCalls
	}
	c := &checker{kit: k, wasm: wasm, report: report}
	c.out.OK, c.out.Size = true, len(wasm)
	defer c.close()
	for _, s := range steps {
		if err := ctx.Err(); err != nil {
			return c.out, err
		}
		if goOn := c.do(ctx, s); !goOn {
			break
		}
	}
	return c.out, ctx.Err()
}

// Check is Kit.Check with the usual number of calls.
func Check(ctx context.Context, wasm []byte, report func(Step)) (Report, error) {
	return Kit{}.Check(ctx, wasm, report)
}

// TB is what Run needs of a *testing.T.
type TB interface {
	Helper()
	Context() context.Context
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
}

// Run is Check as a test: each step that fails is an error of t, the others are logged.
func Run(t TB, wasm []byte) Report {
	t.Helper()
	return Kit{}.Run(t, wasm)
}

// Run is Check as a test.
func (k Kit) Run(t TB, wasm []byte) Report {
	t.Helper()
	out, err := k.Check(t.Context(), wasm, func(s Step) {
		t.Helper()
		if s.Outcome == Failed {
			t.Errorf("%s", s)
		} else {
			t.Logf("%s", s)
		}
	})
	if err != nil {
		t.Errorf("the check was cut off: %v", err)
	}
	return out
}

// step is one row of the kit. A fatal one ends the check when it fails.
type step struct {
	name, id string
	fatal    bool
	run      func(c *checker, ctx context.Context) finding
}

// finding is what a step found; the zero finding is that all is well.
type finding struct {
	outcome      Outcome
	code, detail string
}

func fine(format string, args ...any) finding {
	return finding{Passed, "", fmt.Sprintf(format, args...)}
}

func warning(format string, args ...any) finding {
	return finding{Warned, "", fmt.Sprintf(format, args...)}
}

func skipped(why string) finding { return finding{Skipped, "", why} }

func wrong(code, format string, args ...any) finding {
	return finding{Failed, code, fmt.Sprintf(format, args...)}
}

// steps is the kit, in its order.
var steps = []step{
	{"module", "ABI-7", true, (*checker).module},
	{"exports", "ABI-1", true, (*checker).exports},
	{"imports", "ABI-6", true, (*checker).imports},
	{"start", "ABI-7", true, (*checker).start},
	{"describe", "ABI-2", true, (*checker).describe},
	{"manifest", "ABI-2", true, (*checker).manifest},
	{"configure", "ABI-7", true, (*checker).configure},
	{"buffer", "ABI-1", false, (*checker).buffer},
	{"unknown-ops", "ABI-1", false, (*checker).unknownOps},
	{"unknown-fields", "ABI-1", false, (*checker).unknownFields},
	{"sizes", "ABI-8", false, (*checker).sizes},
	{"garbage-in", "ABI-8", false, (*checker).garbage},
	{"examples", "ABI-2.4", false, (*checker).examples},
	{"steady", "ABI-12", false, (*checker).steady},
	{"streams", "ABI-5", false, (*checker).streams},
}

func (c *checker) do(ctx context.Context, s step) (goOn bool) {
	began := time.Now() //nolint:forbidigo // how long a step takes is for people only
	f := s.run(c, ctx)
	if ctx.Err() != nil {
		return false
	}
	done := Step{Name: s.name, ID: s.id, Outcome: f.outcome, Code: f.code, Detail: f.detail, Took: time.Since(began)}
	c.out.Steps = append(c.out.Steps, done)
	if c.report != nil {
		c.report(done)
	}
	if f.outcome == Failed {
		c.out.OK = false
		return !s.fatal
	}
	return true
}
