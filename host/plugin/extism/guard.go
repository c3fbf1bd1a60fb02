package extism

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// guards stands before each function that is not WebAssembly: those are the host's. What a guest calls its own functions
// or its module does not matter.
type guards struct{}

// NewFunctionListener returns the guard of a function, nil for code of guest and kernel.
func (guards) NewFunctionListener(def api.FunctionDefinition) experimental.FunctionListener {
	if def.GoFunction() == nil {
		return nil
	}
	name := def.Name()
	if names := def.ExportNames(); len(names) > 0 {
		name = names[0]
	}
	switch def.ModuleName() {
	case envModule:
		return &guard{name: name, check: kernelChecks[name], after: kernelAfter[name], slow: true}
	case wasiModule:
		return &guard{name: name, check: wasiCheck(name), free: strings.HasPrefix(name, "clock_") || name == "proc_exit"}
	}
	return &guard{name: name, slow: name == "http_fetch" || name == "log"}
}

// guard is asked before one function runs. What it refuses ends the call.
type guard struct {
	name  string
	slow  bool // it takes a while, or the kernel does
	free  bool // it takes no time, and a guest may need it to end
	check func(in *Instance, p []uint64) error
	after func(in *Instance, results []uint64)
}

// Before ends the call by a panic, which is a trap for the guest.
func (g *guard) Before(ctx context.Context, _ api.Module, _ api.FunctionDefinition, p []uint64, _ experimental.StackIterator) {
	in, ok := ctx.Value(instanceKey{}).(*Instance)
	if !ok {
		return // the host itself
	}
	in.enroll(ctx)
	if !g.free && !in.host.Enter(g.slow) {
		in.stop(ErrLate)
	}
	if g.check != nil {
		if err := g.check(in, p); err != nil {
			in.stop(err)
		}
	}
}

// stop ends the call. The first reason is the one.
func (in *Instance) stop(err error) {
	if in.end == nil {
		in.end = err
	}
	panic(err)
}

// After keeps the book of blocks.
func (g *guard) After(ctx context.Context, _ api.Module, _ api.FunctionDefinition, results []uint64) {
	if in, ok := ctx.Value(instanceKey{}).(*Instance); ok && g.after != nil {
		g.after(in, results)
	}
}

// Abort has nothing to do: the call is over.
func (g *guard) Abort(context.Context, api.Module, api.FunctionDefinition, error) {}

var errBlock = errors.New("a block handle or address that is not the guest's")

// off is a function that no plugin has.
func off(instead string) func(*Instance, []uint64) error {
	return func(*Instance, []uint64) error { return errors.New(instead) }
}

// taking is for functions that read a block and free it.
func taking(in *Instance, p []uint64) error {
	if _, ok := in.block(p[0]); !ok {
		return errBlock
	}
	delete(in.blocks, p[0])
	return nil
}

// logging is taking for a line of the log. Extism's own log is one for the whole process and off, so that the line is told here.
func logging(level int32) func(*Instance, []uint64) error {
	return func(in *Instance, p []uint64) error {
		if text, ok := in.block(p[0]); ok {
			in.host.Log(level, text)
		}
		return taking(in, p)
	}
}

// kernelChecks are by the names of extism:host/env. Those that only read need none.
var kernelChecks = map[string]func(in *Instance, p []uint64) error{
	"alloc": func(in *Instance, p []uint64) error {
		if in.made++; in.made > maxBlocks {
			return fmt.Errorf("more than %d blocks in one call", maxBlocks)
		}
		if in.asked = p[0]; in.asked > KernelBytes {
			return ErrMemory
		}
		return nil
	},
	"free": func(in *Instance, p []uint64) error {
		delete(in.blocks, p[0])
		return nil
	},
	"reset": func(in *Instance, _ []uint64) error {
		clear(in.blocks)
		return nil
	},
	"store_u8": func(in *Instance, p []uint64) error { return in.writable(p[0], 1) },
	"store_u64": func(in *Instance, p []uint64) error {
		return in.writable(p[0], 8)
	},
	"output_set": func(in *Instance, p []uint64) error {
		switch {
		case p[1] == 0:
			return nil
		case p[1] > uint64(in.most):
			return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrOutput, p[1], in.most)
		case !in.inside(p[0], p[1]):
			return errBlock
		}
		return nil
	},
	"error_set": func(in *Instance, p []uint64) error {
		if _, ok := in.block(p[0]); !ok && p[0] != 0 {
			return errBlock
		}
		return nil
	},
	"config_get": func(in *Instance, p []uint64) error {
		if _, ok := in.block(p[0]); !ok {
			return errBlock
		}
		return nil
	},
	"log_trace": logging(0), "log_debug": logging(0), "log_info": logging(1), "log_warn": logging(2), "log_error": logging(3),
	"var_get":      off("Extism's variables are off: they live in one instance only; use kv_get of extism:host/user"),
	"var_set":      off("Extism's variables are off: they live in one instance only; use kv_set of extism:host/user"),
	"http_request": off("Extism's HTTP is off: it follows redirects anywhere; use http_fetch of extism:host/user"),
}

// kernelAfter notes what a function made.
var kernelAfter = map[string]func(in *Instance, results []uint64){
	"alloc": func(in *Instance, results []uint64) {
		if results[0] != 0 {
			in.blocks[results[0]] = in.asked
		}
	},
}

func (in *Instance) writable(at, n uint64) error {
	if !in.inside(at, n) {
		return errBlock
	}
	return nil
}

// wasiCheck bounds what works for as long as a length says, which costs a guest nothing, and notes an end.
func wasiCheck(name string) func(in *Instance, p []uint64) error {
	length, most := -1, uint32(maxVectors)
	switch name {
	case "proc_exit":
		return func(_ *Instance, p []uint64) error { return fmt.Errorf("%w with code %d", ErrExit, uint32(p[0])) }
	case "fd_write", "fd_read", "fd_pwrite", "fd_pread", "poll_oneoff":
		length = 2
	case "random_get":
		length, most = 1, maxSeed
	default:
		return nil
	}
	return func(_ *Instance, p []uint64) error {
		if n := uint32(p[length]); n > most {
			return fmt.Errorf("%s of %d, at most %d are allowed", name, n, most)
		}
		return nil
	}
}

const (
	maxVectors = 1 << 10 // of one read or write
	maxSeed    = 1 << 20 // of one random_get
)
