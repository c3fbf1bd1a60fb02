package devkit

import (
	"bytes"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/host/plugin/manifest"
	"github.com/weirgate/weir/host/plugin/pack"
	"github.com/weirgate/weir/rules"
)

// Outcome is how a step of a check ended.
type Outcome string

// The outcomes.
const (
	OK         Outcome = "ok"
	Faulty     Outcome = "fault"
	NotReached Outcome = "not reached"
)

// Step is one step of PLG-2.
type Step struct {
	Step     string    `json:"step"`
	Outcome  Outcome   `json:"outcome"`
	Findings []Finding `json:"faults,omitempty"`
}

// Finding is one thing that is wrong, or hardly meant, and its place when that is known.
type Finding struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Code    string `json:"code"`
	Message string `json:"message"` // field: what is wrong, and the mend
}

// String is file[:line:column]: message (code).
func (f Finding) String() string {
	where := f.File
	if f.Line > 0 {
		where = fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
	}
	return fmt.Sprintf("%s: %s (%s)", where, f.Message, f.Code)
}

// Report is what a check found.
type Report struct {
	File     string    `json:"file"`
	Name     string    `json:"name"`
	Version  string    `json:"version"`
	OK       bool      `json:"ok"` // a gateway without grants and settings for it would load it
	Steps    []Step    `json:"steps"`
	Warnings []Finding `json:"warnings"`
	status   plugin.Status
	module   []byte
}

// steps are those of PLG-2, in the order in which the runtime takes them: what belongs to other plugins comes last.
var steps = []string{
	plugin.StepRead, plugin.StepPrecheck, plugin.StepCompile, plugin.StepInstantiate, plugin.StepDescribe, plugin.StepValidate,
	plugin.StepExamples, plugin.StepActivate, plugin.StepPermissions,
}

// Check does all that a gateway does before a version goes live (PLG-2), and besides runs the code of a pack, whose describe
// must say what its data says (ABI-2.3), and lints the rules. An error means that the check could not be made.
func (k Kit) Check(ctx context.Context, file string) (Report, error) {
	r := Report{File: file, Warnings: []Finding{}}
	content, err := read(file)
	if err != nil {
		r.fill(&plugin.Fault{Step: plugin.StepRead, Code: plugin.CodeUnreadable, Message: err.Error()})
		return r, nil
	}
	if r.status, err = k.load(ctx, filepath.Base(file), content); err != nil {
		return r, err
	}
	r.Name, r.Version = r.status.Name, r.status.Version
	fault := r.status.Fault
	source, raw := r.texts(content)
	if raw != nil && (fault == nil || after(fault.Step, plugin.StepValidate)) {
		if fault, err = k.compare(ctx, &r, raw); err != nil {
			return r, err
		}
	}
	r.OK = fault == nil
	r.fill(fault)
	r.warn(source)
	return r, nil
}

// texts returns the YAML of the file, when that is what it is, and the manifest that a pack carries as data; it keeps the module.
func (r *Report) texts(content []byte) (source *document.Node, raw []byte) {
	r.module = content
	if filepath.Ext(r.File) == ".yaml" {
		node, faults := document.Parse(filepath.Base(r.File), content)
		if len(faults) > 0 {
			r.module = nil
			return nil, nil
		}
		source = node
		if r.module, _ = pack.Pack(node.JSON(), content); r.module == nil { // the load has said why
			return source, nil
		}
	}
	raw, _ = pack.Manifest(r.module)
	return source, raw
}

// compare asks the code of a module that carries its manifest as data what it says itself. It returns the fault that comes
// first, that of the code or that of the load.
func (k Kit) compare(ctx context.Context, r *Report, raw []byte) (*plugin.Fault, error) {
	said := r.status
	if said.Fault != nil || said.Loader == "pack" { // then maybe no code of it ran
		bare, err := without(r.module, pack.ManifestSection)
		if err != nil {
			return nil, err
		}
		if said, err = k.load(ctx, "module.wasm", bare); err != nil {
			return nil, err
		}
		if said.Fault != nil && !after(said.Fault.Step, plugin.StepDescribe) {
			return said.Fault, nil
		}
	}
	if said.Fault == nil && !bytes.Equal(said.Manifest, raw) || said.Fault != nil && r.status.Fault == nil {
		return &plugin.Fault{
			Step: plugin.StepDescribe, Code: plugin.CodeDiffers,
			Message: "describe answers another manifest than the section " + pack.ManifestSection + " holds; pack it again",
		}, nil
	}
	return r.status.Fault, nil
}

// after says whether the step comes later than the other one.
func after(step, other string) bool { return slices.Index(steps, step) > slices.Index(steps, other) }

// fill makes the lines of the steps from the fault that ended the load.
func (r *Report) fill(f *plugin.Fault) {
	outcome := OK
	for _, name := range steps {
		s := Step{Step: name, Outcome: outcome}
		if f != nil && f.Step == name {
			s.Outcome, s.Findings, outcome = Faulty, r.findings(f), NotReached
		}
		r.Steps = append(r.Steps, s)
	}
	if f == nil || f.Step != plugin.StepValidate || filepath.Ext(r.File) != ".yaml" {
		return
	}
	for i := range r.Steps[:slices.Index(steps, plugin.StepValidate)] { // of a source the manifest comes first: there is no module yet
		if r.Steps[i].Step != plugin.StepRead {
			r.Steps[i].Outcome = NotReached
		}
	}
}

// findings are all problems of a fault, in the order of their places.
func (r *Report) findings(f *plugin.Fault) []Finding {
	if len(f.Problems) == 0 {
		return []Finding{{File: r.File, Line: f.Line, Column: f.Column, Code: f.Code, Message: f.Message}}
	}
	var all []Finding
	for _, p := range f.Problems {
		all = append(all, r.finding(p))
	}
	return all
}

func (r *Report) finding(p manifest.Problem) Finding {
	return Finding{File: r.File, Line: p.Line, Column: p.Column, Code: p.Code, Message: p.String()}
}

// warn adds what does not stop a load: what the host warned of, and the lint of the rules.
func (r *Report) warn(source *document.Node) {
	for _, p := range r.status.Warnings {
		r.Warnings = append(r.Warnings, r.finding(p))
	}
	node := source
	if node == nil {
		node, _ = document.ParseJSON("", r.status.Manifest)
	}
	if node == nil {
		return
	}
	m, problems, _ := manifest.Read(node, manifest.Options{Code: source == nil})
	if len(problems) > 0 {
		return
	}
	table, _ := rules.Parse(m.Rules, rules.Options{Plugin: m.Name, Terminate: m.Permissions.Terminate != nil, Needs: m.Needs, Kinds: m.Kinds})
	for _, p := range rules.Lint(table, m.Examples...) {
		path := "rules"
		if p.Index >= 0 {
			path = fmt.Sprintf("rules[%d]", p.Index)
		}
		if p.Field != "" {
			path += "." + p.Field
		}
		f := Finding{File: r.File, Code: p.Code, Message: path + ": " + p.Message}
		if p.Rule != "" {
			f.Message = path + ": rule " + p.Rule + ": " + p.Message
		}
		if source != nil {
			f.Line, f.Column = source.Position(path)
		}
		r.Warnings = append(r.Warnings, f)
	}
}
