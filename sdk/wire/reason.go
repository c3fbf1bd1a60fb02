package wire

// Reason is the short word for the cause of a failure. The same word is the branch in code, the log field, the metric
// label and the API value.
type Reason string

// The canonical reasons.
const (
	RateLimitExceeded  Reason = "rate_limit_exceeded"
	ConcurrencyLimited Reason = "concurrency_limited"
	QuotaExhausted     Reason = "quota_exhausted"
	CreditsGone        Reason = "credits_exhausted"
	AuthError          Reason = "auth_error"
	ReasonBanned       Reason = "banned"
	ReasonExpired      Reason = "expired"
	RequestRejected    Reason = "request_rejected"
	ModelAccessDenied  Reason = "model_access_denied"
	ModelNotFound      Reason = "model_not_found"
	ContextOverflow    Reason = "context_overflow"
	ContentFiltered    Reason = "content_filtered"
	InvalidRequest     Reason = "invalid_request"
	Overloaded         Reason = "overloaded"
	ServerError        Reason = "server_error"
	Timeout            Reason = "timeout"
	NetworkError       Reason = "network_error"
	ServiceNotRunning  Reason = "service_not_running"
	Unknown            Reason = "unknown"
	NoReason           Reason = "none"
)

// Reasons lists the canonical reasons in the order of the glossary.
func Reasons() []Reason {
	return []Reason{
		RateLimitExceeded, ConcurrencyLimited, QuotaExhausted, CreditsGone, AuthError, ReasonBanned, ReasonExpired,
		RequestRejected, ModelAccessDenied, ModelNotFound, ContextOverflow, ContentFiltered, InvalidRequest, Overloaded,
		ServerError, Timeout, NetworkError, ServiceNotRunning, Unknown, NoReason,
	}
}

// ParseReason returns the canonical reason for s. The older words model_capacity, not_found and forbidden are read as
// their canonical ones; any other word is refused.
func ParseReason(s string) (Reason, bool) {
	switch s {
	case "model_capacity":
		return Overloaded, true
	case "not_found":
		return ModelNotFound, true
	case "forbidden":
		return ModelAccessDenied, true
	}
	for _, r := range Reasons() {
		if string(r) == s {
			return r, true
		}
	}
	return "", false
}

// Scope says what a verdict applies to.
type Scope string

// The scopes. ScopeNone goes only with NoReason.
const (
	ScopeRequest    Scope = "request"
	ScopeModel      Scope = "model"
	ScopeConnection Scope = "connection"
	ScopeProvider   Scope = "provider"
	ScopeNone       Scope = "none"
)

// ParseScope returns the scope that s names.
func ParseScope(s string) (Scope, bool) {
	switch sc := Scope(s); sc {
	case ScopeRequest, ScopeModel, ScopeConnection, ScopeProvider, ScopeNone:
		return sc, true
	}
	return "", false
}

// DefaultScope is the scope of a verdict that names only a reason (ABI-4).
func (r Reason) DefaultScope() Scope {
	switch r {
	case RateLimitExceeded, ConcurrencyLimited, QuotaExhausted, CreditsGone, AuthError, ReasonBanned, ReasonExpired,
		RequestRejected, Unknown:
		return ScopeConnection
	case ModelAccessDenied, ModelNotFound, Overloaded:
		return ScopeModel
	case ServerError, Timeout, NetworkError, ServiceNotRunning:
		return ScopeProvider
	case ContextOverflow, ContentFiltered, InvalidRequest:
		return ScopeRequest
	case NoReason:
		return ScopeNone
	}
	return ScopeConnection
}

// DefaultFallback says whether a verdict that names only a reason lets another target be tried (ABI-4).
func (r Reason) DefaultFallback() bool { return r != InvalidRequest && r != NoReason }

// DefaultBreaker says whether a failure counts for the provider's breaker when the verdict does not say so: only with
// scope provider and one of the (restated) statuses 408, 500, 502, 503, 504.
func DefaultBreaker(s Scope, status int) bool {
	if s != ScopeProvider {
		return false
	}
	switch status {
	case 408, 500, 502, 503, 504:
		return true
	}
	return false
}

// DefaultTerminal is the terminal state that a terminal verdict means when it names none.
func (r Reason) DefaultTerminal() (TerminalState, bool) {
	switch r {
	case ReasonBanned:
		return Banned, true
	case CreditsGone:
		return CreditsExhausted, true
	case ReasonExpired, AuthError:
		return Expired, true
	}
	return "", false
}
