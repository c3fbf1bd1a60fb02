package catalog

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/sdk/wire"
)

// Described is what one plugin in force says about providers.
type Described struct {
	Plugin        string
	Builtin       bool
	Providers     []wire.Provider
	KeyEnvGranted []string                // ids of providers whose key_env a third-party plugin may have read (ABI-2.2)
	PlanDialects  map[string]wire.Dialect // what the plugin's static plans speak, by canonical endpoint
}

// Sources is everything that a snapshot is made of. Nothing in it is changed.
type Sources struct {
	File *Input // nil: no file
	// FileInForce says that the file was accepted before and something else has changed. What does not fit any more, since
	// a plugin went away, is then left out with a warning: it must not block changes that have nothing to do with it.
	FileInForce bool
	Stored      *Input // nil: an empty store
	Discovered  []ConnectionInput
	Env         settings.Lookup // nil: an empty environment
	Described   []Described     // built-in plugins first
	Demo        bool            // adds demo-a and demo-b (CFG-3)
	Previous    *Snapshot       // in force now; credential revisions go on from it
}

// Build makes a snapshot and reports every problem at once. The faults are those of the file and of objects that are being
// saved: with any of them the caller keeps the previous snapshot. Stored objects with faults are left out with a warning,
// so that they cannot keep a gateway from starting.
func Build(in Sources) (*Snapshot, []document.Fault) {
	if in.Env == nil {
		in.Env = func(string) (string, bool) { return "", false }
	}
	b := &builder{in: in, dropped: map[string]bool{}, s: &Snapshot{
		Aliases: map[string]string{}, providers: map[string]*Provider{}, connections: map[string]*Connection{},
		combos: map[string]*Combo{}, keys: map[[32]byte]*Key{}, routes: map[string]*Route{},
	}}
	b.settings()
	b.providers()
	b.connections()
	b.keys()
	b.combos()
	b.aliases()
	b.s.index()
	slices.SortStableFunc(b.faults, func(x, y document.Fault) int {
		return cmp.Or(cmp.Compare(x.Line, y.Line), cmp.Compare(x.Column, y.Column))
	})
	return b.s, b.faults
}

type builder struct {
	in      Sources
	s       *Snapshot
	faults  []document.Fault
	dropped map[string]bool // objects that have a fault of their own, as kind/id: that others name them is none
}

func (b *builder) warn(format string, args ...any) {
	b.s.Warnings = append(b.s.Warnings, fmt.Sprintf(format, args...))
}

func (b *builder) settings() {
	var stored settings.Stored
	if b.in.Stored != nil {
		stored = b.in.Stored.Settings
		if err := b.in.Stored.Unreadable; err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				b.warn("%s; it is left out", line)
			}
		}
	}
	if b.in.File != nil {
		b.s.FileSettings = b.in.File.Settings
	}
	var warnings []string
	b.s.Settings, b.s.SettingSources, warnings = settings.Resolve(b.in.Env, stored, b.s.FileSettings)
	b.s.Warnings = append(b.s.Warnings, warnings...)
}

// item is an Entry on its way into the snapshot, with the source that it came from and the faults found so far.
type item[T any] struct {
	Entry[T]
	source  *Input
	kind    string // connection, combo, ...
	id      string
	lenient bool // faults leave the object out, in place of refusing the whole
	faults  []document.Fault
}

// items joins the entries of file and store. An id that is there twice is a fault that names both places (CFG-1).
func items[T any](b *builder, kind string, pick func(*Input) []Entry[T], id func(T) string) []*item[T] {
	var out []*item[T]
	seen := map[string]*item[T]{}
	for _, source := range []*Input{b.in.File, b.in.Stored} {
		if source == nil {
			continue
		}
		for _, e := range pick(source) {
			it := &item[T]{Entry: e, source: source, kind: kind, id: id(e.Object)}
			if it.Meta.ManagedBy == "" {
				it.Meta.ManagedBy = map[bool]ManagedBy{true: ByFile, false: ByAPI}[source == b.in.File]
			}
			it.Meta.Revision = max(it.Meta.Revision, 1)
			it.lenient = !it.Saving && (it.Meta.ManagedBy != ByFile || b.in.FileInForce)
			if first, ok := seen[it.id]; ok {
				twice(b, first, it)
				continue
			}
			seen[it.id] = it
			out = append(out, it)
		}
	}
	return out
}

// twice reports an id that two entries have: at the later one when one source has both or it is being saved, else at the
// file's, which came first.
func twice[T any](b *builder, first, second *item[T]) {
	const message = "the %s id %q is both in %s and in %s; keep one of them"
	if first.source != second.source && !second.Saving {
		first.fault("", message, first.kind, first.id, first.place(), second.place())
		return
	}
	second.fault("", message, first.kind, first.id, first.place(), second.place())
	b.settle(second.owner(), second.faults)
}

// place names where an entry stands, in words.
func (it *item[T]) place() string {
	if it.Path == "" {
		return it.source.Name
	}
	if it.source.Root == nil {
		return it.source.Name + " (" + it.Path + ")"
	}
	line, _ := it.source.Root.Position(it.Path)
	return fmt.Sprintf("%s line %d (%s)", it.source.Name, line, it.Path)
}

// fault notes a problem with a field, named as the API does; in the file it has its own name (OBJ-1).
func (it *item[T]) fault(field, format string, args ...any) {
	message := fmt.Sprintf(format, args...)
	if it.Saving {
		it.faults = append(it.faults, document.Fault{Path: field, Message: message})
		return
	}
	switch {
	case it.kind == "alias": // an entry of a map: the whole of it
		field = ""
	case it.Meta.ManagedBy == ByFile:
		field = fileName(it.kind, field)
	}
	path := it.Path
	if field != "" {
		path = strings.TrimPrefix(it.Path+"."+field, ".")
	}
	if it.source != nil && it.source.Root != nil {
		it.faults = append(it.faults, it.source.Root.Fault(path, message))
		return
	}
	f := document.Fault{Path: path, Message: message}
	if it.source != nil {
		f.File = it.source.Name
	}
	it.faults = append(it.faults, f)
}

func (it *item[T]) owner() owner {
	return owner{kind: it.kind, id: it.id, lenient: it.lenient}
}

type owner struct {
	kind, id string
	lenient  bool // stored: leave out with a warning
}

// settle reports an object's faults and says whether the object may be used.
func (b *builder) settle(o owner, faults []document.Fault) bool {
	if len(faults) > 0 {
		b.dropped[o.kind+"/"+o.id] = true
	}
	if !o.lenient {
		b.faults = append(b.faults, faults...)
		return len(faults) == 0
	}
	for _, f := range faults {
		what := f.Message
		if f.Path != "" {
			what = f.Path + ": " + what
		}
		b.warn("the %s %q has a fault and is left out: %s", o.kind, o.id, what)
	}
	return len(faults) == 0
}

// mapFields hold names of the operator's own, which are the same in file and API.
var mapFields = []string{"headers", "dialects", "secrets", "providerSpecificData", "quotaWindowThresholds", "modelConcurrency"}

// fileName is the file's name of a field (OBJ-1): snake case, without Ms.
func fileName(kind, field string) string {
	name, rest := field, ""
	if i := strings.IndexAny(field, ".["); i >= 0 {
		name, rest = field[:i], field[i:]
	}
	switch {
	case name == "providerSpecificData":
		name = "provider_data"
	case name == "name" && kind == "combo":
		name = "id"
	default:
		name = snake(strings.TrimSuffix(name, "Ms"))
	}
	if slices.Contains(mapFields, field[:len(field)-len(rest)]) {
		return name + rest
	}
	if after, ok := strings.CutPrefix(rest, "."); ok {
		return name + "." + fileName("", after)
	}
	if end := strings.Index(rest, "]."); end >= 0 {
		return name + rest[:end+2] + fileName("", rest[end+2:])
	}
	return name + rest
}

func snake(camel string) string {
	var out strings.Builder
	runes := []rune(camel)
	for i, r := range runes {
		if unicode.IsUpper(r) && i > 0 {
			out.WriteByte('_')
		}
		out.WriteRune(unicode.ToLower(r))
	}
	return out.String()
}

// sortedProviders is the order of Snapshot.Providers.
func (b *builder) sortedProviders(unique map[string]*Provider) {
	for _, id := range slices.Sorted(maps.Keys(unique)) {
		b.s.Providers = append(b.s.Providers, unique[id])
	}
}
