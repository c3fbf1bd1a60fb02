package rules_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
	"pgregory.net/rapid"
)

// written is a rule as the naive evaluation reads it: rule by rule, condition by condition, with strings.Contains.
type written struct {
	ID         string         `json:"id"`
	Phase      string         `json:"phase,omitempty"`
	Providers  []string       `json:"providers,omitempty"`
	Status     []any          `json:"status,omitempty"`
	Code       []string       `json:"code,omitempty"`
	Type       []string       `json:"type,omitempty"`
	Contains   []string       `json:"text_contains,omitempty"`
	All        []string       `json:"text_all,omitempty"`
	None       []string       `json:"text_none,omitempty"`
	Matches    []string       `json:"text_matches,omitempty"`
	HeaderZero bool           `json:"-"`
	Header     any            `json:"header,omitempty"`
	Then       map[string]any `json:"then"`
}

func (w written) holds(r *rules.Reply, limit int) bool {
	status := r.Status
	if r.Source == wire.SourceTransport {
		status = 0
	}
	visible := func(s string) string {
		if len(s) > limit {
			s = strings.ToValidUTF8(s[:limit], "")
		}
		return strings.ToLower(s)
	}
	texts := []string{visible(r.Facts.Text), visible(r.Facts.Decoded), visible(r.Facts.Message)}
	in := func(marker string) bool {
		return slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, strings.ToLower(marker)) })
	}
	some := func(list []string, f func(string) bool) bool { return len(list) == 0 || slices.ContainsFunc(list, f) }
	return some(w.Providers, func(g string) bool {
		return g == r.Provider || strings.HasSuffix(g, "*") && strings.HasPrefix(r.Provider, strings.TrimSuffix(g, "*"))
	}) &&
		(len(w.Status) == 0 || slices.ContainsFunc(w.Status, func(s any) bool {
			var from, to int
			if n, _ := fmt.Sscanf(fmt.Sprint(s), "%d-%d", &from, &to); n == 2 {
				return from <= status && status <= to
			}
			return s == status
		})) &&
		some(w.Code, func(c string) bool { return strings.EqualFold(c, r.Facts.Code) }) &&
		some(w.Type, func(c string) bool { return strings.EqualFold(c, r.Facts.Type) }) &&
		some(w.Contains, in) && !slices.ContainsFunc(w.All, func(m string) bool { return !in(m) }) && !slices.ContainsFunc(w.None, in) &&
		some(w.Matches, func(p string) bool {
			re := regexp.MustCompile(strings.ToLower(p))
			return slices.ContainsFunc(texts, re.MatchString)
		}) &&
		(!w.HeaderZero || slices.Contains(r.Header["X-A"], "0"))
}

var words = []string{"quota", "Quota exceeded", "额度", "额度不足", "лимит", "ota ex", "aab", "aaab", "a"}

func drawRule(t *rapid.T, i int, restates bool) written {
	list := func(name string, from []string, most int) []string {
		return rapid.SliceOfN(rapid.SampledFrom(from), 0, most).Draw(t, name)
	}
	w := written{ID: fmt.Sprint("r", i), Then: map[string]any{"reason": "unknown"},
		Providers: list("providers", []string{"acme", "ac*", "other", "*"}, 2),
		Code:      list("code", []string{"C1", "1008"}, 1), Type: list("type", []string{"t1", "T2"}, 1),
		Contains: list("contains", words, 2), All: list("all", words, 2), None: list("none", words, 1),
		Matches: list("matches", []string{"quota .*ed", "(?:aab|额度)", "^x", "лимит+", "q(uota|x)"}, 1),
	}
	w.Status = append(w.Status, rapid.SliceOfN(rapid.SampledFrom([]any{429, 0, "400-450", "500-599", 500}), 0, 2).Draw(t, "status")...)
	if w.HeaderZero = rapid.IntRange(0, 5).Draw(t, "header") == 0; w.HeaderZero {
		w.Header = map[string]any{"name": "x-a", "equals": "0"}
	}
	if restates {
		w.Then = map[string]any{"restate_status": 503}
	} else {
		w.Phase = rapid.SampledFrom([]string{"", "guard", "late"}).Draw(t, "phase")
	}
	return w
}

func drawReply(t *rapid.T) *rules.Reply {
	text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(append(words, "\n", "x", "QUOTA", "ЛИМИТ", "é")), 0, 8).Draw(t, "text"), "")
	body := text
	if rapid.Bool().Draw(t, "json") {
		quote := func(s string) string { b, _ := json.Marshal(s); return string(b) }
		if rapid.Bool().Draw(t, "ascii") {
			quote = func(s string) string { return fmt.Sprintf("%+q", s) }
		}
		body = `{"error":{"code":` + rapid.SampledFrom([]string{`"c1"`, `1008`, `null`}).Draw(t, "code") +
			`,"type":` + rapid.SampledFrom([]string{`"T1"`, `"t2"`, `null`}).Draw(t, "type") + `,"message":` + quote(text) + `}}`
	}
	r := answer(rapid.SampledFrom([]string{"acme", "ac", "other", "third"}).Draw(t, "provider"),
		rapid.SampledFrom([]int{0, 400, 429, 451, 500, 599}).Draw(t, "code"), body)
	if r.Status == 0 {
		r.Source = wire.SourceTransport
	}
	if rapid.Bool().Draw(t, "header") {
		r.Header["X-A"] = []string{"0"}
	}
	return r
}

// The compiled set answers as the naive evaluation does, rule by rule (ABI-2.1, ABI-9).
func TestAgreesWithNaive(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sources []rules.Source
		var tables [][]written
		var limits []int
		for i := range rapid.IntRange(1, 3).Draw(t, "sources") {
			var table []written
			for range rapid.IntRange(0, 8).Draw(t, "rules") {
				table = append(table, drawRule(t, len(table), rapid.Bool().Draw(t, "restates")))
			}
			limit := rapid.SampledFrom([]int{7, 16, rules.MaxText}).Draw(t, "limit")
			raw, _ := json.Marshal(table)
			parsed, problems := rules.Parse(raw, rules.Options{Builtin: true, Needs: wire.Needs{ErrorText: "full", ErrorTextBytes: limit, Headers: []string{"x-a"}}})
			if len(problems) > 0 {
				t.Fatal(problems)
			}
			sources = append(sources, rules.Source{Plugin: fmt.Sprint("p", i), Table: parsed})
			tables, limits = append(tables, table), append(limits, limit)
		}
		set := rules.Compile(sources...)
		for range 3 {
			r := drawReply(t)
			m := set.Match(r)
			from := rapid.IntRange(0, len(sources)).Draw(t, "from")
			to := rapid.IntRange(from, len(sources)).Draw(t, "to")
			expect := func(restates bool, phase string) string {
				for i := from; i < to; i++ {
					for _, w := range tables[i] {
						_, is := w.Then["restate_status"]
						if is == restates && w.Phase == phase && w.holds(r, limits[i]) {
							return fmt.Sprint("p", i, "/", w.ID)
						}
					}
				}
				return ""
			}
			if r.Facts.HasBody {
				re, _, ok := m.Restate(from, to)
				if want := expect(true, ""); ok != (want != "") || ok && re.Plugin+"/"+re.Rule != want {
					t.Fatalf("restated by %s/%s, naively by %q; body %q", re.Plugin, re.Rule, want, r.Body)
				}
			}
			for phase, word := range map[rules.Phase]string{rules.Guard: "guard", rules.Normal: "", rules.Late: "late"} {
				v, _, ok := m.Classify(phase, from, to)
				if want := expect(false, word); ok != (want != "") || ok && v.Evidence() != want {
					t.Fatalf("%s: decided by %s, naively by %q; body %q", phase, v.Evidence(), want, r.Body)
				}
			}
		}
	})
}
