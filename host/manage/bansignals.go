package manage

import (
	"net/http"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirgate/weir/host/document"
)

// leastSignal is how many characters a ban signal has that is not too broad.
const leastSignal = 8

// guardSignals refuses ban signals that would hit ordinary errors, unless the body insists with force (COOL-62). The second
// result is the body without force, which is no setting.
func guardSignals(n *document.Node) (*document.Node, error) {
	force := n.Member("force")
	if force != nil {
		var on bool
		if faults := force.DecodeAt("force", &on); len(faults) > 0 {
			return nil, faulty(faults)
		}
		n = without(n, "force")
		if on {
			return n, nil
		}
	}
	list := n.Member("customBannedSignals")
	if list == nil || list.Kind != document.List {
		return n, nil
	}
	for i, item := range list.Items {
		if item.Kind == document.Text && tooBroad(item.Text) {
			p := problem(http.StatusBadRequest, "The ban signal %q is so broad that it would ban accounts for ordinary errors; "+
				`write more of the message, or say "force": true.`, item.Text).coded("ban_signal_too_broad")
			p.Details = []Detail{{document.At("customBannedSignals", i), "is too broad"}}
			return nil, p
		}
	}
	return n, nil
}

// tooBroad says whether a signal is short, or made of nothing but words that transient errors use. One that is empty or too
// long has another fault.
func tooBroad(signal string) bool {
	signal = strings.ToLower(strings.TrimSpace(signal))
	n := utf8.RuneCountInString(signal)
	if n == 0 || n > 200 {
		return false
	}
	words := strings.FieldsFunc(signal, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return n < leastSignal || !slices.ContainsFunc(words, func(w string) bool {
		return !slices.Contains([]string{"quota", "limit", "error", "denied", "timeout", "429"}, w)
	})
}
