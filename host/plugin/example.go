package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// zeros is the random of examples: the same at each load.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// exampleTime is how long all examples of a plugin may take: each has a budget, and 256 times the largest is a
// minute of calls that nothing interrupts.
const exampleTime = 30 * time.Second

// examples runs the plugin's own test vectors (ABI-2.4): fixed time, random 0, kv empty, http denied.
func (v *version) examples(ctx context.Context) *Fault {
	set := rules.Compile(rules.Source{Table: v.table, Plugin: v.name, Digest: v.digest, Matches: v.manifest.Matches})
	ctx, stop := context.WithTimeout(ctx, exampleTime)
	defer stop()
	for i, x := range v.manifest.Examples {
		if err := ctx.Err(); err != nil {
			return fault(StepExamples, CodeExample, "%d of %d examples ran in %s; take some out, or make them cheaper", i, len(v.manifest.Examples), exampleTime)
		}
		now := time.UnixMilli(x.NowMS)
		got, err := v.example(ctx, set, x, now)
		if err == nil {
			err = subset("", x.Expect, got)
		}
		if err != nil {
			name := x.Name
			if name == "" {
				name = fmt.Sprint(i)
			}
			return fault(StepExamples, CodeExample, "example %q (%s): %v", name, x.Op, err)
		}
	}
	return nil
}

// example returns what the plugin says, as JSON; null for no opinion.
func (v *version) example(ctx context.Context, set *rules.Set, x wire.Example, now time.Time) (json.RawMessage, error) {
	switch x.Op {
	case "on_request":
		return v.ask(ctx, wire.OpRequest, x.Input, now)
	case "on_response":
		return v.ask(ctx, wire.OpResponse, x.Input, now)
	case "plan":
		var q wire.PlanQuery
		if err := json.Unmarshal(x.Input, &q); err != nil {
			return nil, err
		}
		for i := range v.manifest.Plans {
			if planMatches(&v.manifest.Plans[i].Match, &q, q.Connection.Auth) {
				return json.Marshal(v.manifest.Plans[i].Plan)
			}
		}
		return v.ask(ctx, wire.OpPlan, x.Input, now)
	case "respond":
		return v.ask(ctx, wire.OpRespond, x.Input, now)
	}
	r, err := replyOf(x.Input, now)
	if err != nil {
		return nil, err
	}
	m := set.Match(r)
	if x.Op == "restate" {
		if said, _, ok := m.Restate(0, 1); ok {
			return restated(said, x.Expect), nil
		}
		return v.askIf(ctx, wire.OpRestate, r, now)
	}
	for _, p := range []rules.Phase{rules.Guard, rules.Normal, rules.Late} {
		if said, _, ok := m.Classify(p, 0, 1); ok {
			return rules.MarshalVerdict(said), nil
		}
		if p == rules.Normal {
			if out, err := v.askIf(ctx, wire.OpClassify, r, now); err != nil || string(out) != "null" {
				return out, err
			}
		}
	}
	return json.RawMessage("null"), nil
}

// askIf asks the hook when the manifest lists it, and completes its answer as the host does.
func (v *version) askIf(ctx context.Context, op wire.Op, r *rules.Reply, now time.Time) (json.RawMessage, error) {
	none := json.RawMessage("null")
	if !v.manifest.Hook(op.String()) {
		return none, nil
	}
	out, err := v.ask(ctx, op, hookInput(r, v.manifest.Needs, v.config, now), now)
	if err != nil {
		return nil, err
	}
	if op == wire.OpRestate {
		said, ok, err := rules.ResolveRestatement(out)
		if !ok || err != nil {
			return none, err
		}
		return rules.MarshalRestatement(said), nil
	}
	said, ok, err := rules.Resolve(out, r, v.manifest.Permissions.Terminate != nil)
	if !ok || err != nil {
		return none, err
	}
	return rules.MarshalVerdict(said), nil
}

// ask calls a fresh instance, so that no example depends on another.
func (v *version) ask(ctx context.Context, op wire.Op, input []byte, now time.Time) (json.RawMessage, error) {
	if v.guest == nil {
		return json.RawMessage("null"), nil
	}
	in, err := v.guest.instantiate(ctx, newSpace(), zeros{}, now)
	if err != nil {
		return nil, err
	}
	defer in.close()
	if err := in.configure(ctx, now); err != nil {
		return nil, err
	}
	out, err := in.within(ctx, op, opExample, input, now, v.guest.clock().Add(v.guest.limits.wall[opExample]))
	if err == nil && out == nil {
		return json.RawMessage("null"), nil
	}
	return bytes.Clone(out), err
}

// restated is a restatement as an example names it: one that keeps is no opinion, unless the example speaks of keep.
func restated(r wire.Restatement, expect []byte) json.RawMessage {
	if r.Keep && string(bytes.TrimSpace(expect)) == "null" {
		return json.RawMessage("null")
	}
	return rules.MarshalRestatement(r)
}
