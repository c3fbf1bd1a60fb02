package extism

import (
	"context"

	sdk "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero/api"
)

// Function is a function of extism:host/user.
type Function struct {
	Name            string
	Params, Results []api.ValueType
	Run             func(ctx context.Context, b Blocks, stack []uint64)
}

// Blocks are the blocks of the kernel, during one call of a Function.
type Blocks struct {
	in      *Instance
	current *sdk.CurrentPlugin
}

// Read returns the bytes of a block, without a copy: they are valid until the function returns. A handle that is none of the guest's traps it
// (ABI-6).
func (b Blocks) Read(handle uint64) []byte {
	bytes, ok := b.in.block(handle)
	if !ok {
		b.in.stop(errBlock)
	}
	return bytes
}

// Write makes a block of the bytes and returns its handle. A kernel that is full traps the guest.
func (b Blocks) Write(bytes []byte) uint64 {
	if b.in.made++; b.in.made > maxBlocks || len(bytes) > KernelBytes {
		b.in.stop(ErrMemory)
	}
	n := max(len(bytes), 1) // no block is made for no bytes: the handle would be 0, which says "not found"
	at, err := b.current.Alloc(uint64(n))
	if err != nil || at == 0 || !b.current.Memory().Write(uint32(at), bytes) {
		b.in.stop(ErrMemory)
	}
	if len(bytes) == 0 && !b.current.Memory().WriteUint32Le(uint32(at)-usedBefore, 0) {
		b.in.stop(ErrMemory)
	}
	b.in.blocks[at] = uint64(len(bytes))
	return at
}

// usedBefore is how far before a block the kernel keeps its length in bytes.
const usedBefore = 4

func functions(list []Function) []sdk.HostFunction {
	all := make([]sdk.HostFunction, len(list))
	for i, f := range list {
		all[i] = sdk.NewHostFunctionWithStack(f.Name, func(ctx context.Context, p *sdk.CurrentPlugin, stack []uint64) {
			f.Run(ctx, Blocks{ctx.Value(instanceKey{}).(*Instance), p}, stack)
		}, f.Params, f.Results)
		all[i].SetNamespace(UserModule)
	}
	return all
}
