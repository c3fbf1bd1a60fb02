package wire

// Manifest is the answer of describe, and the text of a pack (ABI-2).
type Manifest struct {
	Name         string      `json:"name"`
	Version      string      `json:"version"`
	ABI          string      `json:"abi,omitempty"`
	Summary      string      `json:"summary,omitempty"`
	License      string      `json:"license,omitempty"`
	Homepage     string      `json:"homepage,omitempty"`
	Kinds        []string    `json:"kinds,omitempty"`
	Matches      []Match     `json:"matches,omitempty"`
	Priority     int         `json:"priority,omitempty"`
	Needs        Needs       `json:"needs,omitzero"`
	Hooks        []string    `json:"hooks,omitempty"`
	Rules        Raw         `json:"rules,omitempty"` // the table of ABI-2.1; package rules reads it
	Providers    []Provider  `json:"providers,omitempty"`
	Plans        []PlanRow   `json:"plans,omitempty"`
	Prices       []Price     `json:"prices,omitempty"` // what models cost (OBJ-21)
	ConfigSchema Raw         `json:"config_schema,omitempty"`
	Permissions  Permissions `json:"permissions,omitzero"`
	Limits       Limits      `json:"limits,omitzero"`
	Examples     []Example   `json:"examples,omitempty"`
}

// The kinds of a plugin.
const (
	KindExecutor    = "executor"
	KindRestatement = "restatement"
	KindClassifier  = "classifier"
)

// Match is one entry of matches, and the condition of a static plan: all given fields hold. Entries are globs with *;
// an empty list is everything.
type Match struct {
	Providers []string `json:"providers,omitempty"`
	Models    []string `json:"models,omitempty"`
	Endpoints []string `json:"endpoints,omitempty"`
	Auth      []string `json:"auth,omitempty"`   // plans only
	Stream    *bool    `json:"stream,omitempty"` // plans only
}

// Needs declares what a plugin's rules and hooks see of a reply (ABI-2).
type Needs struct {
	ErrorText      string   `json:"error_text,omitempty"` // none, prefix (4 KiB, default), full
	ErrorTextBytes int      `json:"error_text_bytes,omitempty"`
	Headers        []string `json:"headers,omitempty"` // lower case, globs
	RequestFields  []string `json:"request_fields,omitempty"`
}

// Permissions are a request; what is granted is the operator's word.
type Permissions struct {
	HTTP      *HTTPPermission      `json:"http,omitempty"`
	KV        *KVPermission        `json:"kv,omitempty"`
	Secrets   []SecretPermission   `json:"secrets,omitempty"`
	Terminate *TerminatePermission `json:"terminate,omitempty"`
	Providers *ProvidersPermission `json:"providers,omitempty"`
}

// HTTPPermission asks for hosts that http_fetch and plans may name.
type HTTPPermission struct {
	Hosts  []string `json:"hosts"`
	Reason string   `json:"reason,omitempty"`
}

// KVPermission asks for room in the plugin's own key-value namespace.
type KVPermission struct {
	Bytes  int    `json:"bytes"`
	Reason string `json:"reason,omitempty"`
}

// SecretPermission asks for one named secret, as a placeholder only.
type SecretPermission struct {
	Name   string `json:"name"`
	Reason string `json:"reason,omitempty"`
}

// TerminatePermission asks for the right to end a connection (RUL-14).
type TerminatePermission struct {
	Reason string `json:"reason,omitempty"`
}

// ProvidersPermission asks to describe or execute providers of another plugin, and to read their key variables.
type ProvidersPermission struct {
	IDs    []string `json:"ids"`
	Reason string   `json:"reason,omitempty"`
}

// Limits lower the host's numbers for this plugin.
type Limits struct {
	MemoryMiB int              `json:"memory_mib,omitempty"`
	Fuel      map[string]int64 `json:"fuel,omitempty"`
}

// Example is one of the plugin's own test vectors (ABI-2.4).
type Example struct {
	Name   string `json:"name,omitempty"`
	Op     string `json:"op"`
	Input  Raw    `json:"input"`
	Expect Raw    `json:"expect"`
	NowMS  int64  `json:"now_ms,omitempty"`
}

// Provider is one entry of the catalogue (ABI-2.2). Base addresses have no trailing slash.
type Provider struct {
	ID                string              `json:"id"`
	Name              string              `json:"name,omitempty"`
	Category          string              `json:"category,omitempty"`
	Auth              Auth                `json:"auth,omitempty"`
	BaseURL           string              `json:"base_url,omitempty"`
	KeyEnv            []string            `json:"key_env,omitempty"`
	Dialects          map[string]Dialect  `json:"dialects,omitempty"` // by canonical endpoint
	Aliases           []string            `json:"aliases,omitempty"`
	Models            []Model             `json:"models,omitempty"`
	PassthroughModels *bool               `json:"passthrough_models,omitempty"`
	PerModelQuota     bool                `json:"per_model_quota,omitempty"`
	QuotaFamilies     map[string][]string `json:"quota_families,omitempty"`
	AssistantPrefill  bool                `json:"assistant_prefill,omitempty"`
	Translation       []string            `json:"translation,omitempty"` // how requests of other dialects are bent: no_schema, reduced_schema, cache_marks
	EgressBucketed    bool                `json:"egress_bucketed,omitempty"`
	Trust429Hints     *bool               `json:"trust_429_hints,omitempty"`
	Limits            *ProviderLimits     `json:"limits,omitempty"`
	Docs              string              `json:"docs,omitempty"`
}

// ProviderLimits is where a plugin declares how its provider states rate limits; later sections read it (QUE-5).
type ProviderLimits struct {
	HeaderNames   map[string]string `json:"header_names,omitempty"`
	KeyScope      string            `json:"key_scope,omitempty"`
	DefaultWindow Raw               `json:"default_window,omitempty"`
	MinMaxWaitMS  int64             `json:"min_max_wait_ms,omitempty"`
}

// Model is one model of a provider; in documents also just its id as a string.
type Model struct {
	ID              string   `json:"id"`
	Name            string   `json:"name,omitempty"`
	ContextWindow   int      `json:"context_window,omitempty"`
	MaxOutput       int      `json:"max_output,omitempty"`
	InputModalities []string `json:"input_modalities,omitempty"`
	Reasoning       bool     `json:"reasoning,omitempty"`
	Created         int64    `json:"created,omitempty"`
}

// PlanRow is one row of the table of static plans: the first whose match holds is the plan.
type PlanRow struct {
	Match Match `json:"match,omitzero"`
	Plan  Plan  `json:"plan"`
}

// Price is what tokens of a model cost, in USD per million (OBJ-21). Provider and Model are globs with *; the first row that matches
// counts. What is not given is not known, but reasoning, which is output.
type Price struct {
	Provider   string   `json:"provider"`
	Model      string   `json:"model"`
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	CachedRead *float64 `json:"cached_read,omitempty"`
	CacheWrite *float64 `json:"cache_write,omitempty"`
	Reasoning  *float64 `json:"reasoning,omitempty"`
	Since      string   `json:"since,omitempty"` // YYYY-MM-DD: when it was looked up, or came into force
	Tiers      []Tier   `json:"tiers,omitempty"`
}

// Tier is the price of a request whose prompt has more than Above tokens (GOV-30); the last one that holds counts.
type Tier struct {
	Above      int64    `json:"above"`
	Input      *float64 `json:"input"`
	Output     *float64 `json:"output"`
	CachedRead *float64 `json:"cached_read,omitempty"`
	CacheWrite *float64 `json:"cache_write,omitempty"`
	Reasoning  *float64 `json:"reasoning,omitempty"`
}
