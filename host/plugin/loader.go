package plugin

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/weirgate/weir/host/plugin/binary"
	"github.com/weirgate/weir/host/plugin/trust"
)

// The loaders.
const (
	loaderPack   = "pack"   // data only; no code of the module runs
	loaderRaw    = "raw"    // the exports of ABI-1
	loaderExtism = "extism" // ABI-10
)

// kindOf says which loader a module with code is for, by what it imports. A module whose code never runs is a pack whatever it
// imports.
func kindOf(o *binary.Outline) string {
	for _, im := range o.Imports {
		if im.Module == "extism:host/env" {
			return loaderExtism
		}
	}
	return loaderRaw
}

// trace notes the steps of one load. A nil trace notes nothing. Not for concurrent use.
type trace struct {
	now   func() time.Time
	last  time.Time
	steps []Step
}

func newTrace(now func() time.Time) *trace { return &trace{now: now, last: now()} }

func (t *trace) done(step string) {
	if t != nil {
		t.steps = append(t.steps, Step{Step: step, OK: true, MS: t.took()})
	}
}

func (t *trace) took() int64 {
	now := t.now()
	ms := now.Sub(t.last).Milliseconds()
	t.last = now
	return ms
}

// report is what became of the load.
func (t *trace) report(v *version, f *Fault) Report {
	rep := Report{OK: f == nil, Steps: t.steps, Fault: f}
	if f != nil {
		rep.Steps = append(rep.Steps, Step{Step: f.Step, Code: f.Code, Message: f.Message, MS: t.took()})
	}
	if v != nil && v.manifest != nil {
		rep.Name, rep.Version, rep.Digest = v.manifest.Name, v.manifest.Version, v.digest
		for _, w := range v.warnings {
			rep.Warnings = append(rep.Warnings, w.String())
		}
	}
	return rep
}

// admit asks whether the bytes may be loaded at all, before anything of them is run (ABI-7 step 1). Built-in plugins are part of
// the program, and as trusted as that.
func (l *loader) admit(v *version, src source) *Fault {
	if src.origin == OriginBuiltin || src.untrusted {
		return nil
	}
	policy := l.policy
	if src.put && policy.Mode == trust.Locked { // it is locked by being put
		policy.Mode = trust.Open
	}
	by, r := policy.Admit(l.lock, stem(src.file), v.digest, src.bytes, src.signature)
	if r != nil {
		return fault(StepTrust, r.Code, "%s", r.Message)
	}
	v.signedBy = by
	l.trace.done(StepTrust)
	return nil
}

// named checks what depends on the name.
func (l *loader) named(v *version, src source) *Fault {
	name := v.manifest.Name
	if src.name != "" && src.name != name {
		return fault(StepValidate, CodeNameDiffers, "the manifest says that this is %s, not %s; put it under its own name", name, src.name)
	}
	if src.origin == OriginBuiltin || src.untrusted || src.put {
		return nil
	}
	if r := l.policy.Named(l.lock, name, v.digest); r != nil {
		return fault(StepTrust, r.Code, "%s", r.Message)
	}
	return nil
}

// granted is what the version may do (PLG-12): a built-in one what it declares, another what the operator granted to its name in
// the settings, and to its name and digest in the lock; one that its author tries has what it asks for.
func (l *loader) granted(v *version, src source, set Settings) Grants {
	asks := v.manifest.Permissions
	if src.origin == OriginBuiltin || src.rehearsed {
		return asked(asks)
	}
	locked := Grants{}
	if src.granted != nil {
		locked = *src.granted
	} else if e, ok := l.lock.Find(v.name, v.digest); ok {
		_ = json.Unmarshal(e.Granted, &locked) // what cannot be read grants nothing
	}
	return set.Grants.with(locked).within(asks)
}

// stem is the name of a file without the endings that say what it is.
func stem(file string) string {
	file = strings.TrimSuffix(strings.TrimSuffix(file, ".wasm"), ".yaml")
	return strings.TrimSuffix(file, ".shadow")
}
