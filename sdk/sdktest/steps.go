package sdktest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weirgate/weir/sdk/internal/examples"
	"github.com/weirgate/weir/sdk/wire"
)

// listed says whether the manifest's hooks name op, also when the reader of manifests dropped a word that it does not know.
func (c *checker) listed(op wire.Op) bool {
	var m struct{ Hooks []string }
	return json.Unmarshal(c.raw, &m) == nil && slices.Contains(m.Hooks, op.String())
}

// buffer asks for room as a host does: larger and larger, each within the memory.
func (c *checker) buffer(ctx context.Context) finding {
	g, err := c.ready(ctx, now)
	if err != nil {
		return wrong(kindOf(err), "%v", err)
	}
	defer g.close()
	for _, n := range []int{1, 100, 4 << 10, 64 << 10, maxInput} {
		if err := g.input(g.in(ctx), bytes.Repeat([]byte{0xa5}, n)); err != nil {
			return wrong(kindOf(err), "%v", err)
		}
	}
	return fine("up to %d KiB", maxInput>>10)
}

// unknownOps are operations of later versions: the answer is 0.
func (c *checker) unknownOps(ctx context.Context) finding {
	g, err := c.ready(ctx, now)
	if err != nil {
		return wrong(kindOf(err), "%v", err)
	}
	defer g.close()
	for _, op := range []wire.Op{0, 3, 9, 16, 17, 21, 40, 41, 99, 1 << 30, -1} {
		for _, input := range [][]byte{nil, []byte("{}"), {1, 2, 3}} {
			out, err := g.call(ctx, op, input)
			if err != nil {
				return wrong(kindOf(err), "operation %d: %v", op, err)
			}
			if out != nil {
				return wrong(violationGarbage, "operation %d is not known, so the answer is 0; it was %q", op, cut(out))
			}
		}
	}
	return finding{outcome: Passed}
}

// each runs f for every hook with a fresh instance, and says the first thing that is wrong.
func (c *checker) each(ctx context.Context, f func(g *guest, op wire.Op) *finding) finding {
	ops := c.hooks()
	if len(ops) == 0 {
		return skipped("the plugin is data: no hook is ever called")
	}
	var names []string
	for _, op := range ops {
		names = append(names, op.String())
		g, err := c.ready(ctx, now)
		if err != nil {
			return wrong(kindOf(err), "%v", err)
		}
		bad := f(g, op)
		g.close()
		if bad != nil {
			return *bad
		}
	}
	return fine("%s", strings.Join(names, ", "))
}

// ask calls op and reads the answer.
func (c *checker) ask(ctx context.Context, g *guest, op wire.Op, input []byte) ([]byte, *finding) {
	out, err := g.call(ctx, op, input)
	if err != nil {
		f := wrong(kindOf(err), "%s of %q: %v", op, cut(input), err)
		return nil, &f
	}
	_, f := c.answered(op, out)
	return out, f
}

// unknownFields adds fields of later versions to every sample: the answer stays the same.
func (c *checker) unknownFields(ctx context.Context) finding {
	return c.each(ctx, func(g *guest, op wire.Op) *finding {
		if op == wire.OpEvent {
			return nil // its form has no fields
		}
		for _, input := range c.samples(op) {
			plain, f := c.alone(ctx, op, input)
			if f != nil {
				return f
			}
			strange, f := c.alone(ctx, op, withUnknown(input))
			if f != nil {
				return f
			}
			if !bytes.Equal(plain, strange) {
				w := wrong(violationGarbage, "%s answers %q, and with fields that it does not know %q", op, cut(plain), cut(strange))
				return &w
			}
		}
		return nil
	})
}

// alone asks an instance that was asked nothing before.
func (c *checker) alone(ctx context.Context, op wire.Op, input []byte) ([]byte, *finding) {
	g, err := c.ready(ctx, now)
	if err != nil {
		f := wrong(kindOf(err), "%v", err)
		return nil, &f
	}
	defer g.close()
	return c.ask(ctx, g, op, input)
}

// sizes passes the empty object and the largest input of every hook.
func (c *checker) sizes(ctx context.Context) finding {
	return c.each(ctx, func(g *guest, op wire.Op) *finding {
		for _, input := range append(c.samples(op), []byte("{}")) {
			if _, f := c.ask(ctx, g, op, input); f != nil {
				return f
			}
			if op == wire.OpEnd { // its input is always short
				continue
			}
			if _, f := c.ask(ctx, g, op, large(op, input)); f != nil {
				return f
			}
		}
		return nil
	})
}

// garbage passes what no host passes: the guest must not trap over it.
func (c *checker) garbage(ctx context.Context) finding {
	return c.each(ctx, func(g *guest, op wire.Op) *finding {
		for _, input := range garbage() {
			if op == wire.OpEnd && len(input) > 4<<10 { // what little fuel it has is for short inputs
				continue
			}
			if _, f := c.ask(ctx, g, op, input); f != nil {
				return f
			}
		}
		return nil
	})
}

// examples runs the plugin's own test vectors in the sandbox (ABI-2.4).
func (c *checker) examples(ctx context.Context) finding {
	n := len(c.about.Examples)
	if n == 0 {
		if len(c.hooks()) > 0 || len(c.about.Rules) > 0 {
			return warning("there is none; a host with plugins.require_examples refuses the plugin")
		}
		return skipped("the plugin has neither rules nor hooks")
	}
	set, err := examples.New(&c.about.Manifest, func(op wire.Op, input []byte, nowMS int64) ([]byte, error) {
		g, err := c.ready(ctx, nowMS)
		if err != nil {
			return nil, err
		}
		defer g.close()
		return g.call(ctx, op, input)
	})
	if err != nil {
		return wrong("rule_invalid", "%v", err)
	}
	for i := range n {
		if err := set.Run(i); err != nil {
			return wrong("example_failed", "example %s: %v", set.Name(i), err)
		}
	}
	return fine("%d passed", n)
}

// steady calls every hook again and again in one instance: its memory must stop growing, or the host replaces it all the time
// (ABI-7, step 7).
func (c *checker) steady(ctx context.Context) finding {
	f := c.each(ctx, func(g *guest, op wire.Op) *finding {
		samples := c.samples(op)
		cost := Cost{Op: op.String(), Calls: c.kit.Calls, Budget: budget(op)}
		first := uint32(0)
		began := time.Now() //nolint:forbidigo // what a call costs is measured
		for i := range c.kit.Calls {
			if _, err := g.call(ctx, op, samples[i%len(samples)]); err != nil {
				w := wrong(kindOf(err), "%s, call %d of %q: %v", op, i+1, cut(samples[i%len(samples)]), err)
				return &w
			}
			cost.MaxFuel = max(cost.MaxFuel, g.spent)
			if i == 0 {
				first = g.memory.Size()
			}
		}
		cost.Mean = time.Since(began) / time.Duration(c.kit.Calls)
		last := g.memory.Size()
		c.out.Costs = append(c.out.Costs, cost)
		c.out.MemoryLast = max(c.out.MemoryLast, last)
		if worn(first, last, g.limit) {
			w := wrong(violationMemory, "%d KiB of memory after the first call of %s, %d after %d, of %d: a host would replace the instance; free what a call used, or declare less",
				first>>10, op, last>>10, c.kit.Calls, g.limit>>10)
			return &w
		}
		return nil
	})
	if f.outcome != Passed {
		return f
	}
	var parts []string
	for _, cost := range c.out.Costs {
		parts = append(parts, fmt.Sprintf("%s %.1f µs, %.1f %% of its fuel", cost.Op, float64(cost.Mean)/1000, 100*float64(cost.MaxFuel)/float64(cost.Budget)))
	}
	f.detail = fmt.Sprintf("%d calls each, %d KiB at the end: %s", c.kit.Calls, c.out.MemoryLast>>10, strings.Join(parts, "; "))
	for _, cost := range c.out.Costs {
		if cost.MaxFuel > cost.Budget/2 {
			return warning("%s", f.detail)
		}
	}
	return f
}

// worn says whether a host would replace an instance for its memory (ABI-7, step 7).
func worn(first, last uint32, limit uint64) bool {
	return uint64(last) > 4*uint64(first) || uint64(last) > limit/2
}

// streams opens and ends many streams in one instance, two at a time (ABI-5): what is kept of a stream must go with it.
func (c *checker) streams(ctx context.Context) finding {
	if !c.listed(wire.OpEvent) {
		return skipped("the plugin sees no events")
	}
	g, err := c.ready(ctx, now)
	if err != nil {
		return wrong(kindOf(err), "%v", err)
	}
	defer g.close()
	n := uint32(max(c.kit.Calls/8, 64))
	alone, f := c.stream(ctx, g, 1, 1)
	if f != nil {
		return *f
	}
	first := g.memory.Size()
	for id := uint32(2); id < 2+n; id += 2 {
		both, f := c.stream(ctx, g, id, id+1)
		if f != nil {
			return *f
		}
		if !slices.EqualFunc(alone, both, bytes.Equal) {
			return wrong(violationGarbage, "a stream is answered differently beside another one, or after %d others; keep state by stream", id-1)
		}
	}
	if last := g.memory.Size(); worn(first, last, g.limit) {
		return wrong(violationMemory, "memory grows with streams that ended: %d KiB after the first, %d after %d; forget a stream in on_end", first>>10, last>>10, n)
	}
	return fine("%d streams, two at a time, %d KiB at the end", n, g.memory.Size()>>10)
}

// stream sends the sample events to two streams in turn, ends them, and returns what the first one was answered.
func (c *checker) stream(ctx context.Context, g *guest, a, b uint32) (said [][]byte, f *finding) {
	for _, sample := range c.samples(wire.OpEvent) {
		e, _ := wire.ReadEvent(sample)
		for _, id := range slices.Compact([]uint32{a, b}) {
			e.Stream = id
			out, f := c.ask(ctx, g, wire.OpEvent, wire.AppendEvent(nil, e))
			if f != nil {
				return nil, f
			}
			if id == a {
				said = append(said, out)
			}
		}
	}
	if !c.listed(wire.OpEnd) {
		return said, nil
	}
	for _, id := range slices.Compact([]uint32{a, b}) {
		if _, f := c.ask(ctx, g, wire.OpEnd, fmt.Appendf(nil, `{"stream_id":%d,"complete":true,"now_ms":%d}`, id, now)); f != nil {
			return nil, f
		}
	}
	return said, nil
}
