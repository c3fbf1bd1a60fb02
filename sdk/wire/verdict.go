//go:build !wasip1

package wire

import "time"

// What the host makes of an answer. A guest states it as JSON and never holds it, and package time would make it larger.

// Restatement is the true status of a misleading answer (ABI-4, RST-3).
type Restatement struct {
	Status     int           `json:"status"`
	Code       string        `json:"code,omitempty"`
	Note       string        `json:"note,omitempty"`
	RetryAfter time.Duration `json:"-"` // told to the client only (RST-6)
	Keep       bool          `json:"-"` // the rule stops the search and changes nothing
	Rejected   bool          `json:"-"` // with Keep: the plugin failed and is not to be gone without; the verdict is Rejection
	Plugin     string        `json:"-"`
	Rule       string        `json:"-"`
	Digest     string        `json:"-"` // of the plugin version that decided (ABI-9)
}

// Verdict is the meaning of a failed answer, complete: what a rule or hook left out was filled from the reason (ABI-4).
type Verdict struct {
	Reason        Reason
	Scope         Scope
	Fallback      bool
	Breaker       bool          // count_for_breaker
	SkipBreaker   bool          // the rule or hook itself said count_for_breaker: false (BRK-11)
	Terminal      bool          // only with scope connection
	SetStatus     TerminalState // with Terminal
	RetryAfter    time.Duration // what the answer said; 0: nothing
	Hinted        bool          // RetryAfter was said by the answer or by a rule that read it
	HintSource    string        // which header, field or text gave RetryAfter (COOL-6)
	Cooldown      time.Duration // a length that the rule's author chose; 0: none
	Exact         bool          // this model only; Cooldown as given (LOCK-25)
	RequestScoped bool          // COOL-45
	Message       string        // shown to the client in place of the upstream's text
	Confidence    int
	Plugin        string
	Rule          string
	Digest        string
	Rejected      bool // a Rejection
}

// Rejection is the verdict where a plugin whose on_violation is fail_closed has none (ABI-8): this target is left for another,
// and nothing is counted against anybody.
func Rejection(plugin, rule, digest string) Verdict {
	return Verdict{Reason: Unknown, Scope: ScopeRequest, Fallback: true, Plugin: plugin, Rule: rule, Digest: digest, Rejected: true}
}

// Evidence names who decided, as plugin/rule.
func (v Verdict) Evidence() string {
	if v.Rule == "" {
		return v.Plugin
	}
	return v.Plugin + "/" + v.Rule
}
