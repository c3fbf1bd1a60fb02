package origin_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/origin"
)

var noon = time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)

// SCN-16: the issuer of a value is known for a day, and of the latest 65,536 values.
func TestRecord(t *testing.T) {
	var r origin.Record
	if !r.Empty() {
		t.Error("not empty")
	}
	a, b := origin.Place{Provider: "p", Connection: "a"}, origin.Place{Provider: "p", Connection: "b"}
	r.Keep([]byte("x"), a, noon)
	r.Keep([]byte("x"), b, noon.Add(time.Hour)) // it was a's first
	r.Keep(nil, a, noon)
	if got, ok := r.Find([]byte("x"), noon.Add(origin.Life-1)); !ok || got != a {
		t.Errorf("%v %v", got, ok)
	}
	for value, at := range map[string]time.Time{"x": noon.Add(origin.Life), "y": noon, "": noon} {
		if got, ok := r.Find([]byte(value), at); ok {
			t.Errorf("%q at %s: %v", value, at, got)
		}
	}
	r.Keep([]byte("x"), b, noon.Add(origin.Life))
	if got, _ := r.Find([]byte("x"), noon.Add(origin.Life)); got != b {
		t.Errorf("after its end: %v", got)
	}
	for i := range origin.MaxEntries {
		r.Keep(fmt.Append(nil, i), a, noon)
	}
	if _, ok := r.Find([]byte("x"), noon.Add(origin.Life)); ok {
		t.Error("the oldest of too many stays")
	}
	if _, ok := r.Find([]byte("0"), noon); !ok {
		t.Error("the second oldest went")
	}
	r.Keep([]byte("z"), b, noon)
	if _, ok := r.Find([]byte("0"), noon); ok || r.Empty() {
		t.Error("the next one stays")
	}
}

const document = `{"output":[{"type":"reasoning","encrypted_content" : "gAAA\/b==","x":null},{"encrypted_content":null},{"encrypted_content":""},` +
	`{"text":"say \"encrypted_content\": \"no\""},{"encrypted_content":"two"}]}`

// SCN-16: the values are found where they stand, and not where a text speaks of them.
func TestValues(t *testing.T) {
	var got []string
	for v := range origin.Values([]byte(document)) {
		got = append(got, string(v))
	}
	if want := []string{"gAAA/b==", "two"}; !slices.Equal(got, want) || !origin.Holds([]byte(document)) || origin.Holds([]byte(`{"a":"encrypted_content"}`[:6])) {
		t.Errorf("%q", got)
	}
	for _, cut := range []string{`"encrypted_content"`, `"encrypted_content":`, `"encrypted_content":"ab`, `"encrypted_content":"ab\`} {
		for v := range origin.Values([]byte(cut)) {
			t.Errorf("%s: %q", cut, v)
		}
	}
}

// SCN-16: however a document is cut into pieces, the same values are found.
func TestReader(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r origin.Reader
		var got []string
		for rest := []byte(document); len(rest) > 0; {
			n := rapid.IntRange(1, min(len(rest), 40)).Draw(t, "piece")
			for v := range r.Values(bytes.Clone(rest[:n])) {
				got = append(got, string(v))
			}
			rest = rest[n:]
		}
		if !slices.Equal(got, []string{"gAAA/b==", "two"}) {
			t.Fatalf("%q", got)
		}
	})
	var r origin.Reader
	for range 3 { // what has no end is given up
		for range r.Values([]byte(`"encrypted_content":"` + strings.Repeat("x", 1<<20))) {
			t.Fatal("a value")
		}
	}
}

func FuzzValues(f *testing.F) {
	f.Add([]byte(document))
	f.Fuzz(func(t *testing.T, b []byte) {
		for v := range origin.Values(b) {
			if len(v) == 0 || len(v) > len(b) {
				t.Errorf("%q", v)
			}
		}
	})
}
