package plugin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/weirgate/weir/host/plugin/binary"
	"github.com/weirgate/weir/host/plugin/extism"
	"github.com/weirgate/weir/host/plugin/fuel"
	"github.com/weirgate/weir/sdk/wire"
)

// extismOps are the operations of a guest of Extism, by the names of its exports: on_event is not offered.
var extismOps = []wire.Op{
	wire.OpDescribe, wire.OpConfigure, wire.OpPlan, wire.OpRequest, wire.OpResponse, wire.OpEnd, wire.OpRespond, wire.OpRestate, wire.OpClassify,
}

// The names under which wrappers are exported.
const (
	extismPrefix  = "weir_"
	extismExample = "weir_example_"
	extismStart   = "weir_start" // _initialize: the SDK would run it when it likes, on the fuel of whatever call
)

// wrappers give each operation its fuel, and another of examples (ABI-10).
func (l *limits) wrappers() []fuel.Wrapper {
	var list []fuel.Wrapper
	for _, op := range extismOps {
		name := extismPrefix + op.String()
		list = append(list, fuel.Wrapper{Of: name, As: name, Budget: l.fuel[op]}, fuel.Wrapper{Of: name, As: extismExample + op.String(), Budget: l.fuel[opExample]})
	}
	for _, start := range []string{"_initialize", "__wasm_call_ctors"} {
		list = append(list, fuel.Wrapper{Of: start, As: extismStart, Budget: l.fuel[opInitialize]})
	}
	return list
}

// checkExtismExports is checkExports for a guest of Extism.
func checkExtismExports(o *binary.Outline) *Fault {
	if _, ok := o.Export("weir_describe"); !ok {
		return fault(StepPrecheck, CodeMissingExport, "the module does not export weir_describe; export one function for each operation, weir_describe first")
	}
	for _, op := range extismOps {
		e, ok := o.Export(extismPrefix + op.String())
		if ok && (e.Kind != binary.Func || e.Type != "()->(i32)" && e.Type != "()->()") {
			return fault(StepPrecheck, CodeExportType, "the export %s is %s, it must be func ()->(i32)", e.Name, describeExport(e))
		}
	}
	_, initialize := o.Export("_initialize")
	_, constructs := o.Export("__wasm_call_ctors")
	if initialize && constructs {
		return fault(StepPrecheck, CodeExportType, "the module exports _initialize and __wasm_call_ctors; it must have one of them")
	}
	for _, name := range []string{"_initialize", "__wasm_call_ctors"} {
		if e, ok := o.Export(name); ok && (e.Kind != binary.Func || e.Type != "()->()") {
			return fault(StepPrecheck, CodeExportType, "the export %s is %s, it must be func ()->()", name, describeExport(e))
		}
	}
	return nil
}

// linkExtism refuses imports that a guest of Extism cannot have, by name.
func linkExtism(ctx context.Context, o *binary.Outline) *Fault {
	s := sandbox{runtime: wazero.NewRuntimeWithConfig(ctx, runtimeConfig(true))} // for the names and types of WASI alone
	defer s.close()
	if err := s.wasi(ctx); err != nil {
		return fault(StepCompile, CodeCompile, "the host's own functions do not link: %v", err)
	}
	for _, im := range o.Imports {
		var has string
		ok := im.Kind == binary.Func
		switch {
		case !ok || !strings.HasPrefix(im.Module, "extism:"):
			if f := s.importable(im); f != nil {
				return f
			}
			continue
		case im.Module == extism.UserModule:
			has, ok = userSignature(im.Name)
		default:
			has, ok = extism.Env(im.Name)
			ok = ok && extism.Is(im.Module)
		}
		if !ok {
			return fault(StepPrecheck, CodeUnknownImport, "needs %s.%s, host has ABI 1.0", im.Module, im.Name)
		}
		if binary.Signature(has) != im.Type {
			return fault(StepPrecheck, CodeUnknownImport, "imports %s.%s as %s, host has it as %s", im.Module, im.Name, im.Type, has)
		}
	}
	return nil
}

// compileExtism makes the code of a metered module that linkExtism found good.
func compileExtism(ctx context.Context, metered []byte, o extism.Options) (*extism.Code, *Fault) {
	ctx, stop := context.WithTimeout(experimental.WithCompilationWorkers(ctx, compileWorkers), compileTime)
	defer stop()
	o.Functions = userFunctions()
	code, err := extism.Compile(ctx, metered, o)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, tooLong()
	case err != nil:
		return nil, fault(StepCompile, CodeCompile, "the module does not compile: %s", firstLine(err.Error()))
	}
	return code, nil
}

// settle looks at a guest of Extism once more when it has its name: it is refused when it asks for what the loader does not offer,
// and compiled again when its own limits are others than those it was compiled with, since its fuel is in its code.
func (l *loader) settle(ctx context.Context, v *version, wasm []byte, o *binary.Outline) *Fault {
	for i := range v.manifest.Plans {
		if v.manifest.Plans[i].Plan.Response.Events == "hook" {
			return fault(StepValidate, CodeUnsupported,
				"plans[%d] asks for on_event, which guests of Extism are not offered; build the plugin for the raw ABI, or leave response.events out", i)
		}
	}
	if v.guest.limits.fuel == l.widest.fuel {
		return nil
	}
	metered, report, f := l.meter(wasm, o, v.guest.limits)
	if f != nil {
		return f
	}
	code, digest, f := l.compile(ctx, metered, o)
	if f != nil {
		return f
	}
	v.guest.sandbox.close()
	v.guest.sandbox, v.report, v.code = code, report, digest
	return nil
}

// instantiateExtism is instantiate for a guest of Extism, which has no weir_abi: its manifest names the version.
func (g *guest) instantiateExtism(ctx context.Context, in *instance) (_ *instance, err error) {
	if in.apart, err = g.apart.Instance(in.ctx, extism.InstanceOptions{Memory: in.limit, Random: in.random, Stderr: &in.stderr}); err != nil {
		return nil, &violation{op: opInitialize, kind: violationTrap, cause: trapOf(err), stderr: in.stderr.String()}
	}
	if g.apart.Exports(extismStart) {
		in.begin(ctx, opInitialize, opInitialize, in.now, in.deadline)
		_, err = in.apart.Call(in.ctx, in, extismStart, nil, 0)
		if err != nil {
			err = in.brokeExtism(err)
		}
		in.end()
		if err != nil {
			in.close()
			return nil, err
		}
	}
	in.calls = 0
	return in, nil
}

// throughExtism is what within does for a guest of Extism once the call has begun. An operation that the guest does not export
// is one without an opinion.
func (in *instance) throughExtism(ctx context.Context, op, budget wire.Op, input []byte) ([]byte, error) {
	prefix := extismPrefix
	if budget == opExample {
		prefix = extismExample
	}
	export := prefix + op.String()
	if !in.owner.apart.Exports(export) || !slices.Contains(extismOps, op) {
		return nil, nil
	}
	out, err := in.apart.Call(ctx, in, export, input, int(outputLimit(op)))
	switch {
	case err != nil:
		return nil, in.brokeExtism(err)
	case in.first == 0:
		in.first = uint32(in.footprint())
	}
	if in.late {
		return nil, in.tooLate(true)
	}
	if len(out) == 0 {
		return nil, nil
	}
	return out, nil
}

// brokeExtism names what a call was that did not end well.
func (in *instance) brokeExtism(err error) *violation {
	v := &violation{op: in.op, kind: violationTrap, cause: trapOf(err), stderr: in.stderr.String()}
	late, refused, full := in.late, in.limit.refused, in.apart.Full()
	switch {
	case errors.Is(err, extism.ErrExit):
		v.kind = violationExit
	case errors.Is(err, extism.ErrOutput):
		v.kind, v.cause = violationOutput, fmt.Sprintf("%s: %v", opName(in.op), err)
	case errors.Is(err, extism.ErrLate) || late:
		late := in.tooLate(false)
		late.stderr = v.stderr
		return late
	case in.apart.Spent(in.ctx):
		v.kind, v.cause = violationFuel, fmt.Sprintf("%s used up its fuel of %d", opName(in.op), in.given)
	case errors.Is(err, extism.ErrMemory) || refused || full || len(in.limit.b) >= int(in.limit.pages)*pageBytes || strings.Contains(v.stderr, "out of memory"):
		v.kind = violationMemory
	}
	return v
}

// Enter lets a function of the host run, for extism.Host.
func (in *instance) Enter(slow bool) bool { return in.enter(slow) }

// Log writes a line of the guest, for extism.Host.
func (in *instance) Log(level int32, text []byte) { in.say(level, text) }
