package packs_test

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// CLS-2, RST-1, RUL-12: answers from provider documentation and public reports that no rule was written from line by line;
// those of public.jsonl were collected and judged before the rules were looked at.
func TestRelatives(t *testing.T) {
	set := compile(load(t))
	right := map[string]int{}
	for _, a := range append(answers(t, "relatives.jsonl"), answers(t, "public.jsonl")...) {
		t.Run("CLS-2/"+a.ID, func(t *testing.T) {
			for _, r := range a.ways() {
				got := judge(set, r)
				if wrong := compare(a, got, right); wrong != "" {
					t.Errorf("%q under %d differs in %s: got %d %s %s fallback=%v wait=%v breaker=%v terminal=%v by %s, restated by %q",
						a.Body[:min(len(a.Body), 240)], a.Status, wrong, got.status, got.Reason, got.Scope, got.Fallback, got.RetryAfter, got.Breaker, got.Terminal, got.Evidence(), r.Restated)
				}
			}
		})
	}
}

// ways are the readings in which an answer reaches the judges: a failure under a good status comes with the status that its
// payload states beside the one that came (STM-50), a recorded one without.
func (a answer) ways() []*rules.Reply {
	status, failed := stated(a)
	if !failed {
		return []*rules.Reply{a.reply()}
	}
	r := a.reply()
	r.Status = status
	if strings.HasPrefix(strings.TrimLeft(a.Body, "\ufeff \t\n"), "<") {
		return []*rules.Reply{r} // a page is only then looked at
	}
	return []*rules.Reply{a.reply(), r}
}

// stated is the status that an error object under a good status states (STM-50).
func stated(a answer) (int, bool) {
	if a.Status != 200 || a.Stream || a.Expect.Reason == wire.NoReason || a.Expect.Status == 200 {
		return 0, false
	}
	var d struct {
		Error struct {
			Code any    `json:"code"`
			Type string `json:"type"`
		} `json:"error"`
	}
	if json.Unmarshal([]byte(a.Body), &d) == nil {
		switch code := d.Error.Code.(type) {
		case float64:
			return int(code), 400 <= code && code <= 599
		case string:
			if n, err := strconv.Atoi(code); err == nil && 400 <= n && n <= 599 {
				return n, true
			}
		}
	}
	return 502, true
}
