package plugin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"

	"github.com/weirgate/weir/host/plugin/extism"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// instance is one copy of a guest with its own memory. One call at a time: the pool sees to it.
type instance struct {
	owner  *guest
	mod    api.Module
	memory api.Memory
	limit  *memoryLimit
	alloc  api.Function
	run    api.Function
	fuel   api.MutableGlobal // the guest stops when it falls below zero
	ctx    context.Context   //nolint:containedctx // what wazero hands to host functions: it holds the instance and nothing else
	kv     *space
	random io.Reader
	stderr ring
	apart  *extism.Instance // of a guest of Extism; then there is no mod, memory, alloc, run and fuel
	stack  [2]uint64
	at     uint32 // the guest's input buffer
	size   uint32 // the largest size that was asked for
	first  uint32 // bytes of memory after the first call
	bytes  int64  // of memory after the last call
	calls  int

	ties // guarded by the pool

	// of the present call
	op        wire.Op
	given     int64 // fuel
	now       time.Time
	deadline  time.Time
	caller    context.Context //nolint:containedctx // read by the host function cancelled, only while the call runs
	crossings int             // of the wall, into host functions
	late      bool            // the wall clock ran out
	lines     int
}

// begin makes the instance ready for one call: fuel, clock, and nothing of the call before. budget is the operation whose
// limits hold.
func (in *instance) begin(caller context.Context, op, budget wire.Op, now, deadline time.Time) {
	in.op, in.now, in.caller, in.deadline = op, now, caller, deadline
	in.crossings, in.late, in.lines = 0, false, 0
	in.stderr.reset()
	in.limit.refused = false
	in.given = in.owner.limits.fuel[budget]
	if in.fuel != nil { // else it is in the code
		in.fuel.Set(uint64(in.given))
	}
}

func (in *instance) end() {
	in.caller, in.op = nil, 0
	in.calls++
	in.weigh(int64(in.footprint()))
}

// footprint is the memory in bytes.
func (in *instance) footprint() int {
	if in.apart != nil {
		return len(in.limit.b) + in.apart.Bytes()
	}
	return int(in.memory.Size())
}

// weigh notes the size of the memory, in the sum of the guest too.
func (in *instance) weigh(bytes int64) {
	in.owner.bytes.Add(bytes - in.bytes)
	in.bytes = bytes
}

// call runs op and returns a copy of what it answered, nil for "no opinion". An error is errOversize or a *violation.
func (in *instance) call(caller context.Context, op wire.Op, input []byte, now time.Time, wall time.Duration) ([]byte, error) {
	out, err := in.within(caller, op, op, input, now, in.owner.clock().Add(wall))
	return bytes.Clone(out), err
}

// within is call with the fuel of budget and without the copy: the answer lies in the guest's memory, and is valid only while
// the caller holds the instance. What a guest may wait for, http_fetch, ends with a context of the call; other operations have
// no use for one and make none.
func (in *instance) within(caller context.Context, op, budget wire.Op, input []byte, now, deadline time.Time) ([]byte, error) {
	if len(input) > maxInput {
		return nil, errOversize
	}
	in.begin(caller, op, budget, now, deadline)
	defer in.end()
	ctx := in.ctx
	if op == wire.OpPlan || op == wire.OpConfigure {
		waits, stop := context.WithTimeout(ctx, deadline.Sub(in.owner.clock()))
		defer stop()
		defer context.AfterFunc(in.owner.draining, stop)()
		ctx = waits
	}
	if in.apart != nil {
		return in.throughExtism(ctx, op, budget, input)
	}
	if err := in.input(ctx, input); err != nil {
		return nil, err
	}
	in.stack[0], in.stack[1] = uint64(uint32(op)), uint64(len(input))
	if err := in.run.CallWithStack(ctx, in.stack[:]); err != nil {
		return nil, in.broke(err)
	}
	if in.first == 0 {
		in.first = in.memory.Size()
	}
	return in.output(op)
}

// output finds the answer of a call that ended by itself.
func (in *instance) output(op wire.Op) ([]byte, error) {
	at, n := uint32(in.stack[0]>>32), uint32(in.stack[0])
	if most := outputLimit(op); n > most {
		return nil, &violation{op: op, kind: violationOutput, cause: fmt.Sprintf("%s answered %d bytes, at most %d are allowed", op, n, most)}
	}
	b, ok := in.memory.Read(at, n)
	switch {
	case !ok:
		return nil, asViolation(op, garbage("%s answered %d bytes at %d, outside of its memory", op, n, at))
	case in.late:
		return nil, in.tooLate(true)
	case in.stack[0] == 0:
		return nil, nil
	}
	return b, nil
}

// input places b into the guest's buffer, asking for a larger one only when it has to (ABI-1).
func (in *instance) input(ctx context.Context, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if n := uint32(len(b)); n > in.size {
		in.stack[0] = uint64(n)
		if err := in.alloc.CallWithStack(ctx, in.stack[:]); err != nil {
			return in.broke(err)
		}
		in.at, in.size = uint32(in.stack[0]), n
		if in.at == 0 {
			return asViolation(in.op, garbage("weir_alloc refused %d bytes", n))
		}
	}
	if !in.memory.Write(in.at, b) {
		return asViolation(in.op, garbage("weir_alloc gave %d bytes at %d, outside of its memory", len(b), in.at))
	}
	return nil
}

// broke names what a call was that ended in a trap. All traps look alike: fuel and memory tell them apart (ABI-8).
func (in *instance) broke(err error) *violation {
	v := &violation{op: in.op, kind: violationTrap, cause: trapOf(err), stderr: in.stderr.String()}
	exit, exited := errors.AsType[*sys.ExitError](err)
	switch {
	case exited:
		v.kind, v.cause = violationExit, fmt.Sprintf("the guest ended itself with code %d", exit.ExitCode())
	case int64(in.fuel.Get()) < 0:
		v.kind, v.cause = violationFuel, fmt.Sprintf("%s used up its fuel of %d", opName(in.op), in.given)
	case in.limit.refused || in.memory.Size() >= in.limit.pages*pageBytes || strings.Contains(v.stderr, "out of memory"):
		v.kind = violationMemory
	case in.late:
		late := in.tooLate(false)
		late.stderr = v.stderr
		return late
	}
	return v
}

func (in *instance) tooLate(kept bool) *violation {
	return &violation{op: in.op, kind: violationDeadline, kept: kept, cause: fmt.Sprintf("%s took too long in host functions", opName(in.op))}
}

// trapOf is the kind of trap in wazero's words, without the stack.
func trapOf(err error) string {
	return strings.TrimPrefix(strings.TrimSuffix(firstLine(err.Error()), " (recovered by wazero)"), "wasm error: ")
}

// enter lets a host function run, false when the time is over (ABI-8: checked between host functions, not inside of guest
// code). The clock is looked at for each function that may be slow, and now and then for the others.
func (in *instance) enter(slow bool) bool {
	if in.crossings++; !in.late && (slow || in.crossings%lookEach == 0) {
		in.look()
	}
	return !in.late
}

const lookEach = 16

func (in *instance) look() { in.late = in.late || in.owner.clock().After(in.deadline) }

// worn says whether the instance should be replaced by a fresh one (ABI-7 step 7).
func (in *instance) worn() bool {
	size := uint64(in.bytes)
	return in.calls >= maxCalls || in.first > 0 && size > 4*uint64(in.first) || size > uint64(in.limit.pages)*pageBytes/2
}

const maxCalls = 100_000

func (in *instance) close() {
	in.weigh(0)
	if in.apart != nil {
		in.apart.Close()
		return
	}
	_ = in.mod.Close(context.Background()) // it only frees; there is nothing to do about an error
}

// logLine writes one line of the guest to the log (ABI-6): at most maxLogLines a call, the rest is counted.
func (in *instance) logLine(level int32, text []byte) {
	in.lines++
	if in.lines > maxLogLines {
		in.owner.counters.dropped.Add(1)
		return
	}
	levels := [...]slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError}
	l := levels[min(max(level, 0), 3)]
	in.owner.log.Log(context.Background(), l, strings.ToValidUTF8(string(text), "?"))
}

// configure hands the plugin its configuration and grants, once per instance before all operations but describe (ABI-7).
func (in *instance) configure(ctx context.Context, now time.Time) error {
	out, err := in.call(ctx, wire.OpConfigure, in.owner.settings, now, in.owner.limits.wall[wire.OpConfigure])
	if err != nil || out == nil {
		return err
	}
	var no struct {
		Error *rules.Declined `json:"error"`
	}
	if err := json.Unmarshal(out, &no); err != nil {
		return asViolation(wire.OpConfigure, garbage("configure answered what is not JSON"))
	}
	if no.Error != nil {
		return no.Error
	}
	return nil
}
