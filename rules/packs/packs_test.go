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
