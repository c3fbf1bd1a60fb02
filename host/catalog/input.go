package catalog

import (
	"encoding/json"
	"time"

	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

// Input is the objects of one source: the file, or the store.
type Input struct {
	Name        string         // of the source, for faults: weir.yaml, the store
	Root        *document.Node // the document whose places faults carry; nil: none
	Providers   []Entry[ProviderInput]
	Connections []Entry[ConnectionInput]
	Combos      []Entry[ComboInput]
	Aliases     []Entry[AliasInput]
	Keys        []Entry[KeyInput]
	Settings    settings.Stored
	Protection  map[string]bool // rateLimitProtection of connections that this source does not hold, by id (OBJ-5)
	Unreadable  error           // documents of the store that could not be read; Build warns of them
}

// Entry is one object with its owner and place. The zero Meta is filled by Build.
type Entry[T any] struct {
	Object T
	Meta   Meta
	Path   string // in the document of the source: connections[0]
	// CredentialRevision is kept by the store for its connections; 0: Build counts.
	CredentialRevision uint64
	// Saving marks an object that is being written through the API: its faults are returned, with paths inside of it,
	// in place of leaving it out (OBJ-9, CMB-1).
	Saving bool
}

// Millis is a time in integer milliseconds in the API; the file writes a duration in its place (OBJ-1).
type Millis int64

// Duration returns m as a duration.
func (m Millis) Duration() time.Duration { return time.Duration(m) * time.Millisecond }

// ModelInput is one model of an operator's own provider; also just its id.
type ModelInput struct {
	ID              string   `json:"id" file:"id"`
	Name            string   `json:"name,omitempty" file:"name"`
	ContextWindow   int      `json:"contextWindow,omitempty" file:"context_window"`
	MaxOutput       int      `json:"maxOutput,omitempty" file:"max_output"`
	InputModalities []string `json:"inputModalities,omitempty" file:"input_modalities"`
	Reasoning       bool     `json:"reasoning,omitempty" file:"reasoning"`
}

// ProviderInput adds a provider, or changes the given fields of one that a plugin describes (OBJ-2).
type ProviderInput struct {
	ID                string                  `json:"id" file:"id"`
	Name              *string                 `json:"name,omitempty" file:"name"`
	Executor          *string                 `json:"executor,omitempty" file:"executor"`
	Category          *Category               `json:"category,omitempty" file:"category"`
	Auth              *wire.Auth              `json:"auth,omitempty" file:"auth"`
	BaseURL           *string                 `json:"baseUrl,omitempty" file:"base_url"`
	Dialects          map[string]wire.Dialect `json:"dialects,omitempty" file:"dialects"`
	Aliases           []string                `json:"aliases,omitempty" file:"aliases"`
	Models            []ModelInput            `json:"models,omitempty" file:"models"`
	PassthroughModels *bool                   `json:"passthroughModels,omitempty" file:"passthrough_models"`
	PerModelQuota     *bool                   `json:"perModelQuota,omitempty" file:"per_model_quota"`
	AssistantPrefill  *bool                   `json:"assistantPrefill,omitempty" file:"assistant_prefill"`
	Translation       []string                `json:"translation,omitempty" file:"translation"`
	Headers           map[string]string       `json:"headers,omitempty" file:"headers"`
	AllowPrivate      *bool                   `json:"allowPrivate,omitempty" file:"allow_private"`
}

// ConnectionInput is one account as people write it (OBJ-8).
type ConnectionInput struct {
	ID                    string                     `json:"id" file:"id"`
	Provider              string                     `json:"provider" file:"provider"`
	Name                  string                     `json:"name,omitempty" file:"name"`
	AuthType              wire.Auth                  `json:"authType,omitempty" file:"auth_type"`
	Priority              *int                       `json:"priority,omitempty" file:"priority"`
	IsActive              *bool                      `json:"isActive,omitempty" file:"is_active"`
	BaseURL               *string                    `json:"baseUrl,omitempty" file:"base_url"`
	AllowPrivate          bool                       `json:"allowPrivate,omitempty" file:"allow_private"`
	Models                []string                   `json:"models,omitempty" file:"models"`
	ExcludedModels        []string                   `json:"excludedModels,omitempty" file:"excluded_models"`
	MaxConcurrent         *int                       `json:"maxConcurrent,omitempty" file:"max_concurrent"`
	ConcurrencyGroup      *string                    `json:"concurrencyGroup,omitempty" file:"concurrency_group"`
	RateLimitProtection   *bool                      `json:"rateLimitProtection,omitempty" file:"rate_limit_protection"`
	RateLimitOverrides    *RateLimitOverrides        `json:"rateLimitOverrides,omitempty" file:"rate_limit_overrides"`
	QuotaWindowThresholds map[string]float64         `json:"quotaWindowThresholds,omitempty" file:"quota_window_thresholds"`
	APIKey                string                     `json:"apiKey,omitempty" file:"api_key"`
	AccessToken           string                     `json:"accessToken,omitempty" file:"access_token"`
	RefreshToken          string                     `json:"refreshToken,omitempty" file:"refresh_token"`
	Secrets               map[string]string          `json:"secrets,omitempty" file:"secrets"`
	ProviderSpecificData  map[string]json.RawMessage `json:"providerSpecificData,omitempty" file:"provider_data"`
}

// RateLimitOverrides are the limits of one account (QUE-4, QSH-10); 0 or absent: not overridden.
type RateLimitOverrides struct {
	RPM              *int64           `json:"rpm,omitempty" file:"rpm"`
	MinTime          *int64           `json:"minTime,omitempty" file:"min_time"`
	MaxConcurrent    *int64           `json:"maxConcurrent,omitempty" file:"max_concurrent"`
	MaxWait          *Millis          `json:"maxWaitMs,omitempty" file:"max_wait"`
	ExecutionMaxWait *Millis          `json:"executionMaxWaitMs,omitempty" file:"execution_max_wait"`
	TPM              *int64           `json:"tpm,omitempty" file:"tpm"`
	TPD              *int64           `json:"tpd,omitempty" file:"tpd"`
	ModelConcurrency map[string]int64 `json:"modelConcurrency,omitempty" file:"model_concurrency"`
}

// ComboInput is one combo as people write it (CMB-1). Targets and Models are one field under two names (CMB-8).
type ComboInput struct {
	Name     string           `json:"name" file:"id"`
	Strategy string           `json:"strategy,omitempty" file:"strategy"`
	Targets  []TargetInput    `json:"targets,omitempty" file:"targets"`
	Models   []TargetInput    `json:"models,omitempty" file:"models"`
	Config   ComboConfigInput `json:"config,omitzero" file:"config"`
	IsActive *bool            `json:"isActive,omitempty" file:"is_active"`
}

// TargetInput is one target; also just its model.
type TargetInput struct {
	Model        string   `json:"model,omitempty" file:"model"`
	Kind         string   `json:"kind,omitempty" file:"kind"` // model (default), combo-ref
	ComboName    string   `json:"comboName,omitempty" file:"combo_name"`
	Weight       *float64 `json:"weight,omitempty" file:"weight"`
	Prompt       string   `json:"prompt,omitempty" file:"prompt"`
	ConnectionID string   `json:"connectionId,omitempty" file:"connection_id"`
	Connection   string   `json:"connection,omitempty" file:"connection"` // another name of ConnectionID
	Allowed      []string `json:"allowedConnectionIds,omitempty" file:"allowed_connection_ids"`
}

// ComboConfigInput holds the options of one route (CMB-3, CMB-5, CMB-11, CMB-13, CMB-15, CMB-16, CMB-26, CMB-47, STR-11, STR-12).
type ComboConfigInput struct {
	MaxRetries          *int    `json:"maxRetries,omitempty" file:"max_retries"`
	RetryDelay          *Millis `json:"retryDelayMs,omitempty" file:"retry_delay"`
	FallbackDelay       *Millis `json:"fallbackDelayMs,omitempty" file:"fallback_delay"`
	TargetTimeout       *Millis `json:"targetTimeoutMs,omitempty" file:"target_timeout"`
	ComboTimeout        *Millis `json:"comboTimeoutMs,omitempty" file:"combo_timeout"`
	FirstContentTimeout *Millis `json:"firstContentTimeoutMs,omitempty" file:"first_content_timeout"`
	StallTimeout        *Millis `json:"stallTimeoutMs,omitempty" file:"stall_timeout"`
	StreamRecovery      *string `json:"streamRecovery,omitempty" file:"stream_recovery"`
	EncryptedState      *string `json:"encryptedState,omitempty" file:"encrypted_state"`
	FallbackOnFilter    *bool   `json:"fallbackOnContentFilter,omitempty" file:"fallback_on_content_filter"`
	FallbackOnOverflow  *bool   `json:"fallbackOnContextOverflow,omitempty" file:"fallback_on_context_overflow"`
	MaxDepth            *int    `json:"maxComboDepth,omitempty" file:"max_combo_depth"`
	CooldownWait        *bool   `json:"comboCooldownWaitEnabled,omitempty" file:"combo_cooldown_wait_enabled"`
	MaxSetRetries       *int    `json:"maxSetRetries,omitempty" file:"max_set_retries"`
	SetRetryDelay       *Millis `json:"setRetryDelayMs,omitempty" file:"set_retry_delay"`
	Hedging             *bool   `json:"hedging,omitempty" file:"hedging"`
	HedgeDelay          *Millis `json:"hedgeDelayMs,omitempty" file:"hedge_delay"`
	PredictiveTTFT      *Millis `json:"predictiveTtftMs,omitempty" file:"predictive_ttft"`
	StickyWeighted      *int    `json:"stickyWeightedLimit,omitempty" file:"sticky_weighted_limit"`
	StickyRoundRobin    *int    `json:"stickyRoundRobinLimit,omitempty" file:"sticky_round_robin_limit"`

	Context *ContextInput `json:"contextRequirements,omitempty" file:"context_requirements"`
}

// ContextInput says what a route wants of its models' context windows (CMB-5).
type ContextInput struct {
	MinWindow   *int   `json:"minContextWindow,omitempty" file:"min_context_window"`
	PreferLarge *bool  `json:"preferLargeContext,omitempty" file:"prefer_large_context"`
	Mode        string `json:"contextFilterMode,omitempty" file:"context_filter_mode"` // lenient (default), strict
}

// AliasInput gives a model or combo a second name (OBJ-13).
type AliasInput struct {
	Alias string `json:"alias" file:"alias"`
	Model string `json:"model" file:"model"`
}

// KeyInput is one client key (OBJ-14). The file gives Key, the store Hash and Hint.
type KeyInput struct {
	ID                   string     `json:"id" file:"id"`
	Name                 string     `json:"name,omitempty" file:"name"`
	Key                  string     `json:"-" file:"key"`
	Hash                 []byte     `json:"-" file:"-"`
	Hint                 string     `json:"-" file:"-"`
	IsActive             *bool      `json:"isActive,omitempty" file:"is_active"`
	Scopes               []string   `json:"scopes,omitempty" file:"scopes"`
	AllowedModels        []string   `json:"allowedModels,omitempty" file:"allowed_models"`
	AllowedConnections   []string   `json:"allowedConnections,omitempty" file:"allowed_connections"`
	PreferredConnections []string   `json:"preferredConnections,omitempty" file:"preferred_connections"`
	ExpiresAt            *time.Time `json:"expiresAt,omitempty" file:"expires_at"`
}
