package rules

import (
	"slices"
	"strings"

	"github.com/weirgate/weir/rules/internal/tree"
)

// What an answer under a good status says is mostly what a model wrote, and that is never evidence (COOL-66, STM-54). So
// rules look there only at the words of the failure itself: of the error in it, be it in a document, in one frame of a
// stream, or beside what was generated so far.

// failing are the members that an error stands in; of what lies below them every string counts.
var failing = []string{"error", "errors", "detail", "details", "base_resp", "metadata"}

// good reports whether the answer came under a status of success.
func (r *Reply) good() bool { return 200 <= r.Original && r.Original <= 299 }

// wordsOf returns the words of the failures in the values of a good answer, empty when there is none.
func wordsOf(values []tree.Value) string {
	var b strings.Builder
	for _, v := range values {
		if v.Kind == tree.Object && envelope(v, 0).any() {
			failure(&b, v, 0)
		}
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// failure writes what one document says about its failure, each string in a line.
func failure(b *strings.Builder, v tree.Value, depth int) {
	for i, key := range v.Keys {
		item, name := v.Items[i], strings.ToLower(key)
		switch {
		case slices.Contains(failing, name):
			item.Strings(func(s string) { line(b, s) })
			codes(b, item)
		case item.Scalar() && (slices.Contains(messageNames, name) || slices.Contains(codeNames, name) || slices.Contains(typeNames, name)):
			line(b, item.Text)
		case item.Kind == tree.Object && depth < maxNesting && (name == "response" || name == "body"):
			failure(b, item, depth+1)
		}
	}
}

// codes writes the numbers among the codes of an error.
func codes(b *strings.Builder, v tree.Value) {
	for i, key := range v.Keys {
		if item := v.Items[i]; item.Kind == tree.Number && slices.Contains(codeNames, strings.ToLower(key)) {
			line(b, item.Text)
		}
	}
}

func line(b *strings.Builder, s string) {
	if s != "" {
		b.WriteString(s)
		b.WriteByte('\n')
	}
}
