package plugin

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime"
	"strings"
	"time"

	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/plugin/binary"
	"github.com/weirgate/weir/host/plugin/fuel"
	"github.com/weirgate/weir/host/plugin/manifest"
	"github.com/weirgate/weir/host/plugin/pack"
	"github.com/weirgate/weir/host/plugin/trust"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// source is one candidate: the bytes of a file, of a built-in plugin, or of what was put through the API.
type source struct {
	origin    Origin
	file      string // base name, or the name of the built-in
	yaml      bool
	bytes     []byte
	candidate bool    // it runs in shadow beside the active version of its name: what it does and keeps is its own
	name      string  // that its manifest must state, empty: any
	signature []byte  // in minisign's format, nil: none
	granted   *Grants // nil: what the lock and the settings say
	rehearsed bool    // it has what it asks for, as its author means it
	untrusted bool    // it is only looked at, so that nobody need have accepted it
	put       bool    // by the operator, which locks it
}

// loader turns sources into versions, to the side: it changes nothing that requests see (PLG-2).
type loader struct {
	hostVersion string
	cacheDir    string
	compileMode string
	child       Child
	widest      *limits // of any plugin, for a module that has no name yet
	observer    Observer
	log         *slog.Logger
	now         func() time.Time
	settings    func(name string) Settings
	requireEx   bool
	interpret   bool
	space       func(name string) *space
	counters    func(name string) *counters
	ward        func(name, digest string) *ward
	policy      trust.Policy
	lock        *trust.Lock
	trace       *trace // nil: nobody wants the steps
}

// load does the steps of PLG-2 and ABI-7 up to the examples. The version is held once, for the caller.
func (l *loader) load(ctx context.Context, src source) (*version, *Fault) {
	v, f := l.prepare(ctx, src)
	if f == nil {
		f = l.exemplify(ctx, v)
	}
	if f != nil {
		f.At, f.File = l.now(), src.file
		v.release()
		return nil, f
	}
	l.trace.done(StepExamples)
	return v, nil
}

// prepare is load without the examples. The version is held once, for the caller, also after a fault.
func (l *loader) prepare(ctx context.Context, src source) (v *version, f *Fault) {
	v = &version{origin: src.origin, candidate: src.candidate, size: len(src.bytes), closed: make(chan struct{})}
	v.holders.Store(1)
	if len(src.bytes) > MaxFile {
		return v, fault(StepRead, CodeTooLarge, "the file has %d bytes, at most %d are allowed", len(src.bytes), MaxFile)
	}
	v.digest = digestOf(src.bytes)
	wasm, node := src.bytes, (*document.Node)(nil)
	if src.yaml {
		if node, wasm, f = packYAML(src); f != nil {
			return v, f
		}
	}
	l.trace.done(StepRead)
	if f = l.admit(v, src); f != nil {
		return v, f
	}
	outline, f := precheck(wasm, l.widest)
	if f != nil {
		return v, f
	}
	l.trace.done(StepPrecheck)
	if f = l.describe(ctx, v, wasm, outline, node); f != nil {
		return v, f
	}
	v.loadedAt = l.now()
	if f = l.named(v, src); f != nil {
		return v, f
	}
	f = l.adopt(v, src, node)
	if f == nil && v.loader == loaderExtism {
		f = l.settle(ctx, v, wasm, outline)
	}
	if f == nil {
		l.trace.done(StepValidate)
	}
	return v, f
}

// packYAML makes a module of a YAML pack, after its manifest was found good.
func packYAML(src source) (*document.Node, []byte, *Fault) {
	node, faults := document.Parse(src.file, src.bytes)
	if len(faults) > 0 {
		f := fault(StepRead, CodeBadYAML, "%s", faults[0].Message)
		f.Line, f.Column = faults[0].Line, faults[0].Column
		return nil, nil, f
	}
	if _, problems, _ := manifest.Read(node, manifest.Options{Builtin: src.origin == OriginBuiltin}); len(problems) > 0 {
		return nil, nil, problemFault(StepValidate, problems)
	}
	wasm, err := pack.Pack(node.JSON(), src.bytes)
	if err != nil {
		return nil, nil, fault(StepRead, CodeTooLarge, "%v", err)
	}
	return node, wasm, nil
}

// describe finds the manifest: in the module's data when no code of it would ever run, else by asking a compiled guest.
func (l *loader) describe(ctx context.Context, v *version, wasm []byte, o *binary.Outline, node *document.Node) *Fault {
	if raw, ok := o.Custom[pack.ManifestSection]; ok {
		m, problems, warnings := readManifest(raw, node, manifest.Options{Builtin: v.origin == OriginBuiltin, Code: node == nil})
		if len(problems) > 0 {
			return problemFault(StepValidate, problems)
		}
		if isData(m) {
			v.loader, v.manifest, v.raw, v.warnings = loaderPack, m, bytes.Clone(raw), warnings
			return nil
		}
	}
	v.loader, v.pages = kindOf(o), o.Pages
	metered, report, f := l.meter(wasm, o, l.widest)
	if f != nil {
		return f
	}
	code, digest, f := l.compile(ctx, metered, o)
	if f != nil {
		return f
	}
	l.trace.done(StepCompile)
	v.report, v.code = report, digest
	v.guest = l.newGuest(code)
	v.guest.hold = v.tryHold
	if v.raw, f = v.guest.describeTwice(ctx, l.hostVersion, l.now()); f != nil {
		return f
	}
	l.trace.done(StepDescribe)
	m, problems, warnings := readManifest(v.raw, nil, manifest.Options{Builtin: v.origin == OriginBuiltin, Code: true})
	if len(problems) > 0 {
		return problemFault(StepValidate, problems)
	}
	v.manifest, v.warnings = m, warnings
	return nil
}

// newGuest is a guest without a name yet: nobody counts what it does, and it has the widest limits.
func (l *loader) newGuest(s sandbox) *guest {
	g := &guest{sandbox: s, log: l.log, clock: l.now, limits: l.widest, counters: &counters{}, ward: &ward{}}
	g.draining, g.drain = context.WithCancel(context.Background())
	g.pool.init(runtime.GOMAXPROCS(0))
	return g
}

// isData says whether the host can do all that the manifest states without running code (ABI-2.3).
func isData(m *manifest.Manifest) bool {
	if len(m.Hooks) > 0 || m.Is(wire.KindExecutor) && len(m.Plans) == 0 {
		return false
	}
	for i := range m.Plans {
		if m.Plans[i].Plan.Upstream == "none" {
			return false
		}
	}
	return true
}

// readManifest reads a manifest in JSON. Places are kept only for a YAML source: in describe's one line they help nobody.
func readManifest(raw []byte, node *document.Node, o manifest.Options) (*manifest.Manifest, []manifest.Problem, []manifest.Problem) {
	if node != nil {
		return manifest.Read(node, o)
	}
	n, faults := document.ParseJSON("", raw)
	if len(faults) > 0 {
		return nil, []manifest.Problem{{Code: manifest.Invalid, Message: "the manifest is not JSON: " + faults[0].Message}}, nil
	}
	m, problems, warnings := manifest.Read(n, o)
	for _, list := range [][]manifest.Problem{problems, warnings} {
		for i := range list {
			list[i].Line, list[i].Column = 0, 0
		}
	}
	return m, problems, warnings
}

// describeTwice asks two fresh instances, which must answer the same bytes (ABI-2).
func (g *guest) describeTwice(ctx context.Context, hostVersion string, now time.Time) ([]byte, *Fault) {
	input, _ := json.Marshal(map[string]any{"host": map[string]any{ // texts always encode
		"name": "weir", "version": hostVersion, "abi": "1.0", "features": []string{"rules", "event_hook", "kv", "http_fetch"},
	}})
	var said [2][]byte
	for i := range said {
		random, at := io.Reader(zeros{}), now
		if i > 0 { // what describe must not depend on is another for the second one
			random, at = rand.Reader, now.Add(time.Hour+time.Millisecond)
		}
		in, err := g.instantiate(ctx, newSpace(), random, at)
		if abi, ok := errors.AsType[errABI](err); ok {
			return nil, fault(StepInstantiate, CodeUnknownABI, "the module speaks ABI %d, this host speaks %d; rebuild it for that", uint32(abi), manifest.Major)
		}
		if err != nil {
			return nil, fault(StepInstantiate, CodeStart, "the module does not start: %v", err)
		}
		said[i], err = in.call(ctx, wire.OpDescribe, input, at, g.limits.wall[wire.OpDescribe])
		in.close()
		switch {
		case err != nil:
			return nil, fault(StepDescribe, CodeDescribe, "describe failed: %v", err)
		case said[i] == nil:
			return nil, fault(StepDescribe, CodeDescribe, "describe answered nothing; it must answer the manifest")
		}
	}
	if !bytes.Equal(said[0], said[1]) {
		return nil, fault(StepDescribe, CodeDiffers, "describe answered differently the second time; it must not depend on time, random or state")
	}
	return said[0], nil
}

// adopt gives the version its name with what belongs to it: grants, counters, kv, and the rule table.
func (l *loader) adopt(v *version, src source, node *document.Node) *Fault {
	m := v.manifest
	v.name = m.Name
	set := l.settings(v.name)
	v.order, v.config, v.failClosed = set.Order, set.Config, set.OnViolation == FailClosed
	v.counters = &counters{}
	if !v.candidate {
		v.counters = l.counters(v.name)
	}
	v.granted = l.granted(v, src, set)
	table, problems := rules.Parse(m.Rules, rules.Options{
		Plugin: v.name, Builtin: v.origin == OriginBuiltin, Terminate: v.granted.Terminate, Needs: m.Needs, Kinds: m.Kinds,
	})
	if len(problems) > 0 {
		return problemFault(StepValidate, ruleProblems(problems, node))
	}
	v.table = table
	if v.guest != nil {
		if f := l.christen(v, set); f != nil {
			return f
		}
	}
	if v.table.Len() == 0 && len(m.Hooks) == 0 || len(m.Examples) > 0 {
		return nil
	}
	if l.requireEx {
		return fault(StepExamples, CodeNoExamples, "the plugin has rules or hooks and no examples; add some, or set plugins.require_examples to false")
	}
	v.warnings = append(v.warnings, manifest.Problem{Field: "examples", Code: CodeNoExamples, Message: "rules or hooks without an example"})
	return nil
}

// christen gives the guest what belongs to its name.
func (l *loader) christen(v *version, set Settings) *Fault {
	g := v.guest
	g.name, g.counters, g.observer, g.log = v.name, v.counters, l.observer, l.log.With("plugin", v.name)
	v.ward = l.ward(v.name, v.digest)
	g.ward = v.ward
	g.kvQuota, g.kv = v.granted.KVBytes, newSpace()
	if !v.candidate { // what a candidate remembers is not for the active version
		g.kv = l.space(v.name)
	}
	g.settings, _ = json.Marshal(map[string]any{"config": orEmpty(v.config), "granted": v.granted}) // config was read as JSON
	g.limits = set.Limits.resolve().lowered(v.manifest.Limits)
	if v.pages > g.limits.pages {
		return fault(StepValidate, CodeMemoryLimit, "the module starts with %d pages of 64 KiB, above its limit of %d MiB; raise limits.memory_mib of this plugin",
			v.pages, g.limits.pages*pageBytes>>20)
	}
	if v.report.Body > g.limits.bodyKiB<<10 {
		return fault(StepValidate, string(fuel.BodyTooLarge), "the largest function has %d bytes, at most %d KiB are allowed; split it, or raise limits.body_kib of this plugin",
			v.report.Body, g.limits.bodyKiB)
	}
	return nil
}

func orEmpty(raw wire.Raw) wire.Raw {
	if len(raw) == 0 {
		return wire.Raw("{}")
	}
	return raw
}

// ruleProblems gives the problems of a table the form and the places of the manifest's own.
func ruleProblems(problems []rules.Problem, node *document.Node) []manifest.Problem {
	list := make([]manifest.Problem, len(problems))
	for i, p := range problems {
		path := "rules"
		if p.Index >= 0 {
			path = fmt.Sprintf("rules[%d]", p.Index)
		}
		if p.Field != "" {
			path += "." + p.Field
		}
		list[i] = manifest.Problem{Field: path, Code: p.Code, Message: p.Message}
		if p.Rule != "" {
			list[i].Message = "rule " + p.Rule + ": " + p.Message
		}
		if node != nil {
			list[i].Line, list[i].Column = node.Position(path)
		}
	}
	return list
}

// exemplify runs the examples. Those of built-in packs run in the project's own tests instead (ABI-2.4).
func (l *loader) exemplify(ctx context.Context, v *version) *Fault {
	if v.guest != nil {
		in, err := v.guest.instantiate(ctx, newSpace(), zeros{}, l.now())
		if err != nil {
			return fault(StepInstantiate, CodeStart, "the module does not start: %v", err)
		}
		err = in.configure(ctx, l.now())
		in.close()
		if err != nil {
			return fault(StepInstantiate, CodeStart, "configure: %v", err)
		}
	}
	if v.origin == OriginBuiltin {
		return nil
	}
	return v.examples(ctx)
}

// isYAML says whether the name is that of a pack's source.
func isYAML(name string) bool { return strings.HasSuffix(name, ".yaml") }
