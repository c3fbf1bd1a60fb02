package lockout

import (
	"slices"
	"strings"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/sdk/wire"
)

const (
	// retiredLock is how long a model that its provider took away is out (LOCK-19).
	retiredLock = 24 * time.Hour
	// detectors is the rule pack that knows no provider (CLS-11). What it finds says as little about whose failure it is as
	// the bare status does.
	detectors = "generic"
)

// Reply is what Narrow must know of the failed answer beside its verdict.
type Reply struct {
	Status int    // restated, as the host reads it
	Text   string // of the error, in any case of letters
	Own    bool   // a timeout of our own, which is nobody's failure (COOL-33)
}

// Narrow is the verdict with the scope that it has for t: a failure that the provider as such, or the settings, make one of
// the model alone gets scope model, so that the connection stays in use (LOCK-11 to LOCK-16, LOCK-19). It never widens a
// scope, and leaves alone what a rule of a provider or of the operator decided (RUL-3). It is asked once for each verdict,
// before anything acts on it, so that the gates and the rest of the request see the same.
func Narrow(at resilience.Moment, t catalog.Target, v wire.Verdict, r Reply) wire.Verdict {
	if v.Rejected || v.RequestScoped || r.Own || !lockable(t.Model) || v.Scope == wire.ScopeRequest || v.Scope == wire.ScopeNone {
		return v
	}
	if (r.Status == 404 || r.Status == 410) && !v.Terminal && retired(r.Text, t.Model) {
		v.Reason, v.Exact, v.Cooldown, v.Fallback = wire.ModelNotFound, true, max(v.Cooldown, retiredLock), true
		if v.Plugin == "" {
			v.Plugin, v.Rule = "host", "model-retired"
		}
		return model(v)
	}
	switch {
	case v.Scope != wire.ScopeConnection && v.Scope != wire.ScopeProvider:
		return v
	case v.Terminal:
		if endsCredits(v) && (t.Provider.Compatible || perModel(t, r.Status)) {
			return model(v) // COOL-56, COOL-57
		}
		return v
	case v.Reason == wire.RequestRejected, v.Plugin != "" && v.Plugin != detectors:
		return v
	case modelsOwn(t, r), at.Combo && v.Fallback && byStatus(at, v, r.Status):
		return model(v)
	}
	return v
}

// model is v about the model alone: no breaker, no terminal state (CLS-15).
func model(v wire.Verdict) wire.Verdict {
	v.Scope, v.Breaker, v.Terminal, v.SetStatus = wire.ScopeModel, false, false, ""
	return v
}

func endsCredits(v wire.Verdict) bool {
	return v.SetStatus == wire.CreditsExhausted || v.SetStatus == "" && v.Reason == wire.CreditsGone
}

// modelsOwn lists what always locks the model (LOCK-11, LOCK-13).
func modelsOwn(t catalog.Target, r Reply) bool {
	switch r.Status {
	case 404:
		return t.Provider.Category == catalog.Local || perModel(t, 404) || names(r.Text, t.Model)
	case 413:
		return names(r.Text, t.Model)
	case 504:
		return perModel(t, 504) || names(r.Text, t.Model)
	case 403:
		return perModel(t, 403) || strings.HasPrefix(t.Provider.ID, "grok")
	case 402, 429, 500, 502, 503:
		return perModel(t, r.Status)
	}
	return false
}

// byStatus is the generic lockout of combo targets, which the settings turn on (LOCK-10). Of what the detectors read in the
// text it takes only what passes by itself: that an account is used up or unknown is no model's failure.
func byStatus(at resilience.Moment, v wire.Verdict, status int) bool {
	s := at.Catalog.Settings.ModelLockout
	if !s.Enabled || !slices.Contains(s.ErrorCodes, status) {
		return false
	}
	switch v.Reason {
	case wire.RateLimitExceeded, wire.Overloaded, wire.ServerError, wire.Timeout:
		return true
	default:
		return v.Plugin == ""
	}
}

// perModel says whether an answer with this status is one model's at t's provider. Claude's accounts count one quota for all
// models, but fail for one (LOCK-13).
func perModel(t catalog.Target, status int) bool {
	if t.PerModelQuota() {
		return true
	}
	claude := (t.Provider.ID == "claude" || t.Provider.ID == "anthropic") && t.Connection.AuthType == wire.AuthOAuth
	return claude && t.Connection.Data["passthroughModels"] != "false" && (status == 404 || status >= 500)
}

// retired says whether an error text tells that its model is gone for good (LOCK-19).
func retired(text, model string) bool {
	text = strings.ToLower(text)
	gone := false
	for _, phrase := range [...]string{"no longer available", "has been shut down", "has been retired", "deprecated and"} {
		gone = gone || strings.Contains(text, phrase)
	}
	return gone && (strings.Contains(text, "model") || names(text, model))
}

// names says whether text names exactly this model, and not a longer name of which it is a part.
func names(text, model string) bool {
	text, model = strings.ToLower(text), strings.ToLower(strings.TrimSpace(model))
	for rest := text; model != ""; {
		i := strings.Index(rest, model)
		if i < 0 {
			return false
		}
		before, after := rest[:i], rest[i+len(model):]
		if !partOfName(before, true) && !partOfName(after, false) {
			return true
		}
		rest = rest[i+1:]
	}
	return false
}

// partOfName says whether a name goes on in text, before its end or after its start. A full stop or a colon ends a sentence
// unless another character of a name follows.
func partOfName(text string, before bool) bool {
	if text == "" {
		return false
	}
	if before {
		c := text[len(text)-1]
		return letter(c) || c == '-' || c == '_' || c == '.'
	}
	if c := text[0]; c == '.' || c == ':' {
		return len(text) > 1 && letter(text[1])
	}
	return letter(text[0]) || text[0] == '-' || text[0] == '_'
}

func letter(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c >= 0x80 }
