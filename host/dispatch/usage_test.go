package dispatch

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func TestStatedUsage(t *testing.T) {
	text := strings.Repeat(`a \"usage\":{\"in\":9} `, 100)
	for _, c := range []struct {
		doc, path string
		want      int64
	}{
		{`{"content":"` + text + `","usage":{"in":3,"deep":{"in":4}}}`, "usage.in", 3},
		{`{"content":"` + text + `","usage":{"in":3,"deep":{"in":4}}}`, "usage.deep.in", 4},
		{`{"usage" : {"in" : 3}, "content":"` + text + `"}`, "usage.in", 3},
		{`{"usage":{"in":3},"last":"usage"}`, "usage.in", 3},
		{`{"x":{"usage":{"in":5}}}`, "x.usage.in", 5},
		{`{"in":6}`, "in", 6},
		{`{"usage":null}`, "usage.in", -1},
		{`{"usage":{"in":"7"}}`, "usage.in", -1},
		{`{"usage":{"in":-1}}`, "usage.in", -1},
		{`{}`, "usage.in", -1},
		{`{}`, "", -1},
	} {
		if !gjson.Valid(c.doc) {
			t.Fatal(c.doc)
		}
		if got := stated([]byte(c.doc), c.path); got != c.want {
			t.Errorf("%s in %.80s: %d", c.path, c.doc, got)
		}
	}
}
