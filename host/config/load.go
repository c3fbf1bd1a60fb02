package config

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/settings"
)

// Load reads the file at path and reports every fault in it: syntax, unknown keys, wrong types, missing variables, values
// that are not allowed. With a fault there is no File. Faults carry path as it was given.
func Load(path string, env settings.Lookup) (*File, []document.Fault) {
	return whole(LoadPart(path, env))
}

// LoadPart is Load, but beside faults it returns what could be read, so that its objects can be checked at the same time. A File
// with faults is not to be put in force. It is nil when nothing could be read.
func LoadPart(path string, env settings.Lookup) (*File, []document.Fault) {
	b, err := os.ReadFile(path)
	if err != nil {
		reason := "cannot be read: " + err.Error()
		if errors.Is(err, fs.ErrNotExist) {
			reason = "does not exist"
		}
		return nil, []document.Fault{{File: path, Message: reason}}
	}
	return parse(path, b, env)
}

// Parse is Load for text that was read already.
func Parse(path string, text []byte, env settings.Lookup) (*File, []document.Fault) {
	return whole(parse(path, text, env))
}

func whole(f *File, faults []document.Fault) (*File, []document.Fault) {
	if len(faults) > 0 {
		return nil, faults
	}
	return f, nil
}

func parse(path string, text []byte, env settings.Lookup) (*File, []document.Fault) {
	root, faults := document.Parse(path, text)
	if len(faults) > 0 {
		return nil, faults
	}
	faults = root.ExpandEnv(env)
	s, more := decode(root)
	r := &reader{root: root, s: s, faults: append(faults, more...)}
	f := r.file(path)
	return f, document.InOrder(r.faults)
}

type reader struct {
	root   *document.Node
	s      *schema
	faults []document.Fault
}

func (r *reader) fault(path, format string, args ...any) {
	r.faults = append(r.faults, r.root.Fault(path, fmt.Sprintf(format, args...)))
}

func (r *reader) file(path string) *File {
	s := r.s
	f := &File{
		Path: path, Listen: s.Listen, DataDir: s.DataDir, LogLevel: s.LogLevel, LogFormat: s.LogFormat, ShutdownGrace: s.ShutdownGrace,
		Plugins: r.plugins(), Input: r.input(path),
	}
	for _, check := range []struct{ path, message string }{
		{"listen", badListen(s.Listen)}, {"log_level", badWord(s.LogLevel, logLevels)}, {"log_format", badWord(s.LogFormat, logFormats)},
	} {
		if check.message != "" {
			r.fault(check.path, "%s", check.message)
		}
	}
	if s.ShutdownGrace != nil && *s.ShutdownGrace < 0 {
		r.fault("shutdown_grace", "must be 0s or more")
	}
	if s.MaxBody != nil {
		f.MaxBody = *s.MaxBody
		if f.MaxBody < 1<<10 || f.MaxBody > 1<<30 {
			r.fault("max_body", "must be 1KiB to 1GiB")
		}
	}
	if s.Store.Reserve != nil {
		f.StoreReserve = *s.Store.Reserve
		if f.StoreReserve < minReserve {
			r.fault("store.reserve", "must be 96MiB or more: the store needs that room to close its files (DATA-6)")
		}
	}
	return f
}

// input gathers the objects of the catalogue, with the path of each.
func (r *reader) input(path string) *catalog.Input {
	s := r.s
	in := &catalog.Input{
		Name: path, Root: r.root,
		Providers: entries("providers", s.Providers), Connections: entries("connections", s.Connections),
		Combos: entries("combos", s.Combos), Keys: entries("api_keys", s.APIKeys), Settings: settings.Stored{},
	}
	for _, alias := range slices.Sorted(maps.Keys(s.Aliases)) {
		in.Aliases = append(in.Aliases, catalog.Entry[catalog.AliasInput]{
			Object: catalog.AliasInput{Alias: alias, Model: s.Aliases[alias]}, Meta: catalog.Meta{ManagedBy: catalog.ByFile},
			Path: document.Join("aliases", alias),
		})
	}
	r.settings(in.Settings, settings.Resilience)
	r.settings(in.Settings, settings.General)
	return in
}

func entries[T any](path string, objects []T) []catalog.Entry[T] {
	var out []catalog.Entry[T]
	for i, o := range objects {
		out = append(out, catalog.Entry[T]{Object: o, Meta: catalog.Meta{ManagedBy: catalog.ByFile}, Path: document.At(path, i)})
	}
	return out
}

// settings reads one of the blocks that hold documents of the API (OBJ-1).
func (r *reader) settings(into settings.Stored, which settings.Doc) {
	given, faults := settings.Read(r.root.Member(string(which)), which, string(which))
	r.faults = append(r.faults, faults...)
	for _, path := range slices.Sorted(maps.Keys(given)) {
		at := string(which) + "." + path
		switch _, twice := into[path]; {
		case twice:
			r.fault(at, "is also given in resilience; keep one of them")
		case string(given[path]) == "null":
			// as if absent: the file does not own it
		default:
			into[path] = given[path]
		}
	}
}

// plugins checks the section. What this version does not have is refused, never ignored.
func (r *reader) plugins() Plugins {
	s := &r.s.Plugins
	p := Plugins{Dir: s.Dir, Modes: s.Modes, Trust: s.Trust, TrustedKeys: s.TrustedKeys, Compile: s.Compile, RequireExamples: s.RequireExamples, Settings: map[string]PluginSettings{}}
	for _, name := range slices.Sorted(maps.Keys(s.Modes)) {
		at := document.Join("plugins.modes", name)
		switch s.Modes[name] {
		case "active", "shadow", "off":
		default:
			r.fault(at, "must be active, shadow or off")
		}
	}
	if bad := badWord(s.Trust, []string{"open", "locked", "signed"}); bad != "" {
		r.fault("plugins.trust", "%s", bad)
	}
	if s.Trust == "signed" && len(s.TrustedKeys) == 0 {
		r.fault("plugins.trust", "signed needs at least one public key in plugins.trusted_keys, else no plugin could be loaded")
	}
	if bad := badWord(s.Compile, []string{"inprocess", "child"}); bad != "" {
		r.fault("plugins.compile", "%s", bad)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Settings)) {
		p.Settings[name] = r.pluginSettings(document.Join("plugins.settings", name), s.Settings[name])
	}
	return p
}

func (r *reader) pluginSettings(at string, s pluginSettingsSchema) PluginSettings {
	out := PluginSettings{Order: s.Order, OnViolation: s.OnViolation, Limits: s.Limits, Grants: Grants{
		HTTPHosts: s.Grants.HTTP.Hosts, HTTPPrivate: s.Grants.HTTP.AllowPrivate, KVBytes: s.Grants.KV.Bytes, Terminate: s.Grants.Terminate,
		Providers: s.Grants.Providers,
	}}
	if len(s.Config) > 0 {
		b, err := json.Marshal(s.Config)
		if err != nil {
			r.fault(at+".config", "cannot be written as JSON")
		}
		out.Config = b
	}
	if bad := badWord(s.OnViolation, []string{"fail_open", "fail_closed"}); bad != "" {
		r.fault(at+".on_violation", "%s", bad)
	}
	if s.Merge {
		r.fault(at+".merge", "true is not implemented in this version; leave it false")
	}
	if s.MinConfidence != nil && *s.MinConfidence != 0 {
		r.fault(at+".min_confidence", "is not implemented in this version; leave it 0")
	}
	if len(s.Grants.Secrets) > 0 {
		r.fault(at+".grants.secrets", "are granted by giving them: leave this out and write each with its value under %s.secrets", at)
	}
	out.Secrets = r.pluginSecrets(at+".secrets", s.Secrets)
	for i, host := range s.Grants.HTTP.AllowPrivate {
		if !slices.Contains(s.Grants.HTTP.Hosts, host) {
			r.fault(document.At(at+".grants.http.allow_private", i), "names a host that is not granted; name it in hosts too, spelled alike")
		}
	}
	if s.Grants.KV.Bytes < 0 {
		r.fault(at+".grants.kv.bytes", "must be 0 or more")
	}
	return out
}

var secretShape = regexp.MustCompile(`^[A-Za-z0-9_]{1,64}$`)

// pluginSecrets reads what a plugin may name in a header. No fault repeats a value. An empty one counts as granted and not set.
func (r *reader) pluginSecrets(at string, given map[string]string) map[string]catalog.Secret {
	if len(given) == 0 {
		return nil
	}
	out := make(map[string]catalog.Secret, len(given))
	for _, name := range slices.Sorted(maps.Keys(given)) {
		text, path := given[name], document.Join(at, name)
		if !secretShape.MatchString(name) {
			r.fault(path, "is no name of a secret; use letters, digits and _, at most 64, as the plugin's manifest does")
		}
		if strings.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			r.fault(path, "has a line break or control character, which no header can hold; check where the value comes from")
		}
		out[name] = catalog.NewSecret(text)
	}
	return out
}

func badListen(addr string) string {
	if addr == "" {
		return ""
	}
	host, port, err := net.SplitHostPort(addr)
	if n, nerr := strconv.ParseUint(port, 10, 16); err != nil || nerr != nil || n > 65535 || strings.ContainsAny(host, " /") {
		return "must be an address such as 127.0.0.1:8787"
	}
	return ""
}

func badWord(word string, allowed []string) string {
	if word == "" || slices.Contains(allowed, word) {
		return ""
	}
	return "must be one of " + strings.Join(allowed, ", ")
}
