package plugin

import (
	"fmt"
	"time"

	"github.com/weirgate/weir/host/plugin/manifest"
)

// The steps of a load, in their order (PLG-2).
const (
	StepRead        = "read"
	StepTrust       = "trust"
	StepPrecheck    = "precheck"
	StepCompile     = "compile"
	StepInstantiate = "instantiate"
	StepDescribe    = "describe"
	StepValidate    = "validate"
	StepPermissions = "permissions"
	StepExamples    = "examples"
	StepActivate    = "activate"
)

// Codes of faults (PLG-14). Problems of a manifest or rule table that have a code of their own keep it.
const (
	CodeUnreadable     = "unreadable"
	CodeTooLarge       = "too_large"
	CodeBadYAML        = "yaml_invalid"
	CodeNotWasm        = "not_wasm"
	CodeComponent      = "component"
	CodeMalformed      = "module_malformed"
	CodeModuleLimit    = "module_limit"
	CodeMemoryLimit    = "memory_limit"
	CodeMissingExport  = "missing_export"
	CodeExportType     = "export_type"
	CodeUnknownImport  = "unknown_import"
	CodeCompile        = "compile_failed"
	CodeCompileTimeout = "compile_timeout"
	CodeStart          = "start_failed"
	CodeUnknownABI     = manifest.UnknownABI
	CodeDescribe       = "describe_failed"
	CodeDiffers        = "describe_differs"
	CodeManifest       = manifest.Invalid
	CodeUnsupported    = manifest.Unsupported
	CodeNameDiffers    = "name_differs"
	CodeNameTaken      = "name_taken"
	CodeProviderTaken  = "provider_taken"
	CodeQuarantined    = "quarantined"
	CodeExample        = "example_failed"
	CodeNoExamples     = "examples_missing"
)

// Fault is why a version was refused: the step, a code to branch on, and a sentence with the mend.
type Fault struct {
	Step     string             `json:"step"`
	Code     string             `json:"code"`
	Message  string             `json:"message"`
	At       time.Time          `json:"at"`
	File     string             `json:"file,omitempty"`
	Line     int                `json:"line,omitempty"` // of a YAML source
	Column   int                `json:"column,omitempty"`
	Problems []manifest.Problem `json:"problems,omitempty"` // all of them, when there are several
}

// Error is [file:line:column: ]step: message (code).
func (f *Fault) Error() string {
	where := ""
	if f.File != "" {
		where = f.File + ": "
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d:%d: ", f.File, f.Line, f.Column)
		}
	}
	return fmt.Sprintf("%s%s: %s (%s)", where, f.Step, f.Message, f.Code)
}

func fault(step, code, format string, args ...any) *Fault {
	return &Fault{Step: step, Code: code, Message: fmt.Sprintf(format, args...)}
}

// problemFault is the fault for problems of a manifest or table: the first one speaks, all are kept. A problem with a code
// of its own goes before the general ones.
func problemFault(step string, ps []manifest.Problem) *Fault {
	lead := ps[0]
	for _, p := range ps {
		if p.Code != manifest.Invalid {
			lead = p
			break
		}
	}
	f := &Fault{Step: step, Code: lead.Code, Message: lead.String(), Line: lead.Line, Column: lead.Column, Problems: ps}
	if len(ps) > 1 {
		f.Message = fmt.Sprintf("%s; and %d more", f.Message, len(ps)-1)
	}
	return f
}
