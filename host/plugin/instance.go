package plugin

import (
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

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// Limits of one call (ABI-6, ABI-8).
const (
	maxInput    = 256 << 10
	maxOutput   = 64 << 10
	maxDescribe = 1 << 20
	maxAnswer   = 256 << 10 // respond (ABI-3)
	maxStderr   = 4 << 10
	maxLogLine  = 1 << 10
	maxLogLines = 20

	longCall = 5 * time.Second        // describe, plan, respond
	hookCall = 100 * time.Millisecond // the others
)

// outputLimit is how much an operation may answer.
func outputLimit(op wire.Op) uint32 {
	switch op {
	case wire.OpDescribe:
		return maxDescribe
	case wire.OpRespond:
		return maxAnswer
	}
	return maxOutput
}

// Violations, as counters and logs name them (ABI-8).
const (
	violationTrap     = "trap"
	violationMemory   = "out_of_memory"
	violationDeadline = "deadline"
	violationGarbage  = "garbage"
	violationOutput   = "output_too_large"
	violationExit     = "exit"
)

// violation is a guest that broke the rules in one call. The instance is not used again.
type violation struct {
	kind   string
	cause  string
	stderr string
}

func (v *violation) Error() string {
	s := v.kind + ": " + v.cause
	if v.stderr != "" {
		s += "; the guest wrote: " + v.stderr
	}
	return s
}

func garbage(format string, args ...any) error {
	return &violation{kind: violationGarbage, cause: fmt.Sprintf(format, args...)}
}

// instance is one instantiated module. It serves one call at a time.
type instance struct {
	owner  *guest
	mod    api.Module
	memory api.Memory
	alloc  api.Function // cached: a lookup allocates
	run    api.Function
	kv     *space
	random io.Reader
	stderr ring
	stack  [2]uint64
	at     uint32 // of the input buffer
	size   uint32 // of the input buffer
	first  uint32 // bytes of memory after the first call
	calls  int
	used   time.Time // when it was given back

	// of the present call
	now    time.Time
	caller context.Context //nolint:containedctx // read by the host function cancelled, only while the call runs
	lines  int
}

// call runs op. nil means "no opinion". The answer is a copy. Every error is a *violation or wraps the context's, and the
// instance must then be discarded.
func (in *instance) call(ctx context.Context, op wire.Op, input []byte, now time.Time, limit time.Duration) ([]byte, error) {
	if len(input) > maxInput {
		return nil, fmt.Errorf("the input of %s has %d bytes, at most %d are allowed", op, len(input), maxInput)
	}
	in.now, in.caller, in.lines = now, ctx, 0
	in.stderr.reset()
	// A client that goes away does not cost an instance: the guest may ask cancelled, and ends by its own deadline.
	ctx, stop := context.WithTimeout(context.WithValue(context.WithoutCancel(ctx), guestKey{}, in), limit)
	defer func() { stop(); in.caller = nil; in.calls++ }()
	if err := in.input(ctx, input); err != nil {
		return nil, err
	}
	in.stack[0], in.stack[1] = uint64(uint32(op)), uint64(len(input))
	if err := in.run.CallWithStack(ctx, in.stack[:]); err != nil {
		return nil, in.broke(ctx, err)
	}
	if in.first == 0 {
		in.first = in.memory.Size()
	}
	if in.stack[0] == 0 {
		return nil, nil
	}
	at, n := uint32(in.stack[0]>>32), uint32(in.stack[0])
	if most := outputLimit(op); n > most {
		return nil, &violation{kind: violationOutput, cause: fmt.Sprintf("%s answered %d bytes, at most %d are allowed", op, n, most)}
	}
	b, ok := in.memory.Read(at, n)
	if !ok {
		return nil, garbage("%s answered %d bytes at %d, outside of its memory", op, n, at)
	}
	return append([]byte(nil), b...), nil
}

// input places b into the guest's buffer, asking for a larger one only when it has to (ABI-1).
func (in *instance) input(ctx context.Context, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	if n := uint32(len(b)); n > in.size {
		in.stack[0] = uint64(n)
		if err := in.alloc.CallWithStack(ctx, in.stack[:]); err != nil {
			return in.broke(ctx, err)
		}
		in.at, in.size = uint32(in.stack[0]), n
		if in.at == 0 {
			return garbage("weir_alloc refused %d bytes", n)
		}
	}
	if !in.memory.Write(in.at, b) {
		return garbage("weir_alloc gave %d bytes at %d, outside of its memory", len(b), in.at)
	}
	return nil
}

// broke names what a failed call was.
func (in *instance) broke(ctx context.Context, err error) error {
	v := &violation{kind: violationTrap, cause: firstLine(err.Error()), stderr: in.stderr.String()}
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		switch exit.ExitCode() {
		case sys.ExitCodeDeadlineExceeded, sys.ExitCodeContextCanceled:
			v.kind, v.cause = violationDeadline, "the call took too long"
		default:
			v.kind, v.cause = violationExit, fmt.Sprintf("the guest ended itself with code %d", exit.ExitCode())
		}
		return v
	}
	if ctx.Err() != nil {
		v.kind = violationDeadline
	} else if uint64(in.memory.Size()) >= uint64(in.owner.pages)*65536 || strings.Contains(v.stderr, "out of memory") {
		v.kind = violationMemory
	}
	return v
}

// worn says whether the instance should be replaced by a fresh one (ABI-7 step 7).
func (in *instance) worn() bool {
	size := uint64(in.memory.Size())
	return in.calls >= 100_000 || size > 4*uint64(in.first) || size > uint64(in.owner.pages)*65536/2
}

func (in *instance) close() {
	_ = in.mod.Close(context.Background()) // it only frees; there is nothing to do about an error
}

func firstLine(s string) string {
	s, _, _ = strings.Cut(s, "\n")
	return s
}

// ring keeps the last maxStderr bytes written.
type ring struct{ b []byte }

func (r *ring) reset() { r.b = r.b[:0] }

// Write keeps the end of p.
func (r *ring) Write(p []byte) (int, error) {
	r.b = append(r.b, p...)
	if over := len(r.b) - maxStderr; over > 0 {
		r.b = append(r.b[:0], r.b[over:]...)
	}
	return len(p), nil
}

func (r *ring) String() string { return strings.ToValidUTF8(strings.TrimSpace(string(r.b)), "?") }

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
	out, err := in.call(ctx, wire.OpConfigure, in.owner.settings, now, longCall)
	if err != nil || out == nil {
		return err
	}
	var no struct {
		Error *rules.Declined `json:"error"`
	}
	if err := json.Unmarshal(out, &no); err != nil {
		return garbage("configure answered what is not JSON")
	}
	if no.Error != nil {
		return no.Error
	}
	return nil
}
