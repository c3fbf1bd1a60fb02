package config

import (
	"encoding/json"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/sdk/wire"
)

// File is a configuration file that was read and is free of faults in itself. Whether its objects fit the plugins and the
// store is for catalog.Build to say, which gets Input with the places of everything.
type File struct {
	Path          string
	Listen        string
	DataDir       string
	LogLevel      string
	LogFormat     string
	ShutdownGrace *time.Duration
	MaxBody       Bytes // 0: not given
	StoreReserve  Bytes // 0: not given
	Plugins       Plugins
	Input         *catalog.Input
}

// Plugins is the section of that name.
type Plugins struct {
	Dir             string
	Modes           map[string]string // by plugin name: active, shadow, off
	Trust           string            // open, locked, signed, or empty
	TrustedKeys     []string          // public keys of minisign
	Compile         string            // inprocess, child, or empty
	RequireExamples bool
	Settings        map[string]PluginSettings
}

// PluginSettings are the operator's for one plugin.
type PluginSettings struct {
	Config      wire.Raw // for the plugin itself, as JSON; empty: none
	Order       int      // before all else among plugins, lower first (ABI-9)
	OnViolation string   // fail_open, fail_closed, or empty
	Limits      Limits
	Grants      Grants
	Secrets     map[string]catalog.Secret // by name. Giving a plugin a secret is the grant to name it (PLG-12)
}

// Limits are the operator's for one plugin (ABI-8); 0 or no number leaves the default. Whether they are in bounds is for the
// runtime of plugins to say.
type Limits struct {
	MemoryMiB int              `file:"memory_mib"`
	Fuel      map[string]int64 `file:"fuel"`    // by operation
	WallMS    map[string]int64 `file:"wall_ms"` // by operation
	BodyKiB   int              `file:"body_kib"`
}

// Grants is what a third-party plugin may do (PLG-12).
type Grants struct {
	HTTPHosts   []string // hosts that plans and http_fetch may name
	HTTPPrivate []string // those of them that http_fetch may find at private addresses
	KVBytes     int
	Terminate   bool     // may end a connection
	Providers   []string // may describe, execute, and read the key variables of
}

// schema is the file as it is written.
type schema struct {
	Listen        string                    `file:"listen"`
	DataDir       string                    `file:"data_dir"`
	LogLevel      string                    `file:"log_level"`
	LogFormat     string                    `file:"log_format"`
	ShutdownGrace *time.Duration            `file:"shutdown_grace"`
	MaxBody       *Bytes                    `file:"max_body"`
	Store         storeSchema               `file:"store"`
	Plugins       pluginsSchema             `file:"plugins"`
	Providers     []catalog.ProviderInput   `file:"providers"`
	Connections   []catalog.ConnectionInput `file:"connections"`
	Combos        []catalog.ComboInput      `file:"combos"`
	Aliases       map[string]string         `file:"aliases"`
	APIKeys       []catalog.KeyInput        `file:"api_keys"`
	Resilience    *settingsBlock            `file:"resilience"`
	Settings      *settingsBlock            `file:"settings"`
}

type storeSchema struct {
	Reserve *Bytes `file:"reserve"`
}

type pluginsSchema struct {
	Dir             string                          `file:"dir"`
	Modes           map[string]string               `file:"modes"`
	Trust           string                          `file:"trust"`
	TrustedKeys     []string                        `file:"trusted_keys"`
	Compile         string                          `file:"compile"`
	RequireExamples bool                            `file:"require_examples"`
	Settings        map[string]pluginSettingsSchema `file:"settings"`
}

type pluginSettingsSchema struct {
	Config        map[string]json.RawMessage `file:"config"`
	Order         int                        `file:"order"`
	OnViolation   string                     `file:"on_violation"`
	Merge         bool                       `file:"merge"`
	MinConfidence *float64                   `file:"min_confidence"`
	Grants        grantsSchema               `file:"grants"`
	Secrets       map[string]string          `file:"secrets"`
	Limits        Limits                     `file:"limits"`
}

type grantsSchema struct {
	HTTP struct {
		Hosts        []string `file:"hosts"`
		AllowPrivate []string `file:"allow_private"`
	} `file:"http"`
	KV struct {
		Bytes int `file:"bytes"`
	} `file:"kv"`
	Secrets   []string `file:"secrets"`
	Terminate bool     `file:"terminate"`
	Providers []string `file:"providers"`
}

// settingsBlock is read by the table of settings, not by the schema; here it only has to be known.
type settingsBlock struct{}

// UnmarshalJSON accepts any value.
func (*settingsBlock) UnmarshalJSON([]byte) error { return nil }

// decode reads the schema from the tree.
func decode(root *document.Node) (*schema, []document.Fault) {
	var s schema
	faults := root.Decode(&s, document.Tag("file"), document.Short[catalog.TargetInput]("model"), document.Short[catalog.ModelInput]("id"),
		document.Read(readMillis))
	return &s, faults
}
