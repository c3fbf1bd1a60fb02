package rules

import (
	"sync"

	"github.com/weirgate/weir/rules/internal/scan"
	"github.com/weirgate/weir/sdk/wire"
)

// Source is one table in the order of ABI-9.
type Source struct {
	Table   *Table // nil: a plugin that has only hooks
	Plugin  string
	Digest  string
	Matches []wire.Match // of the manifest; empty: everything
}

// maxViews bounds the views that a Set keeps; providers beyond it are compiled anew for each answer.
const maxViews = 1024

// Set is the tables of all plugins, compiled. It is immutable and may be used concurrently: an error is judged entirely
// by one set (RUL-15).
type Set struct {
	sources []Source

	mu    sync.RWMutex
	views map[string]*view // by folded provider id, made at its first failed answer; guarded by mu
}

// Compile makes a matcher of the tables, which come in the order of ABI-9. The index of a source in the arguments is the
// one that Match speaks of.
func Compile(sources ...Source) *Set {
	return &Set{sources: sources, views: map[string]*view{}}
}

// Len returns the number of sources.
func (s *Set) Len() int { return len(s.sources) }

// view is what concerns one provider: the rules that may match its answers, indexed.
type view struct {
	filters  []filter // by source
	restate  group
	classify [3]group // by phase
	markers  *scan.Automaton
	least    int // bytes of text that the plugin sees that sees the least

	expressions int // number of them
}

// filter is what is left of a source's matches for one provider.
type filter struct {
	open    bool // everything of this provider
	entries []matchEntry
}

type matchEntry struct{ models, endpoints []glob }

// entry is a rule in a view, with the numbers of its markers in the automaton.
type entry struct {
	*rule
	source              int
	limit               int // bytes of text that it sees
	contains, all, none []int32
	sought              []sought // its regular expressions
}

// sought is a regular expression in a view.
type sought struct {
	*pattern
	number   int       // rules with the same expression share it
	literals [][]int32 // the texts of its needs, by their numbers
}

func (s *Set) view(provider string) *view {
	s.mu.RLock()
	v := s.views[provider]
	s.mu.RUnlock()
	if v != nil {
		return v
	}
	v = s.build(provider)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.views) < maxViews {
		s.views[provider] = v
	}
	return v
}

func (s *Set) build(provider string) *view {
	b := &builder{numbers: map[string]int32{}, expressions: map[string]int{}}
	v := &view{filters: make([]filter, len(s.sources)), least: MaxText}
	for i, source := range s.sources {
		f, ok := newFilter(source.Matches, provider)
		v.filters[i] = f
		if ok && source.Table != nil {
			b.add(v, i, source.Table, provider)
		}
		v.restate.end()
		for p := range v.classify {
			v.classify[p].end()
		}
	}
	v.restate.index()
	for p := range v.classify {
		v.classify[p].index()
	}
	v.markers = scan.NewAutomaton(b.markers)
	v.expressions = len(b.expressions)
	return v
}

func newFilter(matches []wire.Match, provider string) (filter, bool) {
	f := filter{open: len(matches) == 0}
	for _, m := range matches {
		if !anyGlob(globs(m.Providers), provider) {
			continue
		}
		if len(m.Models) == 0 && len(m.Endpoints) == 0 {
			f.open = true
		}
		f.entries = append(f.entries, matchEntry{globs(m.Models), globs(m.Endpoints)})
	}
	return f, f.open || len(f.entries) > 0
}

// builder numbers the markers of a view and its regular expressions, each once.
type builder struct {
	numbers     map[string]int32
	markers     []string
	expressions map[string]int
}

func (b *builder) pattern(p *pattern) sought {
	n, ok := b.expressions[p.expr]
	if !ok {
		n = len(b.expressions)
		b.expressions[p.expr] = n
	}
	s := sought{pattern: p, number: n}
	for _, need := range p.Needs {
		s.literals = append(s.literals, b.list(need.Texts))
	}
	return s
}

func (b *builder) number(marker string) int32 {
	n, ok := b.numbers[marker]
	if !ok {
		n = int32(len(b.markers))
		b.numbers[marker] = n
		b.markers = append(b.markers, marker)
	}
	return n
}

func (b *builder) list(markers []string) []int32 {
	var ns []int32
	for _, m := range markers {
		ns = append(ns, b.number(m))
	}
	return ns
}

func (b *builder) add(v *view, source int, t *Table, provider string) {
	for _, r := range t.rules {
		if !anyGlob(r.providers, provider) {
			continue
		}
		v.least = min(v.least, t.limit)
		e := entry{rule: r, source: source, limit: t.limit,
			contains: b.list(r.contains), all: b.list(r.all), none: b.list(r.none)}
		for i := range r.patterns {
			e.sought = append(e.sought, b.pattern(&r.patterns[i]))
		}
		if r.restates {
			v.restate.entries = append(v.restate.entries, e)
		} else {
			g := &v.classify[r.phase]
			g.entries = append(g.entries, e)
		}
	}
}
