package sdk

import "github.com/weirgate/weir/sdk/wire"

// The canonical reasons, under the names that rules read well with.
const (
	RateLimitExceeded  = wire.RateLimitExceeded
	ConcurrencyLimited = wire.ConcurrencyLimited
	QuotaExhausted     = wire.QuotaExhausted
	CreditsExhausted   = wire.CreditsGone
	AuthError          = wire.AuthError
	Banned             = wire.ReasonBanned
	Expired            = wire.ReasonExpired
	RequestRejected    = wire.RequestRejected
	ModelAccessDenied  = wire.ModelAccessDenied
	ModelNotFound      = wire.ModelNotFound
	ContextOverflow    = wire.ContextOverflow
	ContentFiltered    = wire.ContentFiltered
	InvalidRequest     = wire.InvalidRequest
	Overloaded         = wire.Overloaded
	ServerError        = wire.ServerError
	Timeout            = wire.Timeout
	NetworkError       = wire.NetworkError
	ServiceNotRunning  = wire.ServiceNotRunning
	Unknown            = wire.Unknown
)

// The scopes.
const (
	OneRequest = wire.ScopeRequest
	Model      = wire.ScopeModel
	Connection = wire.ScopeConnection
	Provider   = wire.ScopeProvider
)

// OpenAIChat is the dialect of chat completions.
const OpenAIChat = wire.OpenAIChat
