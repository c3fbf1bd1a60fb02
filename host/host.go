package host

import (
	"context"
	"crypto/rand"
	"errors"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gorilla/mux"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/config"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/errorlog"
	"github.com/weirgate/weir/host/gateway"
	"github.com/weirgate/weir/host/ledger"
	"github.com/weirgate/weir/host/manage"
	"github.com/weirgate/weir/host/observe"
	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/host/plugin/fetch"
	"github.com/weirgate/weir/host/pricing"
	"github.com/weirgate/weir/host/quota"
	"github.com/weirgate/weir/host/record"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/resilience/account"
	"github.com/weirgate/weir/host/resilience/breaker"
	"github.com/weirgate/weir/host/resilience/cooldown"
	"github.com/weirgate/weir/host/resilience/lockout"
	"github.com/weirgate/weir/host/resilience/terminal"
	"github.com/weirgate/weir/host/resilience/window"
	"github.com/weirgate/weir/host/signatures"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/host/vault"
	"github.com/weirgate/weir/store"
)

// Host is one gateway. Make it with New; all methods are safe for concurrent use, Start and Stop are called once each.
type Host struct {
	o       Options
	process config.Options
	compile string // plugins.compile of the start
	redact  *observe.Redactor
	metrics *observe.Metrics
	ids     *observe.RequestIDs

	store        store.Store
	ownStore     bool
	vault        *vault.Vault
	vaultChecked atomic.Bool
	record       *record.Recorder
	errors       *errorlog.Log
	ledger       *ledger.Log
	prices       atomic.Pointer[pricing.Table]
	quota        quota.Book
	book         *account.Book
	lockouts     *lockout.Gate
	breakers     *breaker.Gate
	windows      *window.Gate
	ladder       *resilience.Ladder
	notes        *notes
	signatures   *signatures.Memory // of calls, for clients that cannot carry them
	banned       chan string        // connections to set inactive (COOL-63)
	plugins      *plugin.Runtime
	catalog      *catalog.Registry
	refresh      *refresher
	dispatch     *dispatch.Dispatcher
	client       *upstream.Client
	handler      http.Handler

	file       atomic.Pointer[fileState]
	fault      atomic.Pointer[configFault]
	discovered []catalog.ConnectionInput
	unread     []document.Fault // of the configuration file at the start; only New uses it
	building   sync.Mutex       // one snapshot is built at a time
	reloading  sync.Mutex       // one reload at a time

	visitors *visitors
	life     context.Context //nolint:containedctx // of the background goroutines, from New to Stop
	end      context.CancelFunc
	jobs     sync.WaitGroup
	mu       sync.Mutex
	server   *http.Server // guarded by mu
	listener net.Listener // guarded by mu
	stopping atomic.Bool
	stopped  chan struct{} // closed when Stop begins
	started  time.Time
}

// New wires a gateway and restores its state; nothing is served before Start, except through Handler. With an error, whatever
// was opened is closed again. The error names the thing and the mend; faults of the configuration file carry line and column.
func New(ctx context.Context, o Options) (*Host, error) {
	h := &Host{
		o: o.withDefaults(), redact: &observe.Redactor{}, catalog: &catalog.Registry{}, refresh: newRefresher(),
		stopped: make(chan struct{}), banned: make(chan string, 64), visitors: newVisitors(),
	}
	h.started = h.o.Now()
	h.o.Log = observe.Redacting(h.o.Log, h.redact)
	h.life, h.end = context.WithCancel(context.WithoutCancel(ctx))
	if err := h.assemble(ctx); err != nil {
		return nil, errors.Join(err, h.close(ctx))
	}
	return h, nil
}

// assemble brings the parts up in the order in which they need each other.
func (h *Host) assemble(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		h.readFile, h.openStore, h.makeGates, h.startPlugins, h.firstSnapshot, h.restoreState, h.wire,
	} {
		if err := step(ctx); err != nil {
			if len(h.unread) > 0 { // what a faulty file leads to is not worth telling
				return faultList(h.unread)
			}
			return err
		}
	}
	return nil
}

// readFile loads the configuration file and settles what the process runs with (CFG-6). A file with faults still comes as far as
// firstSnapshot, which finds the rest of them.
func (h *Host) readFile(context.Context) error {
	fs, faults := h.loadFile()
	if fs == nil {
		return faultList(faults)
	}
	h.file.Store(fs)
	h.unread = faults
	p, more := config.Resolve(h.flags(), h.o.Env, fs.file)
	if len(more) > 0 {
		return faultList(more)
	}
	h.process = p
	return nil
}

// flags are the options that beat environment and file.
func (h *Host) flags() config.Flags {
	f := config.Flags{Data: h.o.DataDir, Listen: h.o.Listen, Plugins: h.o.PluginsDir}
	if f.Listen == NoListener {
		f.Listen = config.DefaultListen // not opened
	}
	return f
}

// startPlugins loads the built-in plugins and the folder, so that the first snapshot knows their providers.
func (h *Host) startPlugins(ctx context.Context) error {
	builtins, err := builtinPlugins()
	if err != nil {
		return err
	}
	cache, data := "", ""
	if h.keepsFiles() {
		cache, data = filepath.Join(h.process.DataDir, "cache"), h.process.DataDir
	}
	fs := h.file.Load()
	if dir := h.process.PluginsDir; dir != "" {
		if _, err := os.Stat(dir); os.IsNotExist(err) {
			h.o.Log.Warn("the plugin folder does not exist; its plugins are loaded when it does", "folder", dir)
		}
	}
	h.compile = fs.compile()
	if h.compile == plugin.CompileInChild && h.o.CompileChild == nil {
		return errors.New("plugins.compile is child, but this program has no command that compiles; use inprocess")
	}
	h.plugins = plugin.New(plugin.Options{
		Version: h.o.Version, Builtins: builtins, Dir: h.process.PluginsDir, CacheDir: cache, DataDir: data, Log: h.o.Log, Now: h.o.Now,
		Trust: fs.trust(), Modes: fs.modes(), Settings: fs.pluginSettings(), RequireExamples: fs.requireExamples(), Demo: h.o.Demo,
		Compile: h.compile, Child: h.o.CompileChild, Observer: h.metrics,
		OnChange: h.pluginsChanged, OnEvent: h.pluginEvent,
		Ports: plugin.Ports{
			KV: newPluginKV(h.store, h.o.Now, h.o.Log), Fetch: fetch.NewClient(fetch.Options{}), Redact: h.redact.Text,
			Count: h.metrics.PluginCustom,
		},
	})
	return h.plugins.Start(ctx)
}

// firstSnapshot builds the catalogue; a fault in the file ends the start with every fault.
func (h *Host) firstSnapshot(ctx context.Context) error {
	if h.o.DiscoverLocal {
		h.discovered = discoverLocal(ctx, h.o.Log)
	}
	h.refresh.forget() // of the plugins loaded so far; what changes from here on is built again
	stored, last, err := h.loadStored(ctx)
	if err != nil {
		return err
	}
	next, faults := h.build(h.file.Load(), stored, false)
	if h.unread = joined(h.unread, faults); len(h.unread) > 0 {
		return faultList(h.unread)
	}
	h.redact.Know(h.secrets(next, h.file.Load()))
	h.catalog.Swap(next)
	h.refresh.startAt(last)
	for _, w := range next.Warnings {
		h.o.Log.Warn(w)
	}
	for _, name := range next.Found {
		what := "a connection was made from the environment"
		if name == catalog.EnvKey {
			what = "a client key was made from the environment"
		}
		h.o.Log.Info(what, "variable", name)
	}
	return nil
}

// makeGates makes the gates, and the journal and metrics that they and the plugins write to.
func (h *Host) makeGates(context.Context) error {
	h.book = account.NewBook(func(text string) { h.o.Log.Warn(text) })
	h.breakers = breaker.New(h.o.Now)
	h.windows = window.New(h.breakers.IsOpen)
	h.lockouts = lockout.New(h.book, h.breakers.IsOpen)
	h.ladder = resilience.NewLadder(h.breakers, h.windows, terminal.New(h.book), cooldown.New(h.book), h.lockouts)
	h.record = record.New(record.Options{Store: h.store, Gates: snapshotters(h.ladder), Log: h.o.Log, Now: h.o.Now})
	h.metrics = h.newMetrics()
	return nil
}

// restoreState gives the gates back what they knew (OV-5), and makes what asks them.
func (h *Host) restoreState(ctx context.Context) error {
	if !h.catalog.Current().Settings.ModelLockout.Persist {
		h.lockouts.KeepInMemory()
	}
	if err := h.record.Restore(ctx); err != nil { // one bad record must not keep the gateway from starting
		h.o.Log.Error("a part of the resilience state could not be restored; those connections start healthy", "error", err.Error())
	}
	h.record.Start()
	h.client = upstream.NewClient(upstream.Options{ConnectTimeout: h.catalog.Current().Settings.ConnectTimeout})
	h.errors = h.newErrorLog()
	h.errors.Start()
	h.readPrices()
	h.ledger = h.newLedger()
	h.ledger.Start()
	h.loadQuota(ctx)
	h.dispatch = dispatch.New(dispatch.Options{
		Failed: h.errors.Failed, Learn: h.learnQuota, Signatures: h.signatures,
		Plugins: pluginSets{h.plugins}, Client: h.client, Ladder: h.ladder, Journal: h.journal, Meter: h.metrics,
		Redact: h.redact.Text, Now: h.o.Now, Log: h.o.Log, Circuit: h.circuit, Condition: h.accountCondition,
	})
	h.putInForce(nil, h.catalog.Current())
	return nil
}

func snapshotters(l *resilience.Ladder) []record.Snapshotter {
	var out []record.Snapshotter
	for _, g := range l.Gates() {
		out = append(out, g)
	}
	return out
}

// wire makes the handler and starts following the store.
func (h *Host) wire(context.Context) error {
	ids, err := observe.NewRequestIDs(rand.Reader)
	if err != nil {
		return err
	}
	h.ids = ids
	m, err := manage.New(h.ports())
	if err != nil {
		return err
	}
	r := mux.NewRouter().SkipClean(true).UseEncodedPath()
	gateway.New(gateway.Options{
		Snapshot: h.catalog.Current, Dispatch: h.dispatch, RequestID: ids.Next, Observe: h.observed, Refused: h.refused, KeyUsed: h.notes.use, Heard: h.notes.heard,
		MaxBody: h.process.MaxBody, Loopback: h.loopback(), Listen: h.process.Listen, Now: h.o.Now, Log: h.o.Log,
	}).Mount(r)
	for _, prefix := range manage.Prefixes() {
		r.PathPrefix(prefix).Handler(m.Handler())
	}
	r.NotFoundHandler = m.Handler()
	h.handler = h.visitors.count(r)
	h.background(h.follow)
	h.background(h.rebuildOnChange)
	h.background(h.watchFile)
	h.background(h.notes.keep)
	h.background(h.signatures.Run)
	h.background(h.disableBanned)
	h.background(h.recheck)
	h.background(h.keepBreakers)
	h.background(h.keepQuota)
	return nil
}

// background runs a job until Stop.
func (h *Host) background(job func(context.Context)) {
	h.jobs.Go(func() { job(h.life) })
}

// Handler answers every request of the gateway, for a program that has its own listener. Use it with Options.Listen set to
// NoListener.
func (h *Host) Handler() http.Handler { return h.handler }

// loopback says whether only this machine reaches the gateway, so that inference may be open without a key (SEC-2).
func (h *Host) loopback() bool {
	if h.o.Listen == NoListener {
		return true
	}
	host, _, err := net.SplitHostPort(h.process.Listen)
	if err != nil {
		return false
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// keepsFiles says whether there is a data folder.
func (h *Host) keepsFiles() bool { return h.o.Store == nil || h.o.DataDir != "" }
