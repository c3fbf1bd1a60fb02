package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type sample struct {
	Listen  string            `json:"listen"`
	Grace   time.Duration     `json:"shutdownGrace" file:"shutdown_grace"`
	Count   int               `json:"count"`
	Small   uint8             `json:"small"`
	On      *bool             `json:"on"`
	Weight  float64           `json:"weight"`
	Raw     json.RawMessage   `json:"raw"`
	Models  []model           `json:"models"`
	Aliases map[string]string `json:"aliases"`
	Any     any               `json:"any"`
	embedded
}

type embedded struct {
	Inner string `json:"inner"`
}

type model struct {
	ID  string `json:"id"`
	Max int    `json:"max"`
}

func parseFaults(t *testing.T, text string) []string {
	t.Helper()
	n, faults := Parse("weir.yaml", []byte(text))
	if len(faults) == 0 {
		faults = n.Decode(new(sample), Tag("file"), Short[model]("id"))
	}
	var out []string
	for _, f := range faults {
		out = append(out, f.String())
	}
	return out
}

func TestDecodeFills(t *testing.T) {
	n, faults := Parse("weir.yaml", []byte(`
listen: 127.0.0.1:8787
shutdown_grace: 90s
count: 1000.0
small: 7
on: false
weight: 1.50
inner: x
raw: {b: 1.10, a: [1, 0x10, "t"]}
models: [gpt-5, {id: o3, max: 4}]
aliases: {gpt-4: "a/b"}
any: [1, {x: null}]
`))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	var got sample
	if faults := n.Decode(&got, Tag("file"), Short[model]("id")); len(faults) > 0 {
		t.Fatal(faults)
	}
	off := false
	want := sample{
		Listen: "127.0.0.1:8787", Grace: 90 * time.Second, Count: 1000, Small: 7, On: &off, Weight: 1.5,
		Raw:    json.RawMessage(`{"b":1.10,"a":[1,16,"t"]}`),
		Models: []model{{ID: "gpt-5"}, {ID: "o3", Max: 4}}, Aliases: map[string]string{"gpt-4": "a/b"},
		Any: []any{1.0, map[string]any{"x": nil}}, embedded: embedded{Inner: "x"},
	}
	if d := cmp.Diff(want, got, cmp.AllowUnexported(sample{})); d != "" {
		t.Error(d)
	}
}

func TestDecodeReportsAllFaultsWithPlaces(t *testing.T) {
	got := parseFaults(t, `listen: 12
shutdown_grace: 5
coutn: 1
count: 1.5
small: 300
models:
  - gpt-5
  - id: 7
    mx: 3
  - [x]
aliases:
  "a.b": 3
zzzzzzzzzz: 1
`)
	want := []string{
		`weir.yaml:1:9: listen: must be text, not a number; put it in quotes`,
		`weir.yaml:2:17: shutdown_grace: must be a duration such as 30s or 10m, not a number`,
		`weir.yaml:3:1: coutn: is not known here; did you mean count?`,
		`weir.yaml:4:8: count: must be a whole number`,
		`weir.yaml:5:8: small: is out of range`,
		`weir.yaml:8:9: models[1].id: must be text, not a number; put it in quotes`,
		`weir.yaml:9:5: models[1].mx: is not known here; did you mean max?`,
		`weir.yaml:10:5: models[2]: must be an object, not a list`,
		`weir.yaml:12:10: aliases["a.b"]: must be text, not a number; put it in quotes`,
		`weir.yaml:13:1: zzzzzzzzzz: is not known here`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestParseFaults(t *testing.T) {
	bomb := "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.Repeat(fmt.Sprintf("*%c, ", c-1), 9)+fmt.Sprintf("*%c", c-1))
	}
	for name, tc := range map[string]struct{ text, want string }{
		"syntax":          {"a: [1\nb: 2\n", "weir.yaml:"},
		"tab":             {"a:\n\t- b\n", "weir.yaml:2:"},
		"duplicates":      {"listen: a\ncount: 1\nlisten: b\n", "weir.yaml:3:1: listen: is given twice"},
		"nested twice":    {"aliases:\n  x: a\n  x: b\n", "weir.yaml:3:3: aliases.x: is given twice"},
		"bomb":            {bomb, "is too large: at most 64 levels and 200000 values"},
		"self":            {"any: &a [*a]\n", "contains itself"},
		"unknown anchor":  {"any: *nope\n", "nope"},
		"deep flow":       {"any: " + strings.Repeat("[", 100000), "nested deeper"},
		"deep block":      {"any:\n" + strings.Repeat("- ", 100000), "nested deeper"},
		"infinite":        {"weight: .inf\n", "weir.yaml:1:9: weight: is not a finite number"},
		"two documents":   {"count: 1\n---\ncount: 2\n", "more than one YAML document"},
		"tag":             {"listen: !!binary aGk=\n", "!!binary"},
		"not UTF-8":       {"listen: \"\xff\"\n", "not UTF-8"},
		"too many":        {strings.Repeat("#", MaxBytes+1), "is larger than"},
		"bad merge":       {"<<: 3\n", "merges"},
		"key not text":    {"? [a]\n: b\n", "weir.yaml:2:1"},
		"null in a list":  {"models: [null]\n", "models[0]: must not be null"},
		"octal key value": {"listen: 0123\n", "listen: must be text"},
	} {
		t.Run(name, func(t *testing.T) {
			got := strings.Join(parseFaults(t, tc.text), "\n")
			if !strings.Contains(got, tc.want) {
				t.Errorf("faults are %q, want %q in them", got, tc.want)
			}
		})
	}
}

// A byte order mark, which some editors write, is no part of the first key.
func TestByteOrderMark(t *testing.T) {
	n, faults := Parse("weir.yaml", []byte("\ufefflisten: x\n"))
	if len(faults) > 0 || n.Member("listen") == nil {
		t.Errorf("faults %v, tree %+v", faults, n)
	}
}

func TestAnchorsMergeAndTags(t *testing.T) {
	n, faults := Parse("", []byte("base: &b {x: 1, y: 2}\none:\n  <<: *b\n  y: 3\ntwo: *b\nthree: !!str 4\nfour: 0b11\n~: n\n"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	want := `{"base":{"x":1,"y":2},"one":{"y":3,"x":1},"two":{"x":1,"y":2},"three":"4","four":3,"~":"n"}`
	if got := string(n.JSON()); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if n, faults := Parse("", []byte("# nothing\n")); len(faults) > 0 || n.Kind != Null {
		t.Error("an empty document is not null:", n, faults)
	}
}

type millis int64

func TestReadAndNullClears(t *testing.T) {
	type limits struct {
		Wait  *millis   `json:"waitMs" file:"wait"`
		Name  string    `json:"name"`
		Count *int      `json:"count"`
		At    time.Time `json:"at"`
	}
	asDuration := Read(func(n *Node) (millis, error) {
		d, err := time.ParseDuration(n.Text)
		if n.Kind != Text || err != nil {
			return 0, errors.New("must be a duration such as 30s")
		}
		return millis(d.Milliseconds()), nil
	})
	n, _ := Parse("f", []byte("wait: 20s\n"))
	var l limits
	if faults := n.Decode(&l, Tag("file"), asDuration); len(faults) > 0 || *l.Wait != 20_000 {
		t.Error(l, faults)
	}
	n, _ = Parse("f", []byte("wait: 20\n"))
	if faults := n.Decode(&l, Tag("file"), asDuration); len(faults) != 1 || faults[0].String() != "f:1:7: wait: must be a duration such as 30s" {
		t.Error(faults)
	}
	n, _ = Parse("f", []byte("at: 2026-01-31\n"))
	if faults := n.Decode(&l); len(faults) != 1 || !strings.Contains(faults[0].Message, "must be a time such as") {
		t.Error(faults)
	}
	n, _ = Parse("f", []byte("at: 2026-01-31T12:00:00Z\n"))
	if faults := n.Decode(&l); len(faults) > 0 || l.At.Day() != 31 {
		t.Error(faults)
	}
	one := 1
	l = limits{Name: "a", Count: &one}
	n, _ = ParseJSON("", []byte(`{"name":null,"count":null,"waitMs":5}`))
	if faults := n.Decode(&l); len(faults) > 0 || l.Name != "a" || l.Count == nil || *l.Wait != 5 {
		t.Error("null is not as if absent", l, faults)
	}
	if faults := n.Decode(&l, NullClears()); len(faults) > 0 || l.Name != "" || l.Count != nil {
		t.Error("null does not clear", l, faults)
	}
}

func TestExpandEnv(t *testing.T) {
	env := map[string]string{"KEY": "a: b\n- c", "EMPTY": "", "N": "7", "YES": "true"}
	lookup := func(k string) (string, bool) { v, ok := env[k]; return v, ok }
	n, faults := Parse("weir.yaml", []byte("listen: ${KEY}\ncount: ${N}\non: ${YES}\ninner: \"<${EMPTY}|${EMPTY:-d}|${NO:-}|$${X}>\"\n"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if faults := n.ExpandEnv(lookup); len(faults) > 0 {
		t.Fatal(faults)
	}
	var got sample
	if faults := n.Decode(&got); len(faults) > 0 {
		t.Fatal(faults)
	}
	if got.Listen != "a: b\n- c" || got.Count != 7 || !*got.On || got.Inner != "<|d||${X}>" {
		t.Errorf("expanded to %+v", got)
	}

	n, _ = Parse("weir.yaml", []byte("listen: ${MISSING}\naliases:\n  a: ${bad name}\n  b: ${x\n"))
	var lines []string
	for _, f := range n.ExpandEnv(lookup) {
		lines = append(lines, f.String())
	}
	want := []string{
		"weir.yaml:1:9: listen: needs the environment variable MISSING, which is not set; set it or write ${MISSING:-default}",
		"weir.yaml:3:6: aliases.a: has ${bad name}, which is no variable; write ${NAME} or ${NAME:-default}",
		"weir.yaml:4:6: aliases.b: has ${ without a closing brace",
	}
	if d := cmp.Diff(want, lines); d != "" {
		t.Error(d)
	}
}

func TestPosition(t *testing.T) {
	n, faults := Parse("f", []byte("connections:\n  - id: a\n    key: x\naliases: {\"a.b\": c}\n"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	for path, want := range map[string][2]int{
		"":                        {1, 1},
		"connections":             {1, 1},
		"connections[0]":          {2, 5},
		"connections[0].key":      {3, 5},
		"connections[0].missing":  {2, 5},
		"connections[4].key":      {1, 1},
		`aliases["a.b"]`:          {4, 11},
		"connections[x]":          {1, 1},
		"nothing.at.all[0]":       {1, 1},
		"connections[0].key.more": {3, 5},
	} {
		line, column := n.Position(path)
		if [2]int{line, column} != want {
			t.Errorf("%s is at %d:%d, want %v", path, line, column, want)
		}
	}
}

func TestParseJSON(t *testing.T) {
	n, faults := ParseJSON("body", []byte("{\"count\": 10.0,\n \"raw\": [1.10, \"\\u00fc<\", true, null, {}] , \"on\":null}"))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	if got, want := string(n.JSON()), `{"count":10.0,"raw":[1.10,"ü<",true,null,{}],"on":null}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if line, column := n.Position("raw[1]"); line != 2 || column != 16 {
		t.Errorf("raw[1] is at %d:%d", line, column)
	}
	for text, want := range map[string]string{
		"":                      "1:1: ends too early",
		"{":                     "a name in double quotes",
		"{}x":                   "1:3: has text after its end",
		`{"a":1,"a":2}`:         "1:8: a: is given twice",
		"[1,]":                  "a value is missing",
		"[01]":                  "a value is missing or misspelt",
		`["a]`:                  "does not end",
		"[\"\x01\"]":            "control character",
		"\"\xff\"":              "not UTF-8",
		"{\"a\" 1}":             "a colon is missing",
		"[1 2]":                 "a comma",
		strings.Repeat("[", 99): "nested deeper than 64",
		"[" + strings.Repeat("1,", MaxValues) + "1]": "more than 200000",
	} {
		n, faults := ParseJSON("b", []byte(text))
		if len(faults) != 1 || n != nil || !strings.Contains(faults[0].String(), want) {
			t.Errorf("%.20q: faults are %v, want %q", text, faults, want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"priority", "provider", "provider_data", "api_key", "gpt-5-mini", "openai/gpt-5"}
	for name, want := range map[string]string{
		"provder": "provider", "PRIORITY": "priority", "apikey": "api_key", "gpt-5": "gpt-5-mini openai/gpt-5", "wholly": "",
	} {
		if got := strings.Join(Nearest(name, known, 3), " "); got != want {
			t.Errorf("nearest to %s: %q, want %q", name, got, want)
		}
	}
	if e := edits([]rune("abcd"), []rune("bacd")); e != 1 {
		t.Errorf("a swap of neighbours counts %d edits", e)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a: [1, {b: c}]\n", "a: &x 1\nb: *x\n<<: {c: d}\n", "? a\n: b\n", "- |\n  t\n", "a: !!str 1", "'", "&a *a", "a:\n- b: ${X}\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, faults := Parse("f", b)
		check(t, n, faults)
	})
}

func FuzzParseJSON(f *testing.F) {
	for _, s := range []string{`{"a":[1,2.5e3,"x\n",true,null]}`, `[`, `"\ud800"`, "[1,\xff]"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		n, faults := ParseJSON("f", b)
		check(t, n, faults)
		if len(faults) == 0 && !json.Valid(b) {
			t.Fatalf("%q was accepted", b)
		}
	})
}

// check holds what is true of every reading: faults with a place or a tree, and a tree that is a JSON value.
func check(t *testing.T, n *Node, faults []Fault) {
	t.Helper()
	if (n == nil) != (len(faults) > 0) {
		t.Fatalf("tree %v with faults %v", n, faults)
	}
	for _, f := range faults {
		if f.Line < 1 || f.Column < 1 {
			t.Fatalf("fault without a place: %+v", f)
		}
	}
	if n == nil {
		return
	}
	out := n.JSON()
	if !json.Valid(out) {
		t.Fatalf("not JSON: %s", out)
	}
	again, faults := ParseJSON("f", out)
	if len(faults) > 0 && len(out) <= MaxBytes {
		t.Fatalf("%s does not read back: %v", out, faults)
	}
	if again != nil && string(again.JSON()) != string(out) {
		t.Fatalf("%s became %s", out, again.JSON())
	}
	n.ExpandEnv(func(string) (string, bool) { return "", false })
	n.Decode(new(sample), Short[model]("id"))
}
