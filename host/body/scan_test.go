package body

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

var seeds = []string{
	`{}`, ` { } `, `{"model":"a"}`, `{"mod\u0065l":"a","model":2,"stream":true,"stream":false}`, `{"a":[1,-0.5e+10,[],{}],"b":{"c":null}}`,
	`{"a":"\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud800"}`, "{\"a\":\"\x7f\xff\u00e9\"}", "{\"a\":\"tab\there\"}", `{"a":01}`, `{"a":1.}`, `{"a":-}`, `{"a":1e}`,
	`{"a":tru}`, `{"a":nul`, `{"a":"x`, `{"a":"\x"}`, `{"a":"\u12g4"}`, `{"a":"\u12`, `{"a":"\`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{"a":[1,]}`, `{"a":[}`, `{"a":{]}`,
	`{"a":1}x`, `{"a":1} {}`, `[1]`, `"a"`, ``, ` `, `{`, `{"a":{"b":1,"b":2},"":3}`, "\ufeff{}", `{"a":[[[[[[[[[[1]]]]]]]]]]}`,
	`{"long":"0123456789012345678901234567890123456789` + "\x1f" + `"}`,
}

// Valid for encoding/json means valid here, within our depth; and both see the same top-level values.
func FuzzScan(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		s, err := ScanBytes(b)
		if !bytes.Equal(b, before) {
			t.Fatal("the scan changed its input")
		}
		var want map[string]json.RawMessage
		stdErr := json.Unmarshal(b, &want)
		if trimmed := bytes.TrimSpace(b); stdErr == nil && trimmed[0] != '{' {
			stdErr = errors.New("not an object")
		}
		if err != nil {
			var se *SyntaxError
			if !errors.As(err, &se) || se.Offset < 0 || se.Offset > len(b) {
				t.Fatalf("odd error: %#v", err)
			}
			if stdErr == nil && depthOf(b) <= MaxDepth {
				t.Fatalf("refused: %v", err)
			}
			return
		}
		if stdErr != nil {
			t.Fatalf("taken: %v", stdErr)
		}
		if !utf8.Valid(b) {
			return // encoding/json puts U+FFFD into names
		}
		got := map[string]json.RawMessage{}
		for k := range s.Keys {
			raw, ok := s.Get(escapePath(k))
			if !ok && k != "" {
				t.Fatalf("no value for %q", k)
			}
			if k != "" {
				got[k] = json.RawMessage(raw)
			}
		}
		delete(want, "")
		if d := cmp.Diff(want, got); d != "" {
			t.Fatal(d)
		}
		checkNamed(t, s, want)
	})
}

func checkNamed(t *testing.T, s *Scan, want map[string]json.RawMessage) {
	t.Helper()
	var model *string
	if err := json.Unmarshal(want["model"], &model); err != nil {
		model = nil
	}
	got, ok := s.Model()
	if ok != (model != nil) || ok && got != *model {
		t.Fatalf("model is %q, %v; want %v", got, ok, model)
	}
	if s.Stream() != (string(want["stream"]) == "true") {
		t.Fatalf("stream is %v", s.Stream())
	}
	var list []json.RawMessage
	if raw := want["messages"]; len(raw) > 0 && raw[0] == '[' {
		if err := json.Unmarshal(raw, &list); err != nil {
			t.Fatal(err)
		}
		if s.Messages() != len(list) {
			t.Fatalf("%d messages, want %d", s.Messages(), len(list))
		}
	}
}

func escapePath(name string) string {
	return strings.NewReplacer(`\`, `\\`, `.`, `\.`).Replace(name)
}

// depthOf counts brackets outside of strings in valid JSON.
func depthOf(b []byte) int {
	depth, most, quoted := 0, 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			depth++
			most = max(most, depth)
		case c == '}' || c == ']':
			depth--
		}
	}
	return most
}

func TestScanDepth(t *testing.T) {
	nest := func(n int) []byte {
		return []byte(`{"a":` + strings.Repeat("[", n-1) + strings.Repeat("]", n-1) + `}`)
	}
	if _, err := ScanBytes(nest(MaxDepth)); err != nil {
		t.Error(err)
	}
	if _, err := ScanBytes(nest(MaxDepth + 1)); err == nil {
		t.Error("deeper than MaxDepth was taken")
	}
	if _, err := ScanBytes([]byte(`{"a":` + strings.Repeat("[{\"\":", 1_000_000))); err == nil {
		t.Error("a bomb was taken")
	}
}

// ABI-3: the paths of request_fields.
func TestGet(t *testing.T) {
	s, err := ScanBytes([]byte(`{"model":"m","messages":[{"content":"first"},{"content":[{"text":"a"},{"text":"b"}],"content":"last"}],
		"metadata":{"user.id": "u", "-1": 7},"n":null,"model":"n\u0031"}`))
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"messages.0.content":    `"first"`,
		"messages.-1.content":   `"last"`,
		"messages.-2.content":   `"first"`,
		"messages.-3.content":   ``,
		"messages.2":            ``,
		"messages.+1":           ``,
		"messages.*.content":    ``,
		`metadata.user\.id`:     `"u"`,
		"metadata.user.id":      ``,
		"metadata.-1":           `7`,
		"n":                     `null`,
		"n.x":                   ``,
		"model":                 `"n\u0031"`,
		"model.0":               ``,
		"":                      ``,
		"messages.":             ``,
		"messages.-1.content.0": ``,
	} {
		raw, ok := s.Get(path)
		if string(raw) != want || ok != (want != "") {
			t.Errorf("%s: %s, %v; want %s", path, raw, ok, want)
		}
	}
	if m, ok := s.Model(); m != "n1" || !ok {
		t.Errorf("model %q", m)
	}
	if s.Messages() != 2 || s.Stream() || !s.Has("n") || s.Has("x") {
		t.Error("messages, stream or has")
	}
}

func TestMessages(t *testing.T) {
	for text, want := range map[string]int{
		`{"messages":[]}`:                         0,
		`{"messages":[ ]}`:                        0,
		`{"messages":[[1,2],{"a":1,"b":2},"x,"]}`: 3,
		`{"input":"hello"}`:                       1,
		`{"input":["a","b"]}`:                     2,
		`{"contents":[{}]}`:                       1,
		`{"contents":"x"}`:                        0,
		`{"prompt":"x"}`:                          0,
	} {
		s, err := ScanBytes([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if s.Messages() != want {
			t.Errorf("%s: %d, want %d", text, s.Messages(), want)
		}
	}
}

// Past the members that a scan holds inline.
func TestScanManyMembers(t *testing.T) {
	var text strings.Builder
	text.WriteString(`{"first":0`)
	var want []string
	for i := range 3 * inlineMembers {
		k := string(rune('a'+i%26)) + strings.Repeat("x", i)
		want = append(want, k)
		text.WriteString(`,"` + k + `":` + strings.Repeat("1", i+1))
	}
	text.WriteString(`}`)
	s, err := ScanBytes([]byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(append([]string{"first"}, want...), slices.Collect(s.Keys)); d != "" {
		t.Error(d)
	}
	for i, k := range want {
		if raw, _ := s.Get(k); len(raw) != i+1 {
			t.Errorf("%s is %s", k, raw)
		}
	}
	p, err := compile(t, set("first", "9"), del(want[2*inlineMembers])).Apply(read(t, text.String()))
	if err != nil || !json.Valid(p.Bytes()) || !bytes.HasPrefix(p.Bytes(), []byte(`{"first":9,`)) {
		t.Errorf("%v: %s", err, p.Bytes())
	}
}

// An error never repeats what the client sent.
func TestSyntaxErrorKeepsSecrets(t *testing.T) {
	_, err := ScanBytes([]byte(`{"api_key":"sk-secret" "x"}`))
	if err == nil || strings.Contains(err.Error(), "sk-secret") {
		t.Error(err)
	}
}
