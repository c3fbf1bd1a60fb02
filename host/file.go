package host

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/config"
	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/host/plugin/trust"
	"github.com/weirgate/weir/store"
)

// fileState is one reading of the configuration file. Immutable.
type fileState struct {
	file     *config.File // nil: there is none
	input    *catalog.Input
	loadedAt time.Time
	stamp    stamp
}

// stamp tells one state of the file from another.
type stamp struct {
	size    int64
	changed time.Time
}

// loadFile reads the configuration file. With faults the state, if any, is for finding more of them only.
func (h *Host) loadFile() (*fileState, []document.Fault) {
	fs := &fileState{loadedAt: h.o.Now()}
	if h.o.ConfigFile == "" {
		return fs, nil
	}
	fs.stamp = stampOf(h.o.ConfigFile)
	f, faults := config.LoadPart(h.o.ConfigFile, h.o.Env)
	if f == nil {
		return nil, faults
	}
	fs.file, fs.input = f, f.Input
	return fs, document.InOrder(slices.Concat(faults, fs.limitFaults(), fs.keyFaults()))
}

// limitFaults are the limits of plugins that no plugin may have (ABI-8).
func (fs *fileState) limitFaults() []document.Fault {
	var faults []document.Fault
	settings := fs.pluginSettings()
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		at := document.Join("plugins.settings", name) + ".limits"
		if err := settings[name].Limits.Check(); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				faults = append(faults, fs.input.Root.Fault(at, line))
			}
		}
	}
	return faults
}

// keyFaults are the trusted keys that are no keys (ABI-11).
func (fs *fileState) keyFaults() []document.Fault {
	var faults []document.Fault
	if fs.file == nil {
		return nil
	}
	for i, text := range fs.file.Plugins.TrustedKeys {
		if _, err := trust.ParseKey(text); err != nil {
			faults = append(faults, fs.input.Root.Fault(document.At("plugins.trusted_keys", i), err.Error()))
		}
	}
	return faults
}

// trust is whom the file trusts with plugins.
func (fs *fileState) trust() trust.Policy {
	p := trust.Policy{Mode: trust.Open}
	if fs.file == nil {
		return p
	}
	p.Mode = cmp.Or(fs.file.Plugins.Trust, trust.Open)
	for _, text := range fs.file.Plugins.TrustedKeys {
		if k, err := trust.ParseKey(text); err == nil { // else the file was refused
			p.Keys = append(p.Keys, k)
		}
	}
	return p
}

// samePlugins says whether both files say the same about plugins, as far as a running gateway can follow.
func (fs *fileState) samePlugins(o *fileState) bool {
	return reflect.DeepEqual(fs.modes(), o.modes()) && reflect.DeepEqual(fs.pluginSettings(), o.pluginSettings()) && fs.trust().Equal(o.trust())
}

// configurePlugins puts in force what the file says about plugins.
func (h *Host) configurePlugins(ctx context.Context, fs *fileState) {
	h.plugins.Trust(ctx, fs.trust())
	h.plugins.Configure(ctx, fs.modes(), fs.pluginSettings())
}

// everyFault adds to the faults of a file those that its objects have among plugins and stored objects, so that a person mends
// all at once.
func (h *Host) everyFault(ctx context.Context, fs *fileState, own []document.Fault) []document.Fault {
	h.building.Lock()
	defer h.building.Unlock()
	stored, _, err := h.loadStored(ctx)
	if err != nil || fs == nil {
		return own
	}
	_, more := h.build(fs, stored, false)
	return joined(own, more)
}

// joined is all faults in the order of the file. What follows from a fault at the same place is left out: a key that could not
// be read is not missing as well.
func joined(own, more []document.Fault) []document.Fault {
	all := slices.Clone(own)
	for _, f := range more {
		if !slices.ContainsFunc(own, func(o document.Fault) bool { return within(f.Path, o.Path) || within(o.Path, f.Path) }) {
			all = append(all, f)
		}
	}
	return document.InOrder(all)
}

// within says whether path is parent or below it.
func within(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && parent != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

func stampOf(path string) stamp {
	info, err := os.Stat(path)
	if err != nil {
		return stamp{}
	}
	return stamp{info.Size(), info.ModTime()}
}

func (fs *fileState) modes() map[string]string {
	if fs.file == nil {
		return nil
	}
	return fs.file.Plugins.Modes
}

func (fs *fileState) requireExamples() bool { return fs.file != nil && fs.file.Plugins.RequireExamples }

// compile is how guests are compiled; empty: as usual.
func (fs *fileState) compile() string {
	if fs.file == nil {
		return ""
	}
	return fs.file.Plugins.Compile
}

func (fs *fileState) pluginSettings() map[string]plugin.Settings {
	out := map[string]plugin.Settings{}
	if fs.file == nil {
		return out
	}
	for name, s := range fs.file.Plugins.Settings {
		out[name] = plugin.Settings{
			Order: s.Order, Config: s.Config, OnViolation: s.OnViolation,
			Limits: plugin.Limits{MemoryMiB: s.Limits.MemoryMiB, Fuel: s.Limits.Fuel, WallMS: s.Limits.WallMS, BodyKiB: s.Limits.BodyKiB},
			Grants: plugin.Grants{
				HTTPHosts: s.Grants.HTTPHosts, HTTPPrivate: s.Grants.HTTPPrivate, KVBytes: s.Grants.KVBytes, Secrets: s.Secrets,
				Terminate: s.Grants.Terminate, Providers: s.Grants.Providers,
			},
		}
	}
	return out
}

// Reload reads the configuration file again and puts it in force, all or nothing: with any fault nothing changes, and the
// error lists every fault with line and column (CLI-5). What only a start can change (listen, data_dir, store) is reported in
// the log.
func (h *Host) Reload(ctx context.Context) error {
	h.reloading.Lock()
	defer h.reloading.Unlock()
	fs, faults := h.loadFile()
	var err error
	if len(faults) > 0 {
		err = faultList(h.everyFault(ctx, fs, faults))
	} else {
		err = h.adopt(ctx, fs)
	}
	if err != nil {
		h.fault.Store(&configFault{text: err.Error(), at: h.o.Now(), stamp: stampOf(h.o.ConfigFile)})
		h.record.Append(store.Event{Kind: "config.rejected", Key: h.o.ConfigFile, Data: jsonObject("fault", h.redact.Text(err.Error()))})
		return err
	}
	h.fault.Store(nil)
	h.record.Append(store.Event{Kind: "config.reloaded", Key: h.o.ConfigFile, Data: jsonObject("file", h.o.ConfigFile)})
	h.warnAboutRestart(fs)
	return nil
}

// adopt puts a file in force. Objects and plugins of one file may need each other: a provider of a plugin that the file
// switches on, or the loss of one that it switches off. So the plugins are configured first only when it does not go without,
// and as before when it does not go at all.
func (h *Host) adopt(ctx context.Context, fs *fileState) error {
	old := h.file.Load()
	err := h.rebuild(ctx, fs)
	if old.samePlugins(fs) {
		return err
	}
	h.configurePlugins(ctx, fs)
	if err == nil {
		return h.rebuild(ctx, nil)
	}
	if err = h.rebuild(ctx, fs); err != nil {
		h.configurePlugins(ctx, old)
	}
	return err
}

// configFault is why the last reading of the file was not put in force.
type configFault struct {
	text  string
	at    time.Time
	stamp stamp
}

// warnAboutRestart names what the file asks for and only a start can do.
func (h *Host) warnAboutRestart(fs *fileState) {
	p, faults := config.Resolve(h.flags(), h.o.Env, fs.file)
	if len(faults) > 0 {
		return
	}
	for what, differs := range map[string]bool{
		"listen": p.Listen != h.process.Listen, "data_dir": p.DataDir != h.process.DataDir, "store.reserve": p.Reserve != h.process.Reserve,
		"plugins.compile": fs.compile() != h.compile,
		"plugins.dir":     p.PluginsDir != h.process.PluginsDir, "max_body": p.MaxBody != h.process.MaxBody,
	} {
		if differs {
			h.o.Log.Warn("the configuration file changed a value that only a restart puts in force", "field", what)
		}
	}
}

// filePoll is how often the configuration file is looked at. A look is one system call, and unlike an event it also sees
// mounted and linked files change.
const filePoll = time.Second

// watchFile reloads the file when it changed and has then been still for one look.
func (h *Host) watchFile(ctx context.Context) {
	if h.o.ConfigFile == "" {
		return
	}
	tick := time.NewTicker(filePoll)
	defer tick.Stop()
	tried := h.file.Load().stamp
	last := tried
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := stampOf(h.o.ConfigFile)
		if still := now == last; !still || now == tried {
			last = now
			continue
		}
		tried = now
		if now == h.file.Load().stamp {
			continue
		}
		if err := h.Reload(ctx); err != nil {
			if errors.Is(err, context.Canceled) {
				return
			}
			h.o.Log.Error("the changed configuration file was not put in force; the one before stays", "fault", err.Error())
			continue
		}
		h.o.Log.Info("the changed configuration file is in force", "file", h.o.ConfigFile)
	}
}
