package plugin

import (
	"fmt"
	"time"

	"github.com/weirgate/weir/sdk/wire"
)

// Problem is why a change was not made: a code to branch on, a sentence with the mend, and the status that an HTTP surface
// answers. A candidate that does not pass its checks is no Problem: that stands in the Report.
type Problem struct {
	Code    string
	Message string
	Status  int
}

// Error is the sentence.
func (p *Problem) Error() string { return p.Message }

func problem(status int, code, format string, args ...any) *Problem {
	return &Problem{Code: code, Message: fmt.Sprintf(format, args...), Status: status}
}

// Codes of problems (PLG-10, PLG-15).
const (
	CodeNotFound      = "plugin_not_found"
	CodeManagedByFile = "managed_by_file" // the folder or the configuration file decides
	CodeBuiltin       = "builtin"         // a built-in plugin is overridden or switched off, never deleted
	CodeBadMode       = "mode_invalid"
	CodeBadName       = "name_invalid"
	CodeGrantTooWide  = "grant_too_wide"
	CodeNoEarlier     = "no_earlier_version"
	CodeNoCandidate   = "no_candidate"
	CodeNotKept       = "not_kept" // the data folder could not be written
	CodeStale         = "version_unusable"
)

// Step is how one step of a load went.
type Step struct {
	Step    string `json:"step"`
	OK      bool   `json:"ok"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	MS      int64  `json:"ms"`
}

// Report is how a candidate passed the steps of PLG-2, up to the first that failed.
type Report struct {
	OK       bool     `json:"ok"`
	Name     string   `json:"name,omitempty"` // empty: the manifest was not read
	Version  string   `json:"version,omitempty"`
	Digest   string   `json:"digest,omitempty"`
	Steps    []Step   `json:"steps"`
	Warnings []string `json:"warnings,omitempty"`
	Fault    *Fault   `json:"fault,omitempty"` // of the step that failed; with line and column for a pack's source
}

// PutOptions say how a module is put.
type PutOptions struct {
	Mode      string  // ModeActive, also when empty, or ModeShadow: a candidate beside the active version
	Signature []byte  // in minisign's format; nil: none
	Grants    *Grants // nil: what was granted to this digest before, if anything
	Source    string  // where it came from, for the lock file
}

// VersionInfo is one version that is kept of a plugin.
type VersionInfo struct {
	Digest    string    `json:"digest"`
	Version   string    `json:"version"`
	Origin    Origin    `json:"origin"`
	AddedAt   time.Time `json:"addedAt"`
	State     string    `json:"state"` // StateActive and the like of what is loaded, StateDisabled of what is only kept
	Active    bool      `json:"active"`
	Candidate bool      `json:"candidate,omitempty"`
	SignedBy  *string   `json:"signedBy"`
}

// Tally is how the verdicts of a shadow compare with those that counted (PLG-4).
type Tally struct {
	Agreed   int64 `json:"agreed"`
	Differed int64 `json:"differed"`
	Failed   int64 `json:"failed"`  // the shadow trapped, ran out of fuel, was busy or answered garbage
	Dropped  int64 `json:"dropped"` // not compared, since too much else was waiting
}

// Difference is one answer that a shadow would have read otherwise. Texts are redacted.
type Difference struct {
	At       time.Time `json:"at"`
	Provider string    `json:"provider"`
	Model    string    `json:"model"`
	Endpoint string    `json:"endpoint"`
	Status   int       `json:"status"`  // as it came; 0: no HTTP answer
	Excerpt  string    `json:"excerpt"` // of the body's message
	Counted  Opinion   `json:"counted"`
	Shadow   Opinion   `json:"shadow"`
}

// Opinion is what a chain of plugins made of an answer.
type Opinion struct {
	Status    int      `json:"status"`             // restated, or as it came
	Restated  string   `json:"restated,omitempty"` // plugin/rule, empty: it was not
	DecidedBy string   `json:"decidedBy"`          // plugin/rule; empty: the host, by status
	Verdict   wire.Raw `json:"verdict"`
}

// Detail is a plugin with all that is known of it (PLG-15).
type Detail struct {
	Status
	Manifest    wire.Raw     `json:"manifest"`
	Differences []Difference `json:"differences"`         // of its shadow, the newest first, at most 50
	Candidate   *Status      `json:"candidate,omitempty"` // the version that runs in shadow beside the active one
	Hidden      []Status     `json:"hidden,omitempty"`    // the same name from places that lose (PLG-16)
}
