package sdk

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"
	"testing"
)

func TestGet(t *testing.T) {
	v := Parse([]byte(` {"a": {"b.c": [1, {"d": "x\n\u00e9\ud83d\ude00\\"}, true, null]}, "a2": -1.5e3, "empty": {}, "list": [], "0": "zero"} `))
	for path, want := range map[string]string{
		`a.b\.c.0`: "1", `a.b\.c.2`: "true", `a.b\.c.3`: "null", "a2": "-1.5e3", "empty": "{}", "list": "[]", "0": `"zero"`,
		"a.b": "", "a.x.y": "", "list.0": "", "a2.x": "",
	} {
		if got := string(v.Get(path).Raw()); got != want {
			t.Errorf("%s is %s, want %s", path, got, want)
		}
	}
	if s, ok := v.Get(`a.b\.c.1.d`).Text(); !ok || s != "x\né😀\\" {
		t.Errorf("text %q", s)
	}
	if n, ok := v.Get("a2").Int(); !ok || n != -1500 {
		t.Errorf("int %d %v", n, ok)
	}
	if _, ok := v.Get("a").Int(); ok {
		t.Error("an object is a number")
	}
	if _, ok := v.Get("a2").Text(); ok {
		t.Error("a number is a text")
	}
	if s, ok := v.Member("0").Text(); !ok || s != "zero" {
		t.Error("a member whose name is a number")
	}
}

func TestNotJSON(t *testing.T) {
	for _, s := range []string{"", " ", "{", `{"a"`, `{"a":}`, `{"a":1,}`, "[1", `"x`, "tru", "nope", strings.Repeat("[", 5000)} {
		if v := Parse([]byte(s)); v.Exists() {
			t.Errorf("%.20q reads as %s", s, v.Raw())
		}
	}
}

// What the scanner finds is what encoding/json finds.
func FuzzScan(f *testing.F) {
	for _, s := range []string{`{"a":[1,{"b":"\u00e9"}]}`, `{"a":"\ud83d"}`, `[[],{}]`, `{"a":1e5,"a":2}`, "{\"\xff\":1}"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		v := Parse(b)
		if !json.Valid(b) {
			v.Get("a.0.b") // must not crash, nor an event that is no JSON
			(&Event{Data: b}).JSON("a.0.b")
			(&Event{Data: b}).JSON("0.a").Text()
			v.Each(func(_ string, item Value) bool { item.Text(); return true })
			return
		}
		if depth(b) > maxDepth {
			return
		}
		if !json.Valid(v.Raw()) || !bytes.Equal(bytes.TrimSpace(b), v.Raw()) {
			t.Fatalf("%q reads as %q", b, v.Raw())
		}
		if v.Raw()[0] == '[' {
			n := 0
			v.Each(func(_ string, item Value) bool {
				if at := v.Get(strconv.Itoa(n)); !bytes.Equal(at.Raw(), item.Raw()) {
					t.Fatalf("item %d of %q: %q by Get, %q by Each", n, b, at.Raw(), item.Raw())
				}
				n++
				return true
			})
		}
		var want any
		if json.Unmarshal(b, &want) != nil {
			return
		}
		if m, ok := want.(map[string]any); ok {
			seen := map[string]Value{}
			v.Each(func(key string, item Value) bool {
				if _, twice := seen[key]; !twice && !bytes.Equal(v.Member(key).Raw(), item.Raw()) {
					t.Fatalf("%q of %q: %q by Member, %q by Each", key, b, v.Member(key).Raw(), item.Raw())
				}
				seen[key] = item
				return true
			})
			for k, w := range m {
				var got any
				if k == strings.ToValidUTF8(k, "?") && !strings.ContainsRune(k, '\ufffd') {
					if err := json.Unmarshal(seen[k].Raw(), &got); err != nil || !reflect.DeepEqual(got, w) {
						t.Fatalf("%q of %q: %v, want %v", k, b, got, w)
					}
				}
			}
		}
	})
}

func depth(b []byte) int { return bytes.Count(b, []byte("[")) + bytes.Count(b, []byte("{")) }

func FuzzText(f *testing.F) {
	f.Add("plain")
	f.Add("\x00\x1f\x7f\"\\\n\té😀\xff")
	f.Fuzz(func(t *testing.T, s string) {
		w := &Writer{}
		w.Text(s)
		var std string
		if err := json.Unmarshal(w.Bytes(), &std); err != nil {
			t.Fatalf("%q is written as %q: %v", s, w.Bytes(), err)
		}
		own, ok := Parse(w.Bytes()).Text()
		if want := strings.ToValidUTF8(s, "\ufffd"); !ok || own != std || len([]rune(std)) < len([]rune(want)) {
			t.Fatalf("%q comes back as %q, by encoding/json %q", s, own, std)
		}
	})
}

func TestWriter(t *testing.T) {
	w := &Writer{}
	w.Object(func() {
		w.Key("a").Int(-1)
		w.Key("b").List(func() { w.Bool(true); w.Raw(nil); w.Object(func() {}); w.Float(1.5) })
		w.Key("c").Raw([]byte(`{"d":2}`))
		w.text("left-out", "")
		w.texts("e", []string{"x", "y"})
	})
	if got, want := string(w.Bytes()), `{"a":-1,"b":[true,null,{},1.5],"c":{"d":2},"e":["x","y"]}`; got != want {
		t.Errorf("\n got %s\nwant %s", got, want)
	}
}

func BenchmarkGet(b *testing.B) {
	doc := []byte(`{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"large","choices":[{"index":0,"delta":{"content":"hello world, this is one of many"},"finish_reason":null}]}`)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if v := Parse(doc).Get("choices.0.delta.content"); !v.Exists() {
			b.Fatal("nothing")
		}
	}
}
