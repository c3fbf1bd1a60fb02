package extism

import (
	"context"
	"errors"
	"fmt"
	"io"

	sdk "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
)

// Host is what the guard asks and tells during a call.
type Host interface {
	// Enter is asked before each function of the host, slow for one that may take long; false ends the call.
	Enter(slow bool) bool
	// Log is a line that the guest writes with its PDK's own log; levels as in ABI-6.
	Log(level int32, text []byte)
}

// KernelBytes is the most memory of one instance's kernel, which holds input, output and blocks. It counts besides the memory
// of the guest: the largest input and the largest answer, several times over.
const KernelBytes = 8 << 20

// maxBlocks is how many blocks a guest may make in one call: the kernel looks through all of them for each new one.
const maxBlocks = 1024

// Ends of a call that are not the guest's own traps.
var (
	// ErrExit: the guest ended itself with proc_exit.
	ErrExit = errors.New("the guest ended itself")
	// ErrOutput: the answer is larger than what was allowed.
	ErrOutput = errors.New("the answer is too large")
	// ErrMemory: the guest asked the kernel for more than it has.
	ErrMemory = errors.New("out of memory")
	// ErrLate: Host.Enter said no.
	ErrLate = errors.New("too late")
)

// Instance is one copy of a guest with its own memory and its own kernel. One call at a time.
type Instance struct {
	plugin *sdk.Plugin
	kernel *kernelMemory

	// of the present call
	host   Host
	blocks map[uint64]uint64 // handle to length
	last   uint64            // the block that was written to
	made   int               // blocks
	asked  uint64            // bytes of the block that is being made
	input  int               // bytes, not in blocks yet; -1: it is
	most   int               // bytes of output
	end    error             // why the guard ended the call
}

// InstanceOptions are what an instance gets of its own.
type InstanceOptions struct {
	Memory experimental.LinearMemory // of the guest
	Random io.Reader
	Stderr io.Writer
}

type instanceKey struct{}

// Instance makes an instance. The start section runs, if there is one; nothing else.
func (c *Code) Instance(ctx context.Context, o InstanceOptions) (*Instance, error) {
	in := &Instance{kernel: &kernelMemory{}, blocks: map[uint64]uint64{}, host: nobody{}}
	first := true // the SDK makes the kernel before the guest
	ctx = experimental.WithMemoryAllocator(context.WithValue(ctx, instanceKey{}, in), experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory {
		if first {
			first = false
			return in.kernel
		}
		return o.Memory
	}))
	var err error
	in.plugin, err = c.plugin.Instance(ctx, sdk.PluginInstanceConfig{
		ModuleConfig: wazero.NewModuleConfig().WithRandSource(o.Random).WithStderr(o.Stderr),
	})
	if err != nil {
		return nil, err
	}
	return in, nil
}

// Call runs an export on input. The answer is the caller's to keep; it is empty when the guest set none. Errors: those above, or how the
// guest trapped, or what it called its error. After one the instance is to be closed.
func (in *Instance) Call(ctx context.Context, host Host, export string, input []byte, most int) ([]byte, error) {
	in.host, in.input, in.most, in.made, in.end = host, len(input), most, 0, nil
	in.kernel.full = false
	clear(in.blocks)
	defer func() { in.host = nobody{} }()
	code, out, err := in.plugin.CallWithContext(context.WithValue(ctx, instanceKey{}, in), export, input)
	switch {
	case in.end != nil:
		return nil, in.end
	case err != nil:
		return nil, err
	case code != 0:
		return nil, fmt.Errorf("it answered the code %d, which is an error in Extism", code)
	}
	return out, nil
}

// Spent says whether the guest has used up its fuel, for after a call that failed.
func (in *Instance) Spent(ctx context.Context) bool {
	if errors.Is(in.end, ErrExit) { // there is no guest any more
		return false
	}
	in.end, in.input = nil, -1
	spent, _, err := in.plugin.CallWithContext(context.WithValue(ctx, instanceKey{}, in), "weir_fuel_spent", nil)
	return err == nil && spent == 1
}

// Bytes is the memory of the kernel.
func (in *Instance) Bytes() int { return len(in.kernel.b) }

// Full says whether the kernel was asked for more than it has in the last call.
func (in *Instance) Full() bool { return in.kernel.full }

// Close frees the instance.
func (in *Instance) Close() {
	_ = in.plugin.CloseWithContext(context.Background()) // it only frees; there is nothing to do about an error
}

// enroll notes the block of the input, which the SDK makes.
func (in *Instance) enroll(ctx context.Context) {
	if at, ok := ctx.Value(sdk.InputOffsetKey("inputOffset")).(uint64); ok && in.input > 0 {
		in.blocks[at] = uint64(in.input)
		in.input = -1
	}
}

// block returns the bytes of a block of the guest's; no copy.
func (in *Instance) block(handle uint64) ([]byte, bool) {
	n, ok := in.blocks[handle]
	if !ok {
		return nil, false
	}
	return in.memory().Read(uint32(handle), uint32(n))
}

func (in *Instance) memory() api.Memory { return in.plugin.Memory() }

// inside says whether n bytes at that address lie in one block.
func (in *Instance) inside(at, n uint64) bool {
	holds := func(begin uint64) bool {
		size, ok := in.blocks[begin]
		return ok && at >= begin && at-begin < size && n <= size-(at-begin)
	}
	if holds(in.last) { // guests write a block from its beginning to its end
		return true
	}
	for begin := range in.blocks {
		if holds(begin) {
			in.last = begin
			return true
		}
	}
	return false
}

// nobody is the host of an instance that is not in a call.
type nobody struct{}

func (nobody) Enter(bool) bool   { return true }
func (nobody) Log(int32, []byte) {}

// kernelMemory is the memory of one kernel.
type kernelMemory struct {
	b    []byte
	full bool // a growth was refused in the present call
}

// Reallocate returns the memory with that size, nil when the limit is reached.
func (k *kernelMemory) Reallocate(size uint64) []byte {
	if size > KernelBytes {
		k.full = true
		return nil
	}
	if grow := int(size) - len(k.b); grow > 0 {
		k.b = append(k.b, make([]byte, grow)...)
	}
	k.b = k.b[:size]
	return k.b
}

// Free gives the memory to the collector.
func (k *kernelMemory) Free() { k.b = nil }
