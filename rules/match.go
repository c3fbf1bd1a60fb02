package rules

import (
	"slices"
	"strings"

	"github.com/weirgate/weir/rules/internal/scan"
	"github.com/weirgate/weir/rules/internal/tree"
	"github.com/weirgate/weir/sdk/wire"
)

// Match is one answer before one Set. What a rule asks about is looked up once, when the first rule asks. It may not be
// used concurrently.
//
// The reply's Status, Original, Restated and Hint are read anew by each call, so that one Match serves both stages; the
// rest of the reply must not change.
type Match struct {
	set       *Set
	view      *view
	reply     *Reply
	code, typ string // folded
	models    []string
	endpoint  string

	open    []int8 // per source: does its matches hold? 0 unknown, 1 yes, -1 no
	work    []int  // per source: what its regular expressions have cost
	sights  []*sight
	scanned bool
	texts   [textCount]string
	folded  [textCount]string
	found   [textCount][]int32  // where each marker of the view ends first
	headers map[string][]string // by lower-case name
	values  map[int][]tree.Value
}

// Match prepares r, whose Facts and Hint Read has filled.
func (s *Set) Match(r *Reply) *Match {
	provider := scan.Fold(r.Provider)
	m := &Match{set: s, view: s.view(provider), reply: r, code: scan.Fold(r.Facts.Code), typ: scan.Fold(r.Facts.Type),
		models: []string{scan.Fold(r.Model)}, endpoint: scan.Fold(r.Endpoint), open: make([]int8, len(s.sources))}
	if bare, ok := strings.CutPrefix(m.models[0], provider+"/"); ok {
		m.models = append(m.models, bare)
	}
	return m
}

// Restate returns what the first restatement rule of the sources from to to-1 says, and that source's index; false when
// no rule holds. A rule that keeps answers too, with Keep. An error without a body is never restated (RST-10).
func (m *Match) Restate(from, to int) (wire.Restatement, int, bool) {
	if !m.reply.Facts.HasBody {
		return wire.Restatement{}, -1, false
	}
	e, said, ok := m.first(&m.view.restate, from, to)
	if !ok {
		return wire.Restatement{}, -1, false
	}
	s, then := m.set.sources[e.source], e.restatement
	return wire.Restatement{Status: then.status, Code: then.code, Note: then.note, RetryAfter: said.wait, Keep: then.keep,
		Plugin: s.Plugin, Rule: e.id, Digest: s.Digest}, e.source, true
}

// Classify returns the verdict of the first classifier rule of that phase in the sources from to to-1, complete, and that
// source's index; false when no rule holds. Statuses compare with the reply's present one.
func (m *Match) Classify(p Phase, from, to int) (wire.Verdict, int, bool) {
	e, said, ok := m.first(&m.view.classify[p], from, to)
	if !ok {
		return wire.Verdict{}, -1, false
	}
	s := m.set.sources[e.source]
	v := e.verdict.complete(m.reply, said)
	v.Plugin, v.Rule, v.Digest = s.Plugin, e.id, s.Digest
	return v, e.source, true
}

// first finds the first entry that holds, with the time that it says.
func (m *Match) first(g *group, from, to int) (*entry, said, bool) {
	lo, hi := g.span(from, to)
	for i := range g.candidates(lo, hi, m.reply.statuses(), m.code, m.typ) {
		e := &g.entries[i]
		if m.holds(e) {
			if said, ok := m.said(e); ok {
				return e, said, true
			}
		}
	}
	return nil, said{}, false
}

// statuses returns the one or two that a rule's status condition may name. A restated error has its corrected status and
// no other (ABI-2.1). Before that the host's own reading (520 as 502) hides nothing from rules: both hold. Without an
// HTTP answer it is 0, whatever the host reads that as (ABI-4).
func (r *Reply) statuses() [2]int {
	switch {
	case r.Restated != "":
		return [2]int{r.Status, r.Status}
	case r.Source == wire.SourceTransport || r.Status == 0:
		return [2]int{}
	case r.Original == 0:
		return [2]int{r.Status, r.Status}
	}
	return [2]int{r.Status, r.Original}
}

// holds checks what the index has not, cheap things first.
func (m *Match) holds(e *entry) bool {
	r := m.reply
	return e.original.has(r.Original) &&
		(e.stream == nil || *e.stream == (r.Source == wire.SourceStream)) &&
		(len(e.auth) == 0 || slices.Contains(e.auth, r.Auth)) &&
		m.permitted(e) &&
		anyGlob(e.models, m.models...) &&
		anyGlob(e.endpoints, m.endpoint) &&
		m.sourceOpen(e.source) &&
		m.marked(e) &&
		m.headersHold(e) &&
		m.valuesHold(e) &&
		m.patternsHold(e)
}

// sourceOpen reports whether the matches of the plugin hold for this model and endpoint.
func (m *Match) sourceOpen(i int) bool {
	if m.open[i] == 0 {
		m.open[i] = -1
		f := m.view.filters[i]
		if f.open || slices.ContainsFunc(f.entries, func(e matchEntry) bool {
			return anyGlob(e.models, m.models...) && anyGlob(e.endpoints, m.endpoint)
		}) {
			m.open[i] = 1
		}
	}
	return m.open[i] > 0
}

func (m *Match) headersHold(e *entry) bool {
	holds := func(c headerCondition) bool { return c.holds(m.header(c.name)) }
	return (len(e.header) == 0 || slices.ContainsFunc(e.header, holds)) && every(e.headerAll, holds)
}

func (m *Match) valuesHold(e *entry) bool {
	holds := func(c jsonCondition) bool {
		wanted := c.exists == nil || *c.exists
		return wanted == m.find(c.path, e.limit, c.value)
	}
	return (len(e.json) == 0 || slices.ContainsFunc(e.json, holds)) && every(e.jsonAll, holds)
}

func every[T any](list []T, holds func(T) bool) bool {
	return !slices.ContainsFunc(list, func(x T) bool { return !holds(x) })
}
