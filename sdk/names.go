package sdk

import "github.com/weirgate/weir/sdk/wire"

// The documents of package wire that a Plugin is made of, under names that spare an author the import.
type (
	Match         = wire.Match
	Needs         = wire.Needs
	ProviderEntry = wire.Provider
	ModelEntry    = wire.Model
	PlanRow       = wire.PlanRow

	Permissions         = wire.Permissions
	HTTPPermission      = wire.HTTPPermission
	KVPermission        = wire.KVPermission
	SecretPermission    = wire.SecretPermission
	TerminatePermission = wire.TerminatePermission
	ProvidersPermission = wire.ProvidersPermission

	Dialect     = wire.Dialect
	Limits      = wire.Limits
	AnswerEvent = wire.AnswerEvent
	Raw         = wire.Raw // JSON as it is
)

// The wire formats of a provider (ABI-3).
const (
	OpenAIChat        = wire.OpenAIChat
	OpenAIResponses   = wire.OpenAIResponses
	AnthropicMessages = wire.AnthropicMessages
	GeminiGenerate    = wire.GeminiGenerate
	RawDialect        = wire.RawDialect
)

// The ways in which an account authenticates (ABI-2.2).
const (
	AuthAPIKey = wire.AuthAPIKey
	AuthOAuth  = wire.AuthOAuth
	AuthLocal  = wire.AuthLocal
)

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

// The terminal states that a terminal verdict may name (SetStatus).
const (
	StateBanned           = wire.Banned
	StateExpired          = wire.Expired
	StateCreditsExhausted = wire.CreditsExhausted
)
