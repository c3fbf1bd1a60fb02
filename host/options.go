package host

import (
	"log/slog"
	"os"
	"os/exec"
	"time"

	"github.com/weirgate/weir/store"
)

// NoListener as Options.Listen makes Start open no port: the embedding program serves Handler itself, as on loopback.
const NoListener = "none"

// Options of a Host. The zero value is a gateway on 127.0.0.1:8787 with its state in ./weir-data.
type Options struct {
	ConfigFile    string // YAML; empty: none
	DataDir       string // beats the file; empty: the file's, else ./weir-data. Not used when Store is set and this is empty
	Listen        string // beats the file; empty: the file's, else 127.0.0.1:8787
	PluginsDir    string // beats the file; empty: the file's, else none
	Demo          bool   // add the provider demo (CFG-3)
	DiscoverLocal bool   // look for local model servers (CFG-2)
	AccessLog     bool   // one line for each request
	Version       string
	Log           *slog.Logger                     // nil: silent
	Env           func(string) (string, bool)      // nil: os.LookupEnv
	Store         store.Store                      // nil: Badger in the data folder. One that is given is not closed by Stop
	Now           func() time.Time                 // nil: time.Now
	FreeSpace     func(dir string) (uint64, error) // nil: the file system's (DATA-6)
	CompileChild  func() *exec.Cmd                 // a command that runs plugin.CompileChild, for plugins.compile: child; nil: there is none
}

func (o Options) withDefaults() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Env == nil {
		o.Env = os.LookupEnv
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Version == "" {
		o.Version = "dev"
	}
	return o
}

// Ready is what serve tells a person when the gateway is up (CLI-6).
type Ready struct {
	Address     string // host:port
	Curl        string // a command that works as it is
	Providers   int    // in the catalogue
	Connections int    // active ones
	Plugins     int    // in force
}
