package tree

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	text := func(s string) Value { return Value{Kind: String, Text: s} }
	for _, c := range []struct {
		in    string
		want  Value
		whole bool
	}{
		{``, Value{}, false},
		{`x`, Value{}, false},
		{` null`, Value{Kind: Null, Text: "null"}, true},
		{`true`, Value{Kind: Bool, Text: "true"}, true},
		{`-1.5e3,`, Value{Kind: Number, Text: "-1.5e3"}, true},
		{`"a\"\\\/\n\t\r\b\f"`, text("a\"\\/\n\t\r\b\f"), true},
		{`"\u989d\ud83d\ude00"`, text("额😀"), true},
		{`"\ud83d-\ude00\uZZ"`, text("\uFFFD-\uFFFD\uFFFDZZ"), true},
		{"\"raw\nline\"", text("raw\nline"), true},
		{`"cut`, text("cut"), false},
		{`"cut\`, text("cut"), false},
		{`"cut\u12`, text("cut\uFFFD12"), false},
		{`{}`, Value{Kind: Object}, true},
		{`{"a":1,"a":2}`, Value{Kind: Object, Keys: []string{"a", "a"}, Items: []Value{{Kind: Number, Text: "1"}, {Kind: Number, Text: "2"}}}, true},
		{`{"a":"b`, Value{Kind: Object, Keys: []string{"a"}, Items: []Value{text("b")}}, false},
		{`{"a":"b","c`, Value{Kind: Object, Keys: []string{"a"}, Items: []Value{text("b")}}, false},
		{`{"a" 1}`, Value{Kind: Object}, false},
		{`{a:1}`, Value{Kind: Object}, false},
		{`["a", ["b"]]`, Value{Kind: Array, Items: []Value{text("a"), {Kind: Array, Items: []Value{text("b")}}}}, true},
		{`["a" "b"]`, Value{Kind: Array, Items: []Value{text("a")}}, false},
		{`["a",`, Value{Kind: Array, Items: []Value{text("a")}}, false},
	} {
		got, _, whole := Parse(c.in)
		if diff := cmp.Diff(c.want, got); diff != "" || whole != c.whole {
			t.Errorf("%s: whole %v, want %v; %s", c.in, whole, c.whole, diff)
		}
	}
}

func TestBounds(t *testing.T) {
	if _, _, whole := Parse(strings.Repeat("[", 1000) + strings.Repeat("]", 1000)); whole {
		t.Error("a value of any depth is read")
	}
	v, _, whole := Parse("[" + strings.Repeat("1,", 20000) + "1]")
	if whole || len(v.Items) != maxValues-1 {
		t.Errorf("%d values are read", len(v.Items))
	}
}

func TestFind(t *testing.T) {
	v, _, _ := Parse(`{"a":[{"b":"x"},{"b":"y","n":null}],"c.d":{"e":"z"}}`)
	for path, want := range map[string]string{
		"a.0.b": "x", "a.-1.b": "y", "a.*.b": "x y", `c\.d.e`: "z", "a.2.b": "", "a.-3.b": "", "a.b": "", "A.0.b": "", "a.1.n": "", "c.d.e": "",
	} {
		p, ok := ParsePath(path)
		if !ok {
			t.Errorf("%s is refused", path)
		}
		var got []string
		v.Find(p, func(v Value) bool { got = append(got, v.Text); return false })
		if s := strings.Join(got, " "); s != want {
			t.Errorf("%s finds %q, want %q", path, s, want)
		}
	}
	for _, path := range []string{"", ".", "a.", ".a", "a..b"} {
		if _, ok := ParsePath(path); ok {
			t.Errorf("%q is taken", path)
		}
	}
}

// What encoding/json reads, Parse reads the same.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`{"a":[1,"\u00e9",true,null]}`, `"\ud800"`, `[[[]]]`, `{"a":{"b":"`, "1e", `[,]`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		v, size, whole := Parse(s)
		if size > len(s) {
			t.Fatal("read beyond the end")
		}
		var std string
		if json.Unmarshal([]byte(s), &std) == nil && strings.TrimSpace(s) != "null" && (!whole || strings.ToValidUTF8(v.Text, "\uFFFD") != std) && !strings.Contains(std, "\uFFFD") {
			t.Fatalf("%q is read as %q", std, v.Text)
		}
		if json.Valid([]byte(s)) && !whole && len(s) < 32 {
			t.Fatalf("valid JSON is not whole: %q", s)
		}
	})
}
