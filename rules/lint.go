package rules

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/weirgate/weir/sdk/wire"
)

// Lint returns what is allowed in a table but hardly meant (ABI-2.1): a rule that an earlier one always shadows, a marker
// so generic that it also ends accounts, a rule that no example shows, a field that this version does not know, and a
// terminal state that was asked for without the permission. The examples are the plugin's own (ABI-2.4); without any,
// every rule lacks one. The result is in the order of the table.
func Lint(t *Table, examples ...wire.Example) []Problem {
	problems := slices.Clone(t.unknown)
	shown := shown(t, examples)
	for i, r := range t.rules {
		tell := func(field, code, format string, args ...any) {
			problems = append(problems, Problem{Index: r.index, Rule: r.id, Field: field, Code: code, Message: fmt.Sprintf(format, args...)})
		}
		for _, earlier := range t.rules[:i] {
			if earlier.covers(r) {
				tell("", CodeShadowed, "the earlier rule %s holds wherever this one does; put this one first, or narrow %s", earlier.id, earlier.id)
				break
			}
		}
		if r.phase == Normal && !(t.builtin && r.agrees()) {
			for _, m := range slices.Concat(r.contains, r.all) {
				if signal := endsAccounts(m); signal != "" {
					tell("text_contains", CodeMarkerGeneric, "a text with %q has the signal %q, which ends the account whatever this rule says", m, signal)
				}
			}
		}
		if r.verdict.ignored {
			tell("then.terminal", CodeTerminal, "is ignored without permissions.terminate in the manifest and its grant")
		}
		if !shown[r.id] {
			tell("", CodeNoExample, "no example has an answer that this rule decides")
		}
	}
	slices.SortStableFunc(problems, func(a, b Problem) int { return cmp.Compare(a.Index, b.Index) })
	return problems
}

// agrees reports whether the rule restates to what a signal says anyway, or keeps what is there.
func (r *rule) agrees() bool {
	return r.restates && (r.restatement.keep || saysPermanent(r.restatement.status))
}

// endsAccounts returns the credit or ban signal that a marker contains.
func endsAccounts(marker string) string {
	for _, signal := range slices.Concat(CreditSignals(), BanSignals()) {
		if strings.Contains(marker, signal) {
			return signal
		}
	}
	return ""
}

// shown returns the ids of the rules that decide an example.
func shown(t *Table, examples []wire.Example) map[string]bool {
	ids := map[string]bool{}
	set := Compile(Source{Table: t})
	for _, e := range examples {
		var w wire.Reply
		if json.Unmarshal(e.Input, &w) != nil {
			continue
		}
		if w.NowMS == 0 {
			w.NowMS = e.NowMS
		}
		m := set.Match(FromWire(w))
		if e.Op == wire.OpRestate.String() {
			if r, _, ok := m.Restate(0, 1); ok {
				ids[r.Rule] = true
			}
			continue
		}
		for _, p := range []Phase{Guard, Normal, Late} {
			if v, _, ok := m.Classify(p, 0, 1); ok {
				ids[v.Rule] = true
				break
			}
		}
	}
	return ids
}

// covers reports whether r holds for every answer that other holds for. It may miss some: it compares conditions one by
// one, and regular expressions only as they are written.
func (r *rule) covers(other *rule) bool {
	if r.restates != other.restates || r.phase != other.phase && !r.restates || r.requires() {
		return false
	}
	return coverGlobs(r.providers, other.providers) && coverGlobs(r.models, other.models) &&
		coverGlobs(r.endpoints, other.endpoints) &&
		coverList(r.auth, other.auth) && coverList(r.codes, other.codes) && coverList(r.types, other.types) &&
		r.status.covers(other.status) && r.original.covers(other.original) &&
		(r.stream == nil || other.stream != nil && *r.stream == *other.stream) &&
		coverMarkers(r, other) &&
		(len(r.patterns) == 0 || len(other.patterns) > 0 && coverList(exprs(r.patterns), exprs(other.patterns))) &&
		coverTests(r, other)
}

// requires reports whether the rule needs a time in the answer.
func (r *rule) requires() bool {
	w := r.verdict.wait
	if r.restates {
		w = r.restatement.wait
	}
	return w.reading != nil && w.reading.required
}

func (s *statuses) covers(other *statuses) bool {
	if s == nil || other == nil {
		return s == nil
	}
	for i := range s {
		if other[i]&^s[i] != 0 {
			return false
		}
	}
	return true
}

// coverList compares alternatives: an empty list is every value.
func coverList[T comparable](wide, narrow []T) bool {
	return len(wide) == 0 || len(narrow) > 0 && every(narrow, func(x T) bool { return slices.Contains(wide, x) })
}

func coverGlobs(wide, narrow []glob) bool {
	return len(wide) == 0 || len(narrow) > 0 && every(narrow, func(n glob) bool {
		return slices.ContainsFunc(wide, func(w glob) bool {
			return w == n || !strings.Contains(string(n), "*") && w.match(string(n))
		})
	})
}

func exprs(ps []pattern) []string {
	var list []string
	for _, p := range ps {
		list = append(list, p.expr)
	}
	return list
}

// coverMarkers compares the three lists: what other asks for must bring along what r asks for.
func coverMarkers(r, other *rule) bool {
	has := func(outer []string, inner string) bool {
		return slices.ContainsFunc(outer, func(o string) bool { return strings.Contains(o, inner) })
	}
	// brings: every text of other has the marker
	brings := func(marker string) bool {
		return has(other.all, marker) || len(other.contains) > 0 &&
			every(other.contains, func(o string) bool { return strings.Contains(o, marker) })
	}
	contains := len(r.contains) == 0 || slices.ContainsFunc(r.contains, func(m string) bool { return has(other.all, m) }) ||
		len(other.contains) > 0 && every(other.contains, func(o string) bool {
			return slices.ContainsFunc(r.contains, func(m string) bool { return strings.Contains(o, m) })
		})
	return contains && every(r.all, brings) && every(r.none, func(m string) bool {
		return slices.ContainsFunc(other.none, func(o string) bool { return strings.Contains(m, o) })
	})
}

// coverTests compares header and json conditions as they are written.
func coverTests(r, other *rule) bool {
	return coverList(headerKeys(r.header), headerKeys(other.header)) && coverList(jsonKeys(r.json), jsonKeys(other.json)) &&
		every(headerKeys(r.headerAll), func(k string) bool { return slices.Contains(headerKeys(other.headerAll), k) }) &&
		every(jsonKeys(r.jsonAll), func(k string) bool { return slices.Contains(jsonKeys(other.jsonAll), k) })
}

func headerKeys(list []headerCondition) []string {
	var keys []string
	for _, c := range list {
		keys = append(keys, c.name+" "+c.key())
	}
	return keys
}

func jsonKeys(list []jsonCondition) []string {
	var keys []string
	for _, c := range list {
		keys = append(keys, c.text+" "+c.key())
	}
	return keys
}

// key is the test as a text that is equal only for equal tests.
func (t test) key() string {
	switch {
	case t.equals != nil:
		return "equals " + *t.equals
	case t.exists != nil:
		return fmt.Sprintf("exists %t", *t.exists)
	case t.matches != nil:
		return "matches " + t.matches.String()
	}
	return "list_has_zero"
}
