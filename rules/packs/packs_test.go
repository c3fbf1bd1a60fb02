package packs_test

import (
	"encoding/json"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/weirgate/weir/plugins"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/rules/packs"
	"github.com/weirgate/weir/sdk/wire"
)

// shipped is one built-in pack with rules.
type shipped struct {
	file string
	wire.Manifest
	table *rules.Table
}

// specific is how ABI-9 ranks a pack among built-in ones: exact providers, then globs, then *.
func (s shipped) specific() int {
	rank := 0
	for _, m := range s.Matches {
		for _, p := range m.Providers {
			switch {
			case p == "*":
			case strings.Contains(p, "*"):
				rank = max(rank, 1)
			default:
				rank = max(rank, 2)
			}
		}
	}
	return rank
}

// load parses every shipped pack that has rules, in the order of ABI-9.
func load(t testing.TB) []shipped {
	t.Helper()
	var all []shipped
	for _, from := range []fs.FS{packs.Files, plugins.Packs} {
		err := fs.WalkDir(from, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			text, err := fs.ReadFile(from, path)
			if err != nil {
				return err
			}
			if s := parse(t, path, text); s.table.Len() > 0 {
				all = append(all, s)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	slices.SortFunc(all, func(a, b shipped) int {
		if d := b.specific() - a.specific(); d != 0 {
			return d
		}
		return strings.Compare(a.Name, b.Name)
	})
	return all
}

func parse(t testing.TB, path string, text []byte) shipped {
	t.Helper()
	doc, err := yaml.YAMLToJSON(text)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	s := shipped{file: path}
	if err := json.Unmarshal(doc, &s.Manifest); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	table, problems := rules.Parse(s.Rules, rules.Options{Plugin: s.Name, Builtin: true, Terminate: s.Permissions.Terminate != nil, Needs: s.Needs, Kinds: s.Kinds})
	for _, p := range problems {
		t.Errorf("%s: %v", path, p)
	}
	s.table = table
	return s
}

func compile(all []shipped) *rules.Set {
	sources := make([]rules.Source, len(all))
	for i, s := range all {
		sources[i] = rules.Source{Table: s.table, Plugin: s.Name, Matches: s.Matches}
	}
	return rules.Compile(sources...)
}

// ABI-2.1: every rule of a shipped pack says where its payload was seen, is shown by an example, and is reached.
func TestRules(t *testing.T) {
	for _, s := range load(t) {
		t.Run(s.Name, func(t *testing.T) {
			for _, p := range rules.Lint(s.table, s.Examples...) {
				if p.Code == rules.CodeMarkerGeneric {
					continue // a built-in pack says on purpose what a signal means at its provider (CLS-7)
				}
				t.Error(p)
			}
			var list []struct{ ID, Evidence string }
			if err := json.Unmarshal(s.Rules, &list); err != nil {
				t.Fatal(err)
			}
			for _, r := range list {
				if r.Evidence == "" {
					t.Errorf("%s has no evidence", r.ID)
				}
			}
			if !slices.ContainsFunc(s.Examples, func(e wire.Example) bool { return string(e.Expect) == "null" }) {
				t.Error("no example shows an answer that no rule decides")
			}
		})
	}
}

// ABI-2.4: the examples, by the path that real answers take.
func TestExamples(t *testing.T) {
	for _, s := range load(t) {
		set := compile([]shipped{s})
		for _, e := range s.Examples {
			if e.Op != wire.OpRestate.String() && e.Op != wire.OpClassify.String() {
				continue
			}
			t.Run(s.Name+"/"+e.Name, func(t *testing.T) { example(t, set, e) })
		}
	}
}

func example(t *testing.T, set *rules.Set, e wire.Example) {
	var in wire.Reply
	if err := json.Unmarshal(e.Input, &in); err != nil {
		t.Fatal(err)
	}
	if in.NowMS == 0 {
		in.NowMS = e.NowMS
	}
	m := set.Match(rules.FromWire(in))
	got := []byte("null")
	if e.Op == wire.OpRestate.String() {
		if r, _, ok := m.Restate(0, 1); ok {
			got = rules.MarshalRestatement(r)
		}
	} else {
		for _, phase := range []rules.Phase{rules.Late, rules.Normal, rules.Guard} { // the earliest phase stands
			if v, _, ok := m.Classify(phase, 0, 1); ok {
				got = rules.MarshalVerdict(v)
			}
		}
	}
	var want, has map[string]any
	if err := json.Unmarshal(e.Expect, &want); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(got, &has); err != nil {
		t.Fatal(err)
	}
	if (want == nil) != (has == nil) {
		t.Fatalf("got %s, want %s", got, e.Expect)
	}
	for k := range want {
		if has[k] != want[k] {
			t.Errorf("%s is %v, want %v (by %v)", k, has[k], want[k], has["rule"])
		}
	}
}
