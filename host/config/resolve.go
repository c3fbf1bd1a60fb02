package config

import (
	"time"

	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/settings"
)

// Defaults of the process (22-config-cli.md).
const (
	DefaultFile          = "weir.yaml"
	DefaultListen        = "127.0.0.1:8787"
	DefaultDataDir       = "./weir-data"
	DefaultLogLevel      = "info"
	DefaultLogFormat     = "text"
	DefaultShutdownGrace = 30 * time.Second
	DefaultMaxBody       = 32 << 20
	DefaultReserve       = 256 << 20
	minReserve           = 96 << 20
)

var (
	logLevels  = []string{"debug", "info", "warn", "error"}
	logFormats = []string{"text", "json"}
)

// Flags are what the command line gave; an empty text was not given.
type Flags struct {
	Config    string
	Data      string
	Listen    string
	Plugins   string
	LogLevel  string
	LogFormat string
}

// Options are the process's own, resolved.
type Options struct {
	Listen        string
	DataDir       string
	PluginsDir    string // empty: no folder is watched
	LogLevel      string
	LogFormat     string
	ShutdownGrace time.Duration
	MaxBody       int64
	Reserve       uint64
}

// FindPath returns the path of the configuration file: the flag, else WEIR_CONFIG, else weir.yaml when exists says that it is
// there. Empty: there is none.
func FindPath(flags Flags, env settings.Lookup, exists func(path string) bool) string {
	if flags.Config != "" {
		return flags.Config
	}
	if path, _ := env("WEIR_CONFIG"); path != "" {
		return path
	}
	if exists(DefaultFile) {
		return DefaultFile
	}
	return ""
}

// Resolve joins flags, environment and file, the earlier wins (CFG-6). file may be nil. Bad flags and variables are faults
// that name them; a variable that a flag beats is not looked at.
func Resolve(flags Flags, env settings.Lookup, file *File) (Options, []document.Fault) {
	if file == nil {
		file = &File{}
	}
	r := &resolver{env: env}
	o := Options{
		Listen:        r.text("--listen", flags.Listen, "WEIR_LISTEN", file.Listen, DefaultListen, badListen),
		DataDir:       r.text("--data", flags.Data, "WEIR_DATA", file.DataDir, DefaultDataDir, nil),
		PluginsDir:    r.text("--plugins", flags.Plugins, "", file.Plugins.Dir, "", nil),
		LogLevel:      r.text("--log-level", flags.LogLevel, "WEIR_LOG_LEVEL", file.LogLevel, DefaultLogLevel, oneOf(logLevels)),
		LogFormat:     r.text("--log-format", flags.LogFormat, "WEIR_LOG_FORMAT", file.LogFormat, DefaultLogFormat, oneOf(logFormats)),
		ShutdownGrace: DefaultShutdownGrace, MaxBody: DefaultMaxBody, Reserve: DefaultReserve,
	}
	if file.ShutdownGrace != nil {
		o.ShutdownGrace = *file.ShutdownGrace
	}
	if file.MaxBody > 0 {
		o.MaxBody = int64(file.MaxBody)
	}
	if file.StoreReserve > 0 {
		o.Reserve = uint64(file.StoreReserve)
	}
	return o, r.faults
}

type resolver struct {
	env    settings.Lookup
	faults []document.Fault
}

// text returns the first that is given of flag, variable and file. What the file gave was checked with it.
func (r *resolver) text(flag, given, variable, fromFile, fallback string, bad func(string) string) string {
	name, value := flag, given
	if value == "" && variable != "" {
		value, _ = r.env(variable)
		name = variable
	}
	if value == "" {
		if fromFile != "" {
			return fromFile
		}
		return fallback
	}
	if bad != nil {
		if message := bad(value); message != "" {
			r.faults = append(r.faults, document.Fault{Path: name, Message: message})
		}
	}
	return value
}

func oneOf(words []string) func(string) string {
	return func(s string) string { return badWord(s, words) }
}
