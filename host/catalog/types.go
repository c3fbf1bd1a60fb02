package catalog

import (
	"slices"
	"time"

	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

// Category picks the resilience profile of a provider.
type Category string

// The categories.
const (
	OAuth  Category = "oauth"
	APIKey Category = "apikey"
	Local  Category = "local"
)

// ManagedBy says who owns an object (OBJ-4).
type ManagedBy string

// The owners. Builtin is only for providers that a plugin describes.
const (
	ByAPI    ManagedBy = "api"
	ByFile   ManagedBy = "file"
	ByEnv    ManagedBy = "env"
	ByDemo   ManagedBy = "demo"
	ByPlugin ManagedBy = "plugin"
)

// Secret is a credential in memory. It prints, logs and encodes as [redacted]; Reveal is the only way to the text.
type Secret struct{ text string }

// NewSecret wraps text.
func NewSecret(text string) Secret { return Secret{text} }

// Reveal returns the text. Only the code that places it into a request, seals it or hashes it may call this (DATA-1).
func (s Secret) Reveal() string { return s.text }

// Set says whether there is a text.
func (s Secret) Set() bool { return s.text != "" }

// String hides the text.
func (s Secret) String() string { return "[redacted]" }

// GoString hides the text.
func (s Secret) GoString() string { return "[redacted]" }

// MarshalJSON hides the text.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"[redacted]"`), nil }

// Meta is what every object carries (OBJ-4).
type Meta struct {
	Revision         uint64
	Created, Updated time.Time
	ManagedBy        ManagedBy
}

// Provider is one upstream service of the catalogue. Immutable once in a Snapshot.
type Provider struct {
	ID, Name     string
	Category     Category
	Auth         wire.Auth
	BaseURL      string
	KeyEnv       []string
	Dialects     map[string]wire.Dialect // by canonical endpoint
	Aliases      []string
	Models       []wire.Model
	Passthrough  bool              // any model name is passed through
	PerModel     bool              // per-model quota (LOCK-12)
	Families     []QuotaFamily     // models that share a quota, see Family
	Headers      map[string]string // the operator's own, added to each request
	AllowPrivate bool
	Compatible   bool   // an operator's own generic entry (COOL-56)
	Executor     string // name of the plugin that executes it
	Plugin       string // name of the plugin that described it, empty for an operator's own
	Docs         string
	EgressFamily string        // of providers that count quota by public address (OTH-1); empty: this one does not
	Prefill      *bool         // assistant_prefill: whether its models go on with an assistant's turn (STM-43); nil: not said
	Bends        Bends         // what its API needs of requests that are translated
	Connections  []*Connection // active ones, by priority then id
	All          []*Connection // also the inactive ones
	Meta
}

// Bends is what a provider's API needs of requests that come from another dialect (TR-12, TR-22, TR-25).
type Bends struct {
	NoSchema      bool // no_schema: it has no structured output, so that a tool stands in for it
	ReducedSchema bool // reduced_schema: it knows only the older words of schemas
	CacheMarks    bool // cache_marks: the end of the tools and of the system text is marked for its cache
}

// bendWords are the words of Bends in documents.
var bendWords = []string{"no_schema", "reduced_schema", "cache_marks"}

func bends(words []string) Bends {
	return Bends{
		NoSchema: slices.Contains(words, bendWords[0]), ReducedSchema: slices.Contains(words, bendWords[1]), CacheMarks: slices.Contains(words, bendWords[2]),
	}
}

// HasModel says whether the provider lists id, or passes any name through.
func (p *Provider) HasModel(id string) bool {
	if p.Passthrough {
		return true
	}
	for i := range p.Models {
		if p.Models[i].ID == id {
			return true
		}
	}
	return false
}

// Connection is one account. Immutable once in a Snapshot.
type Connection struct {
	ID, Name           string
	Provider           string
	AuthType           wire.Auth
	Priority           int
	Active             bool
	BaseURL            string // overrides the provider's when set
	AllowPrivate       bool
	Models             []string
	ExcludedModels     []string
	MaxConcurrent      *int
	ConcurrencyGroup   *string
	RateLimitOverrides []byte // JSON, as given; read by later gates
	RateProtection     bool
	QuotaThresholds    []byte                   // JSON, as given
	Secrets            map[string]Secret        // api_key, access_token, ...
	Data               map[string]string        // providerSpecificData, scalar fields as text
	DisableCooling     bool                     // COOL-19
	RateLimitReset     time.Duration            // rotationOverrides.rateLimitResetSeconds (COOL-20); 0: not set
	Rotation           map[int]RotationOverride // rotationOverrides by status (CLS-20); nil: none
	EgressIP           string                   // the public address that the provider sees (OTH-2); empty: as Target.Egress says
	CredentialRevision uint64                   // raised by a change of secrets or data; part of plan cache keys
	Meta
}

// Combo is a named list of targets with a strategy (CMB-1).
type Combo struct {
	Name     string
	Strategy string
	Targets  []ComboTarget
	Config   ComboConfig
	Active   bool
	Meta
}

// ComboTarget is one entry as configured: a model, or a reference to another combo.
type ComboTarget struct {
	Model      string // provider/model, or provider/*
	ComboRef   string
	Weight     float64
	Prompt     string
	Connection string   // pinned connection id
	Allowed    []string // allowedConnectionIds
}

// ComboConfig holds the route options of a combo that exist by now; nil means the default, which the settings may give
// (CMB-7, CMB-13, CMB-15, CMB-16, CMB-26).
type ComboConfig struct {
	MaxRetries          *int
	RetryDelay          *time.Duration
	FallbackDelay       *time.Duration
	TargetTimeout       *time.Duration
	ComboTimeout        *time.Duration
	FirstContentTimeout *time.Duration
	StallTimeout        *time.Duration // CMB-26; 0: as the settings say
	StreamRecovery      string         // off, hold, continue; empty: as the settings say (STM-64)
	EncryptedState      string         // strip, refuse; empty: as the settings say (SCN-16)
	FallbackOnFilter    *bool
	FallbackOnOverflow  *bool
	MaxDepth            *int
	CooldownWait        *bool          // false turns waiting off (CMB-47)
	MaxSetRetries       *int           // CMB-16
	SetRetryDelay       *time.Duration // CMB-16
	Hedging             *bool          // CMB-16
	HedgeDelay          *time.Duration // CMB-16
	PredictiveTTFT      *time.Duration // CMB-11; 0: off
	StickyWeighted      *int           // STR-11
	StickyRoundRobin    *int           // STR-12
	Context             ContextRequirements
}

// ContextRequirements is what a combo wants of its models' context windows (CMB-5).
type ContextRequirements struct {
	MinWindow   int // tokens; 0: any
	PreferLarge bool
	Strict      bool // too small ones are left out, in place of being tried last
}

// Key is one API key of a client of the gateway (OBJ-14). The text is never kept.
type Key struct {
	ID, Name             string
	Hash                 [32]byte // SHA-256 of the text
	Hint                 string
	Active               bool
	Scopes               []string
	AllowedModels        []string
	AllowedConnections   []string
	PreferredConnections []string
	ExpiresAt            time.Time // zero: never
	Meta
}

// Target is where one attempt may go.
type Target struct {
	Provider   *Provider
	Connection *Connection
	Model      string // upstream model id
	Requested  string // the name that the client sent
}

// Route is what a request is resolved to (OV-9).
type Route struct {
	Kind     string // direct, combo
	Name     string // of the combo, or provider/model
	Strategy string
	Config   ComboConfig
	Targets  []RouteTarget // expanded, in configured order
	Notes    []string      // cut cycles and the like (CMB-3)
	Mark     uint64        // of a combo: differs when its strategy, targets or options do (STR-2)
}

// RouteTarget is one expanded target of a route.
type RouteTarget struct {
	Key        string // execution key (CMB-4)
	Provider   *Provider
	Model      string
	Connection *Connection // pinned, or nil
	Allowed    []string    // connection ids, empty: all
	Weight     float64
	Prompt     string
}

// Snapshot is the whole configuration at one moment: immutable, shared by all requests.
type Snapshot struct {
	Number    uint64 // rises with every swap in this process
	Settings  *settings.Values
	Providers []*Provider // by id
	Combos    []*Combo
	Keys      []*Key
	Aliases   map[string]string

	SettingSources settings.Sources // where each value of Settings came from (OV-25)
	FileSettings   settings.Stored  // settings that the file owns (OBJ-16)
	Warnings       []string         // what is odd but works, and stored objects that were left out; for the log and the status
	Found          []string         // variables from which connections, or the client key, were made (CFG-2)

	names       []string             // what ModelNames lists
	providers   map[string]*Provider // by id and alias
	connections map[string]*Connection
	combos      map[string]*Combo
	keys        map[[32]byte]*Key
	routes      map[string]*Route // combos and aliases, resolved at build
	bare        map[string][]*Provider
	needKey     bool
}
