package rules

import (
	"strings"
	"time"

	"github.com/weirgate/weir/sdk/wire"
)

// unanswered reports whether the attempt got no HTTP answer, or lost it on the way.
func unanswered(r *Reply) bool {
	return r.Source == wire.SourceTransport || r.Status == 0
}

// HostStatus returns the host's own reading of a status that clients do not know (RST-10): 520 becomes 502, 524 becomes
// 504, and no answer 502, or 504 when the time ran out. Any other status, a restated one above all, is returned as it
// is. It needs no body and is no restatement. Reply.Status itself stays 0 for rules and hooks (ABI-4).
func HostStatus(r *Reply) int {
	switch {
	case r.Restated != "":
		return r.Status
	case unanswered(r):
		if r.Facts.Code == wire.TransportTimeout {
			return 504
		}
		return 502
	case r.Status == 520:
		return 502
	case r.Status == 524:
		return 504
	}
	return r.Status
}

// ByStatus is the host's verdict when no rule and no hook has one (CLS-13). It looks at the status alone; the wait is the
// one that the answer itself carries.
func ByStatus(r *Reply) wire.Verdict {
	v := verdict{confidence: 100}
	v.reason = bareReason(r)
	v.scope, v.fallback = v.reason.DefaultScope(), v.reason.DefaultFallback()
	switch {
	case r.Status == 503 && v.reason == wire.Overloaded:
		v.scope = wire.ScopeProvider
	case v.reason == wire.CreditsGone && compatible(r.Provider):
		v.scope = wire.ScopeModel // COOL-56: what stands behind a generic endpoint is not one account
	case v.reason == wire.CreditsGone:
		v.terminal, v.setStatus = true, wire.CreditsExhausted // COOL-55
	}
	return v.complete(r, said{})
}

func bareReason(r *Reply) wire.Reason {
	if unanswered(r) && r.Restated == "" {
		if HostStatus(r) == 504 {
			return wire.Timeout
		}
		return wire.NetworkError
	}
	switch status := HostStatus(r); status {
	case 401, 403:
		return wire.AuthError
	case 402:
		if r.Restated != "" {
			return wire.QuotaExhausted // RST-9: a bare restated status never ends an account
		}
		return wire.CreditsGone
	case 408, 504:
		return wire.Timeout
	case 413:
		return wire.ContextOverflow
	case 400, 405, 409, 415, 422:
		return wire.InvalidRequest
	case 429:
		return wire.RateLimitExceeded
	case 503, 529:
		return wire.Overloaded
	default:
		if 500 <= status && status <= 599 {
			return wire.ServerError
		}
	}
	return wire.Unknown
}

// compatible reports whether the provider is a generic endpoint of the operator's own (COOL-56).
func compatible(provider string) bool {
	provider = strings.ToLower(provider)
	return strings.HasPrefix(provider, "openai-compatible-") || strings.HasPrefix(provider, "anthropic-compatible-")
}

// said is the time that a rule found in an answer, or states.
type said struct {
	wait   time.Duration
	source string
}
