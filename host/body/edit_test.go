package body

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weirgate/weir/sdk/wire"
)

func num(v float64) *float64 { return &v }

func read(t testing.TB, text string) *Buffer {
	t.Helper()
	b, err := Read(strings.NewReader(text), int64(len(text)), 32<<20)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func compile(t testing.TB, edits ...wire.Edit) *Editor {
	t.Helper()
	e, err := Compile(edits)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func set(path, value string) wire.Edit {
	return wire.Edit{Op: "set", Path: path, Value: wire.Raw(value)}
}
func del(path string) wire.Edit        { return wire.Edit{Op: "delete", Path: path} }
func rename(path, to string) wire.Edit { return wire.Edit{Op: "rename", Path: path, To: to} }
func def(path, value string) wire.Edit {
	return wire.Edit{Op: "set_default", Path: path, Value: wire.Raw(value)}
}
func clamp(path string, low, up *float64) wire.Edit {
	return wire.Edit{Op: "clamp", Path: path, Min: low, Max: up}
}

// ABI-3, INF-16: each op, and what it leaves alone byte for byte.
func TestEdits(t *testing.T) {
	for _, c := range []struct {
		name, in string
		edits    []wire.Edit
		want     string
	}{
		{"set model", `{"model":"a","x":1}`, []wire.Edit{set("model", `"longer"`)}, `{"model":"longer","x":1}`},
		{"set keeps place and blanks", "\n{ \"x\" : 1 ,\t\"model\" :\"a\" }\n", []wire.Edit{set("model", `"b"`)}, "\n{ \"x\" : 1 ,\t\"model\" :\"b\" }\n"},
		{"set appends", `{"x":1}`, []wire.Edit{set("y", `[2]`)}, `{"x":1,"y":[2]}`},
		{"set in empty", ` { } `, []wire.Edit{set("y", `2`), set("z", `3`)}, ` {"y":2,"z":3 } `},
		{"set an escaped key", `{"mod\u0065l":"a"}`, []wire.Edit{set("model", `"b"`)}, `{"mod\u0065l":"b"}`},
		{"set with duplicates", `{"model":"a","x":1,"model":"b"}`, []wire.Edit{set("model", `"c"`)}, `{"x":1,"model":"c"}`},
		{"set makes parents", `{"x":1}`, []wire.Edit{set("a.b.c", `1`)}, `{"x":1,"a":{"b":{"c":1}}}`},
		{"set through null", `{"a":null}`, []wire.Edit{set("a.b", `1`)}, `{"a":{"b":1}}`},
		{"set stops at other values", `{"a":"text"}`, []wire.Edit{set("a.b", `1`)}, `{"a":"text"}`},
		{"set an item", `{"a":[1,2,3]}`, []wire.Edit{set("a.-1", `9`), set("a.0", `8`), set("a.7", `7`)}, `{"a":[8,2,9]}`},
		{"set in every item", `{"m":[{"a":1},{"b":2},3]}`, []wire.Edit{set("m.*.a", `0`)}, `{"m":[{"a":0},{"b":2,"a":0},3]}`},
		{"set below a missing array", `{}`, []wire.Edit{set("m.*.a", `0`), set("q.m.*.a", `0`)}, `{}`},
		{"set_default", `{"a":null}`, []wire.Edit{def("a", `1`), def("b", `2`)}, `{"a":null,"b":2}`},
		{"set_default below", `{"s":{"x":1}}`, []wire.Edit{def("s.x", `3`), def("s.y", `2`)}, `{"s":{"x":1,"y":2}}`},
		{"delete the first", `{ "a" : 1 , "b" : 2 , "c":3}`, []wire.Edit{del("a")}, `{ "b" : 2 , "c":3}`},
		{"delete the last", `{ "a" : 1 , "b" : 2 }`, []wire.Edit{del("b")}, `{ "a" : 1 }`},
		{"delete two", `{"a":1,"b":2,"c":3,"d":4}`, []wire.Edit{del("a"), del("c")}, `{"b":2,"d":4}`},
		{"delete all", `{"a":1,"b":2}`, []wire.Edit{del("a"), del("b")}, `{}`},
		{"delete all duplicates", `{"a":1,"b":2,"a":3}`, []wire.Edit{del("a")}, `{"b":2}`},
		{"delete in every item", `{"messages":[{"name":"n","x":1},{"x":2,"name":"m"},{"name":1}]}`, []wire.Edit{del("messages.*.name")}, `{"messages":[{"x":1},{"x":2},{}]}`},
		{"delete every item", `{"a":[1,[2],{"b":3}],"c":0}`, []wire.Edit{del("a.*")}, `{"a":[],"c":0}`},
		{"delete what is missing", `{"a":1}`, []wire.Edit{del("b"), del("a.b"), del("a.*")}, `{"a":1}`},
		{"rename", `{"max_tokens":5,"x":1}`, []wire.Edit{rename("max_tokens", "max_completion_tokens")}, `{"max_completion_tokens":5,"x":1}`},
		{"rename over another", `{"b":1,"a":2}`, []wire.Edit{rename("a", "b")}, `{"b":2}`},
		{"rename in every item", `{"m":[{"a":1},{"a":2}]}`, []wire.Edit{rename("m.*.a", "m.*.b")}, `{"m":[{"b":1},{"b":2}]}`},
		{"rename to another place", `{"effort":"low","x":1}`, []wire.Edit{rename("effort", "reasoning.effort")}, `{"x":1,"reasoning":{"effort":"low"}}`},
		{"rename upwards", `{"a":{"b":1},"x":2}`, []wire.Edit{rename("a.b", "a")}, `{"a":1,"x":2}`},
		{"rename without a way", `{"a":1,"b":"text"}`, []wire.Edit{rename("a", "b.c")}, `{"a":1,"b":"text"}`},
		{"rename what is missing", `{"b":1}`, []wire.Edit{rename("a", "b")}, `{"b":1}`},
		{"clamp", `{"t":1.7,"u":-1,"v":0.5,"w":"9"}`, []wire.Edit{clamp("t", num(0), num(1)), clamp("u", num(0.25), nil), clamp("v", num(0), num(1)), clamp("w", num(0), num(1))}, `{"t":1,"u":0.25,"v":0.5,"w":"9"}`},
		{"clamp beyond float", `{"t":1e999,"u":-1e999}`, []wire.Edit{clamp("t", nil, num(2)), clamp("u", num(-2), nil)}, `{"t":2,"u":-2}`},
		{"in order", `{"max_tokens":5}`, []wire.Edit{rename("max_tokens", "m"), set("max_tokens", "1"), clamp("m", nil, num(3)), rename("m", "n"), del("max_tokens"), def("n", "0")}, `{"n":3}`},
		{"set, then below it", `{"a":1}`, []wire.Edit{set("a", `{"b":{"c":1}}`), set("a.b.c", `2`), del("a.x"), set("a.b.d", `3`)}, `{"a":{"b":{"c":2,"d":3}}}`},
		{"dots and stars in names", `{"a.b":1,"*":2,"c\\":3}`, []wire.Edit{set(`a\.b`, `0`), set(`\*`, `0`), del(`c\\`)}, `{"a.b":0,"*":0}`},
		{"unknown fields", `{"context_management":{"edits":[ {"type": "x"} ]}, "n": 1.50e+1, "model":"a"}`, []wire.Edit{set("model", `"b"`)}, `{"context_management":{"edits":[ {"type": "x"} ]}, "n": 1.50e+1, "model":"b"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := read(t, c.in)
			p, err := compile(t, c.edits...).Apply(b)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, string(p.Bytes())); d != "" {
				t.Error(d)
			}
			if got := p.Changed(); got != (c.want != c.in) {
				t.Errorf("Changed is %v", got)
			}
			if d := cmp.Diff(c.in, string(b.Bytes())); d != "" {
				t.Errorf("the original changed: %s", d)
			}
		})
	}
}

func TestCompileFaults(t *testing.T) {
	many := slices.Repeat([]wire.Edit{del("a")}, MaxEdits+1)
	if _, err := Compile(many); err == nil {
		t.Error("65 edits were taken") // ABI-3
	}
	if _, err := Compile(many[1:]); err != nil {
		t.Error(err)
	}
	for _, e := range []wire.Edit{
		{Op: "replace", Path: "a"}, del(""), del("a."), del(".a"), del("a..b"), set("a", ""), set("a", "{"), set("a", "1 2"),
		clamp("a", nil, nil), clamp("a", num(2), num(1)), rename("a", ""), rename("a", "a.b"), rename("m.*.a", "b"), rename("a.*", "a.b"),
	} {
		if _, err := Compile([]wire.Edit{del("ok"), e}); err == nil {
			t.Errorf("%+v was taken", e)
		} else if !strings.Contains(err.Error(), "body edit 1") {
			t.Errorf("the error does not name the edit: %v", err)
		}
	}
}

// The reference: the same edits, one after the other, on what encoding/json decodes.
func reference(v any, e wire.Edit) any {
	path := strings.Split(e.Path, ".")
	if e.Op == "rename" {
		to := strings.Split(e.To, ".")
		n := len(path) - 1
		if len(to) == len(path) && slices.Equal(to[:n], path[:n]) {
			return walk(v, path, func(parent map[string]any, _ []any, key string, _ int) {
				if val, ok := parent[key]; ok && key != to[n] {
					delete(parent, key)
					parent[to[n]] = val
				}
			}, false)
		}
		moved, val := false, any(nil)
		walk(v, path, func(parent map[string]any, _ []any, key string, _ int) { val, moved = parent[key] }, false)
		probe := clone(v)
		hit := false
		walk(probe, to, func(parent map[string]any, list []any, key string, i int) { hit = true }, true)
		if !moved || !hit {
			return v
		}
		walk(v, path, func(parent map[string]any, _ []any, key string, _ int) { delete(parent, key) }, false)
		return reference(v, wire.Edit{Op: "set", Path: e.To, Value: encode(val)})
	}
	create := e.Op == "set" || e.Op == "set_default"
	return walk(v, path, func(parent map[string]any, list []any, key string, i int) {
		act(e, parent, list, key, i)
	}, create)
}

var gone = new(int)

func act(e wire.Edit, parent map[string]any, list []any, key string, i int) {
	get := func() (any, bool) {
		if list != nil {
			return list[i], true
		}
		v, ok := parent[key]
		return v, ok
	}
	put := func(v any) {
		if list != nil {
			list[i] = v
		} else {
			parent[key] = v
		}
	}
	old, ok := get()
	switch e.Op {
	case "set":
		put(decode(e.Value))
	case "set_default":
		if !ok {
			put(decode(e.Value))
		}
	case "delete":
		if list != nil {
			list[i] = gone
		} else {
			delete(parent, key)
		}
	case "clamp":
		n, isNum := old.(json.Number)
		if !isNum {
			return
		}
		f, _ := strconv.ParseFloat(string(n), 64)
		if e.Min != nil && f < *e.Min {
			put(decode(encode(*e.Min)))
		} else if e.Max != nil && f > *e.Max {
			put(decode(encode(*e.Max)))
		}
	}
}

// walk calls f for every place that path names, and returns v with deleted items taken out.
func walk(v any, path []string, f func(map[string]any, []any, string, int), create bool) any {
	p, last := path[0], len(path) == 1
	switch v := v.(type) {
	case map[string]any:
		if p == "*" {
			return v
		}
		if last {
			f(v, nil, p, 0)
			return v
		}
		child := v[p]
		if child == nil {
			if !create || slices.Contains(path, "*") {
				return v
			}
			child = map[string]any{}
		}
		v[p] = walk(child, path[1:], f, create)
		return v
	case []any:
		at := []int{}
		if p == "*" {
			for i := range v {
				at = append(at, i)
			}
		} else if i, err := strconv.Atoi(p); err == nil {
			if i < 0 {
				i += len(v)
			}
			if i >= 0 && i < len(v) {
				at = append(at, i)
			}
		}
		for _, i := range at {
			if last {
				f(nil, v, "", i)
			} else if v[i] == nil && create && !slices.Contains(path, "*") {
				v[i] = walk(map[string]any{}, path[1:], f, create)
			} else {
				v[i] = walk(v[i], path[1:], f, create)
			}
		}
		return slices.DeleteFunc(v, func(x any) bool { return x == any(gone) })
	}
	return v
}

func decode(b []byte) any {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		panic(fmt.Sprintf("%v: %s", err, b))
	}
	return v
}

func encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func clone(v any) any { return decode(encode(v)) }

var names = []string{"model", "a", "b", "c", "messages"}

func drawKey(t *rapid.T) string {
	k := rapid.SampledFrom(names).Draw(t, "key")
	if rapid.IntRange(0, 5).Draw(t, "escape") == 0 {
		return fmt.Sprintf(`"\u%04x%s"`, k[0], k[1:])
	}
	return `"` + k + `"`
}

func drawValue(t *rapid.T, depth int) string {
	kind := rapid.IntRange(0, 7).Draw(t, "kind")
	if depth == 0 && kind > 5 {
		kind -= 5
	}
	blank := rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "blank")
	switch kind {
	case 0:
		return "null"
	case 1:
		return strconv.Itoa(rapid.IntRange(-5, 5).Draw(t, "int"))
	case 2:
		return rapid.SampledFrom([]string{"1.5", "-0.25", "3e2", "1E-2"}).Draw(t, "float")
	case 3, 4:
		return rapid.SampledFrom([]string{`"x"`, `"\"},{"`, `"é\n\\"`, `""`}).Draw(t, "string")
	case 5:
		return "true"
	case 6:
		parts := make([]string, rapid.IntRange(0, 3).Draw(t, "len"))
		for i := range parts {
			parts[i] = drawValue(t, depth-1) + blank
		}
		return "[" + blank + strings.Join(parts, ","+blank) + "]"
	}
	return drawObject(t, depth-1, 3)
}

func drawObject(t *rapid.T, depth, most int) string {
	blank := rapid.SampledFrom([]string{"", "", " ", "\n\t"}).Draw(t, "blank")
	parts := make([]string, rapid.IntRange(0, most).Draw(t, "len"))
	for i := range parts {
		parts[i] = drawKey(t) + blank + ":" + blank + drawValue(t, depth) + blank
	}
	return "{" + blank + strings.Join(parts, ","+blank) + "}"
}

func drawPath(t *rapid.T, star bool) string {
	parts := names
	if star {
		parts = append(slices.Clone(names), "*", "0", "-1")
	}
	path := []string{rapid.SampledFrom(names).Draw(t, "first")}
	for range rapid.IntRange(0, 2).Draw(t, "more") {
		path = append(path, rapid.SampledFrom(parts).Draw(t, "part"))
	}
	return strings.Join(path, ".")
}

func drawEdits(t *rapid.T) []wire.Edit {
	var edits []wire.Edit
	for len(edits) < rapid.IntRange(1, 6).Draw(t, "edits") {
		e := wire.Edit{Op: rapid.SampledFrom([]string{"set", "set_default", "delete", "rename", "clamp"}).Draw(t, "op")}
		e.Path = drawPath(t, true)
		switch e.Op {
		case "set", "set_default":
			e.Value = wire.Raw(drawValue(t, 2))
		case "clamp":
			e.Min, e.Max = num(0), num(2)
		case "rename":
			e.To = drawPath(t, false)
			if cut := strings.LastIndex(e.Path, "."); cut >= 0 && rapid.Bool().Draw(t, "sibling") {
				e.To = e.Path[:cut+1] + rapid.SampledFrom(names).Draw(t, "new")
			}
		}
		if _, err := Compile([]wire.Edit{e}); err != nil {
			continue // the reference knows nothing of faults
		}
		edits = append(edits, e)
	}
	return edits
}

// ABI-3: the one pass gives what the edits give one after the other, on attempt after attempt from one buffer, while
// earlier payloads are still being read.
func TestEditsAgainstReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := drawObject(t, 3, 6)
		if rapid.Bool().Draw(t, "large") {
			text = `{"big":"` + strings.Repeat("z", smallMax) + `"` + strings.Replace(","+text[1:], ",}", "}", 1)
			if !json.Valid([]byte(text)) {
				t.Skip("blank before the end")
			}
		}
		b, err := Read(strings.NewReader(text), int64(len(text)), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		type sent struct {
			body interface{ Close() error }
			p    Payload
			want string
		}
		var out []sent
		for range rapid.IntRange(1, 4).Draw(t, "attempts") {
			edits := drawEdits(t)
			want := decode([]byte(text))
			for _, e := range edits {
				want = reference(want, e)
			}
			e, err := Compile(edits)
			if err != nil {
				t.Fatal(err)
			}
			p, err := e.Apply(b)
			if err != nil {
				t.Fatalf("%v: %s", err, text)
			}
			if !json.Valid(p.Bytes()) {
				t.Fatalf("%+v\nmade %s\nfrom %s", edits, p.Bytes(), text)
			}
			if d := cmp.Diff(want, decode(p.Bytes())); d != "" {
				t.Fatalf("%+v\nmade %s\nfrom %s\n%s", edits, p.Bytes(), text, d)
			}
			s := sent{p.Body(), p, string(p.Bytes())}
			if rapid.Bool().Draw(t, "close") {
				s.body.Close()
			} else {
				out = append(out, s)
			}
		}
		if string(b.Bytes()) != text {
			t.Fatalf("the original is now %s", b.Bytes())
		}
		for _, s := range out {
			if string(s.p.Bytes()) != s.want {
				t.Fatalf("a payload that is still read changed to %s", s.p.Bytes())
			}
		}
	})
}

// The tables of FuzzApply: each op, nested and not.
var tables = [][]wire.Edit{
	{set("model", `"m2"`)},
	{set("a.b", "1"), del("messages.*.name"), rename("a", "c"), clamp("c.b", nil, num(0))},
	{def("b", "[]"), rename("messages.*.a", "messages.*.b"), del("messages.-1"), rename("c", "a.c")},
}

// Whatever scans can be edited, and the result is what the reference makes of it.
func FuzzApply(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Add([]byte(` {"messages":[{"name":1,"a":2},3,{"a":1,"a":[]}], "c":{"b":5},"a":null,"model" : "x","model":2} `))
	editors := make([]*Editor, len(tables))
	for i, t := range tables {
		editors[i] = compile(f, t...)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		b, err := Read(bytes.NewReader(text), int64(len(text)), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := b.Scan(); err != nil {
			if _, err := editors[0].Apply(b); err == nil {
				t.Fatal("Apply took what Scan refused")
			}
			return
		}
		for i, e := range editors {
			p, err := e.Apply(b)
			if err != nil {
				t.Fatal(err)
			}
			if !json.Valid(p.Bytes()) {
				t.Fatalf("table %d made %q", i, p.Bytes())
			}
			if utf8.Valid(text) {
				want := decode(text)
				for _, w := range tables[i] {
					want = reference(want, w)
				}
				if d := cmp.Diff(want, decode(p.Bytes())); d != "" {
					t.Fatalf("table %d made %q\n%s", i, p.Bytes(), d)
				}
			}
			p.Discard()
		}
		if !bytes.Equal(b.Bytes(), text) {
			t.Fatal("the original changed")
		}
	})
}

// FuzzPath: a path of escaped names gives these names back, and no path breaks anything.
func FuzzPath(f *testing.F) {
	for _, s := range []string{"a.b", `a\.b`, `\\`, `*`, `\*.*`, "..", `a\`, ""} {
		f.Add(s, "x")
	}
	f.Fuzz(func(t *testing.T, path, name string) {
		if _, err := splitPath(nil, path); err == nil {
			_ = compile(t, del(path))
		}
		if path == "" || name == "" {
			return
		}
		parts, err := splitPath(nil, escapePath(path)+"."+escapePath(name))
		if err != nil || len(parts) != 2 || parts[0].name != path || parts[1].name != name {
			t.Fatalf("%q, %q: %+v, %v", path, name, parts, err)
		}
	})
}
