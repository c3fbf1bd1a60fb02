package hint

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// sameBody compares what both readings find in a body. On purpose they differ in three ways: of headers inside a body only
// the telling ones are kept, of their sets and of typed fields only so many, and an object is no length of time when it
// has more than maxPeriod bytes.
func sameBody(t interface{ Fatalf(string, ...any) }, body string) {
	if body = strings.TrimSpace(body); len(body) > maxPeriod && strings.Contains(body, `"seconds"`) {
		return
	}
	got, want := readBody(body), oldReadBody([]byte(body))
	said := func(relative, absolute []field, text string) string {
		return fmt.Sprintf("%+v\n%+v\n%s", relative, absolute, text)
	}
	if diff := cmp.Diff(said(want.relative, want.absolute, want.text), said(got.relative, got.absolute, got.text)); diff != "" {
		t.Fatalf("%q\n%s", body, diff)
	}
	var sets []map[string]string
	for _, h := range want.headers {
		kept := map[string]string{}
		for name, value := range h {
			if telling(name) {
				kept[name] = value
			}
		}
		if len(kept) > 0 {
			sets = append(sets, kept)
		}
	}
	for i, h := range got.headers {
		kept := map[string]string{}
		for _, x := range h {
			kept[x.name] = x.value
		}
		if i >= len(sets) || !cmp.Equal(sets[i], kept) {
			t.Fatalf("%q\nhas headers %v, want %v", body, got.headers, sets)
		}
	}
	if len(got.headers) != min(len(sets), maxInner) {
		t.Fatalf("%q\nhas %d sets of headers, want %d", body, len(got.headers), len(sets))
	}
}

// bodyOf makes JSON of the names and values that the reader knows, and others.
func bodyOf(depth int) *rapid.Generator[string] {
	names := rapid.SampledFrom([]string{
		"a", "error", "message", "retry_after", "Retry-After", "retryAfterMs", "quotaResetDelay", "resets_at", "reset", "r-e-s-e-t", "resetTime",
		"headers", "Headers", "x-ratelimit-reset", "Retry-After-Ms", "x-codex-a", "other", "used_percent", "usedPercent", "used_percentage", "remaining",
		"choices", "Content", "seconds", "nanos", "a.b", "é", "\"", "\\", "a long name that no field has, longer than sixty-four bytes in any case", "",
	})
	scalars := rapid.SampledFrom([]string{
		"null", "true", "0", "7", "-3", "1.5e3", "99.9", "100", "1777924830", `""`, `"7"`, `"5s"`, `"try again in 5s"`, `"a\nb"`, `"\u8bf7\u7b49\u5f85 5 \u79d2"`,
		`"\ud83d\ude00\ud800"`, `"\\"`, `"\\\""`, `"{not json"`, `"said: {"`, `"[]"`, `"2026-05-04T20:00:30Z"`, `"` + strings.Repeat("x", 65) + `"`, "\"é\xff\"",
	})
	blank := rapid.SampledFrom([]string{"", "", "", " ", "\n\t "})
	return rapid.Custom(func(t *rapid.T) string {
		kind := rapid.IntRange(0, 7).Draw(t, "kind")
		if depth == 0 || kind < 2 {
			return scalars.Draw(t, "scalar")
		}
		if kind == 2 { // JSON inside a string
			inner, _ := json.Marshal(rapid.SampledFrom([]string{"", "upstream said: "}).Draw(t, "words") + bodyOf(depth-1).Draw(t, "inner"))
			return string(inner)
		}
		var b strings.Builder
		open, end := "{", "}"
		if kind == 3 {
			open, end = "[", "]"
		}
		b.WriteString(open + blank.Draw(t, "blank"))
		for i := range rapid.IntRange(0, 4).Draw(t, "members") {
			if i > 0 {
				b.WriteString("," + blank.Draw(t, "blank"))
			}
			if kind != 3 {
				name, _ := json.Marshal(names.Draw(t, "name"))
				b.WriteString(string(name) + blank.Draw(t, "blank") + ":" + blank.Draw(t, "blank"))
			}
			b.WriteString(bodyOf(depth-1).Draw(t, "value") + blank.Draw(t, "blank"))
		}
		return b.String() + end
	})
}

// COOL-14: any JSON, alone or in a stream of events, says to the reader what it says to the reference.
func TestBodiesAsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := bodyOf(5).Draw(t, "body")
		switch rapid.IntRange(0, 5).Draw(t, "form") {
		case 0:
			body = "event: error\ndata: " + strings.Map(func(r rune) rune {
				if r == '\n' {
					return ' '
				}
				return r
			}, body) + "\n\ndata: [DONE]\n"
		case 1:
			body = body[:rapid.IntRange(0, len(body)).Draw(t, "cut")]
		}
		sameBody(t, body)
	})
}

// RST-10: so is JSON that is deep, wide, or has more values than are looked at.
func TestLargeBodiesAsReference(t *testing.T) {
	for name, body := range map[string]string{
		"deep arrays":     strings.Repeat("[", 50) + `"try again in 5s"` + strings.Repeat("]", 50),
		"just deep":       strings.Repeat("[", maxDepth) + `"try again in 5s"` + strings.Repeat("]", maxDepth),
		"deep objects":    strings.Repeat(`{"a":`, 50) + `{"retry_after":5}` + strings.Repeat("}", 50),
		"just deep field": strings.Repeat(`{"a":`, maxDepth) + `{"retry_after":5}` + strings.Repeat("}", maxDepth),
		"wide":            "[" + strings.Repeat(`"x",{"y":1},`, 3000) + `"try again in 5s"]`,
		"just wide":       "[" + strings.Repeat(`1,`, maxFields-2) + `"a","b","c"]`,
		"long path":       strings.Repeat(`{"`+strings.Repeat("n", 60)+`":`, 6) + `{"retry_after":5}` + strings.Repeat("}", 6),
		"full window":     `{"a":{"used_percent":100,"reset":1,"b":"c"},"d":{"remaining":3,"reset":2,"b":"c"},"e":{"remaining":0,"b":"c"}}`,
		"gauge twice":     `{"used_percent":"5","used_percent":5,"b":"c"}`,
		"events":          strings.Repeat("data: {\"a\":\"b\"}\n\n", 3000),
	} {
		t.Run(name, func(t *testing.T) { sameBody(t, body) })
	}
}

func FuzzBodyAsReference(f *testing.F) {
	for _, s := range corpusTexts(f) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) { sameBody(t, body) })
}
