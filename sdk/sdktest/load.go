package sdktest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/plugin/fuel"
	"github.com/weirgate/weir/host/plugin/manifest"
	"github.com/weirgate/weir/sdk/internal/examples"
	"github.com/weirgate/weir/sdk/wire"
)

// checker is one check under way: each step leaves what the next ones need.
type checker struct {
	kit    Kit
	wasm   []byte
	report func(Step)
	out    Report

	metered []byte
	box     *sandbox
	raw     []byte // the manifest
	about   *manifest.Manifest
}

func (c *checker) close() {
	if c.box != nil {
		c.box.close()
	}
}

// now is the host's time in all steps.
const now = int64(1_790_000_000_000)

// module checks and meters the structure (ABI-7, steps 2 to 4).
func (c *checker) module(ctx context.Context) finding {
	if len(c.wasm) > 32<<20 {
		return wrong("too_large", "the file has %d bytes, at most %d are allowed", len(c.wasm), 32<<20)
	}
	metered, report, err := fuel.Rewrite(c.wasm, fuel.Options{})
	if err != nil {
		code, message := refusal(err)
		return wrong(code, "%s", message)
	}
	c.metered, c.out.Metered, c.out.Functions = metered, len(metered), report.Functions
	if c.box, err = newSandbox(ctx, metered); err != nil {
		return wrong("compile_failed", "the module does not compile: %s", firstLine(err))
	}
	return fine("%d bytes, %d functions, the largest of %d bytes", len(c.wasm), report.Functions, report.Body)
}

// exports compares the exports with the table of ABI-1.
func (c *checker) exports(context.Context) finding {
	if len(c.box.code.ExportedMemories()) != 1 || c.box.code.ExportedMemories()["memory"] == nil {
		return wrong("missing_export", "the module does not export its memory as memory; build it with the sdk, or export it")
	}
	has := c.box.code.ExportedFunctions()
	for _, want := range []struct {
		name, typ string
		optional  bool
	}{{"weir_abi", "()->(i32)", false}, {"weir_alloc", "(i32)->(i32)", false}, {"weir_call", "(i32 i32)->(i64)", false}, {"_initialize", "()->()", true}} {
		f, ok := has[want.name]
		switch {
		case !ok && want.optional:
		case !ok:
			return wrong("missing_export", "the module does not export %s; build it with -buildmode=c-shared and the sdk", want.name)
		case signature(f) != want.typ:
			return wrong("export_type", "the export %s is %s, it must be %s", want.name, signature(f), want.typ)
		}
	}
	return finding{outcome: Passed}
}

func signature(f api.FunctionDefinition) string {
	list := func(ts []api.ValueType) string {
		names := make([]string, len(ts))
		for i, t := range ts {
			names[i] = api.ValueTypeName(t)
		}
		return strings.Join(names, " ")
	}
	return "(" + list(f.ParamTypes()) + ")->(" + list(f.ResultTypes()) + ")"
}

// imports looks whether a host has what the module needs.
func (c *checker) imports(context.Context) finding {
	if list := c.box.code.ImportedMemories(); len(list) > 0 {
		return wrong("unknown_import", "the module imports a memory; it must have its own")
	}
	count := map[string]int{}
	for _, f := range c.box.code.ImportedFunctions() {
		module, name, _ := f.Import()
		host, ok := c.box.host[module]
		if !ok || host.ExportedFunctions()[name] == nil {
			return wrong("unknown_import", "the module needs %s.%s, a host has ABI 1.0", module, name)
		}
		if has := signature(host.ExportedFunctions()[name]); has != signature(f) {
			return wrong("unknown_import", "the module imports %s.%s as %s, a host has it as %s", module, name, signature(f), has)
		}
		count[module]++
	}
	return fine("%d of weir, %d of WASI", count["weir"], count["wasi_snapshot_preview1"])
}

// start brings an instance up and asks for its version (ABI-7, step 5).
func (c *checker) start(ctx context.Context) finding {
	g, err := c.box.fresh(ctx, now, false)
	if err != nil {
		return wrong("start_failed", "the module does not start: %v", err)
	}
	defer g.close()
	spent := g.spent
	major, err := g.abi(ctx)
	switch {
	case err != nil:
		return wrong("start_failed", "weir_abi: %v", err)
	case major != 1:
		return wrong(manifest.UnknownABI, "the module speaks ABI %d, this kit knows 1; rebuild it", major)
	}
	return fine("%d KiB of memory, %d fuel", g.memory.Size()>>10, spent)
}

// describeInput is what a host says of itself.
const describeInput = `{"host":{"name":"weir","version":"1.0.0","abi":"1.0","features":["rules","event_hook","kv","http_fetch"]}}`

// describe asks two fresh instances at different times and with different random: they must answer the same bytes (ABI-2).
func (c *checker) describe(ctx context.Context) finding {
	var said [2][]byte
	for i := range said {
		g, err := c.box.fresh(ctx, now+int64(i)*3_600_001, i > 0)
		if err != nil {
			return wrong("start_failed", "the module does not start: %v", err)
		}
		said[i], err = g.call(ctx, wire.OpDescribe, []byte(describeInput))
		if c.out.MemoryFirst == 0 {
			c.out.MemoryFirst = g.memory.Size()
		}
		g.close()
		switch {
		case err != nil:
			return wrong("describe_failed", "describe: %v", err)
		case said[i] == nil:
			return wrong("describe_failed", "describe answered nothing; it must answer the manifest")
		}
	}
	if !bytes.Equal(said[0], said[1]) {
		return wrong("describe_differs", "describe answered differently the second time; it must not depend on time, random or state")
	}
	c.raw = said[0]
	return fine("%d bytes", len(c.raw))
}

// manifest reads what describe said, with its rule table.
func (c *checker) manifest(context.Context) finding {
	node, faults := document.ParseJSON("", c.raw)
	if len(faults) > 0 {
		return wrong(manifest.Invalid, "the manifest is not JSON: %s", faults[0].Message)
	}
	m, problems, warnings := manifest.Read(node, manifest.Options{Code: true})
	var later []string
	for _, p := range problems {
		if p.Code != manifest.Unsupported {
			return wrong(p.Code, "%s", p)
		}
		later = append(later, p.String())
	}
	c.about, c.out.Name, c.out.Version = m, m.Name, m.Version
	if mib := m.Limits.MemoryMiB; mib > 0 {
		c.box.limit = uint64(mib) << 20
		if uint64(c.out.MemoryFirst) > c.box.limit {
			return wrong("memory_limit", "the module has %d KiB of memory after its start, above its own limit of %d MiB", c.out.MemoryFirst>>10, mib)
		}
	}
	if _, err := examples.New(&m.Manifest, nil); err != nil {
		return wrong("rule_invalid", "%v", err)
	}
	for _, w := range warnings {
		later = append(later, w.String())
	}
	if len(later) > 0 {
		return warning("%s %s: %s", m.Name, m.Version, strings.Join(later, "; "))
	}
	return fine("%s %s: %s", m.Name, m.Version, strings.Join(m.Kinds, ", "))
}

// configure configures an instance with nothing, as a host does when the operator said nothing.
func (c *checker) configure(ctx context.Context) finding {
	g, err := c.box.fresh(ctx, now, false)
	if err != nil {
		return wrong("start_failed", "%v", err)
	}
	defer g.close()
	out, err := g.call(ctx, wire.OpConfigure, []byte(configureInput))
	if err != nil {
		return wrong("start_failed", "configure: %v", err)
	}
	if declined, f := c.answered(wire.OpConfigure, out); f != nil {
		return *f
	} else if declined != "" {
		return warning("it refuses an empty configuration (%s), so that it does nothing before an operator configures it", declined)
	}
	return finding{outcome: Passed}
}

const configureInput = `{"config":{},"granted":{}}`

// ready is a configured instance.
func (c *checker) ready(ctx context.Context, nowMS int64) (*guest, error) {
	g, err := c.box.fresh(ctx, nowMS, false)
	if err != nil {
		return nil, err
	}
	if _, err := g.call(ctx, wire.OpConfigure, []byte(configureInput)); err != nil {
		g.close()
		return nil, fmt.Errorf("configure: %w", err)
	}
	return g, nil
}

// kindOf is the row of ABI-8 that an error is.
func kindOf(err error) string {
	if b, ok := errors.AsType[*broken](err); ok {
		return b.kind
	}
	return "failed"
}
