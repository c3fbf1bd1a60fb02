package rules

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weirgate/weir/rules/internal/tree"
)

// Cause is one condition of a rule and the part of an answer that met it.
type Cause struct {
	Field string `json:"field"` // of the rule: status, text_contains, header x-y, json error.code
	Asked string `json:"asked"` // by the rule
	Found string `json:"found"` // in the answer, as it stands there
}

// maxFound is how much of an answer a cause shows.
const maxFound = 160

// Because says what in the answer meets the conditions of a rule that decided it, in the words of the rule's own JSON. It
// is for people: it reads the rule anew, and what it cannot read it leaves out. Pure.
func Because(rule json.RawMessage, r *Reply) []Cause {
	var c struct {
		Status    json.RawMessage `json:"status"`
		Code      []string        `json:"code"`
		Type      []string        `json:"type"`
		Contains  []string        `json:"text_contains"`
		All       []string        `json:"text_all"`
		Matches   []string        `json:"text_matches"`
		Header    json.RawMessage `json:"header"`
		HeaderAll json.RawMessage `json:"header_all"`
		JSON      json.RawMessage `json:"json"`
		JSONAll   json.RawMessage `json:"json_all"`
		Auth      []string        `json:"auth"`
	}
	if json.Unmarshal(rule, &c) != nil {
		return nil
	}
	b := because{reply: r, texts: []string{r.Facts.Text, r.Facts.Decoded, r.Facts.Message}}
	if r.Facts.Partial {
		b.texts = []string{r.Facts.Words}
	}
	if len(c.Status) > 0 {
		b.add("status", string(c.Status), strconv.Itoa(r.Status))
	}
	if len(c.Auth) > 0 {
		b.add("auth", strings.Join(c.Auth, ", "), string(r.Auth))
	}
	b.word("code", c.Code, r.Facts.Code)
	b.word("type", c.Type, r.Facts.Type)
	b.contains("text_contains", c.Contains, 1)
	b.contains("text_all", c.All, len(c.All))
	b.matches(c.Matches)
	b.headers(c.Header, c.HeaderAll)
	b.values(c.JSON, c.JSONAll)
	return b.causes
}

// because collects causes.
type because struct {
	reply  *Reply
	texts  []string
	causes []Cause
}

func (b *because) add(field, asked, found string) {
	b.causes = append(b.causes, Cause{field, asked, short(found, maxFound)})
}

func (b *because) word(field string, asked []string, found string) {
	for _, a := range asked {
		if strings.EqualFold(a, found) {
			b.add(field, a, found)
			return
		}
	}
}

// contains adds the first markers that stand in a text, at most most.
func (b *because) contains(field string, markers []string, most int) {
	for _, marker := range markers {
		if most == 0 {
			return
		}
		if found, ok := b.around(marker); ok {
			b.add(field, marker, found)
			most--
		}
	}
}

// around is a marker as the text has it, with some of what stands beside it.
func (b *because) around(marker string) (string, bool) {
	for _, text := range b.texts {
		if at := strings.Index(strings.ToLower(text), strings.ToLower(marker)); at >= 0 && at+len(marker) <= len(text) {
			return passage(text, at, at+len(marker)), true
		}
	}
	return "", false
}

// passage is text from start to end with up to 40 bytes on each side, in one line.
func passage(text string, start, end int) string {
	from, to := max(0, start-40), min(len(text), end+40)
	for from < start && !utf8.RuneStart(text[from]) {
		from++
	}
	for to > end && to < len(text) && !utf8.RuneStart(text[to]) {
		to--
	}
	return strings.Join(strings.Fields(text[from:to]), " ")
}

func (b *because) matches(patterns []string) {
	for _, p := range patterns {
		re, err := regexp.Compile("(?i)" + p)
		if err != nil {
			continue
		}
		for _, text := range b.texts {
			if at := re.FindStringIndex(text); at != nil {
				b.add("text_matches", p, passage(text, at[0], at[1]))
				return
			}
		}
	}
}

func (b *because) headers(lists ...json.RawMessage) {
	for _, c := range conditionsOf(lists) {
		for name, values := range b.reply.Header {
			if c.Name != "" && strings.EqualFold(name, c.Name) && len(values) > 0 {
				b.add("header "+c.Name, c.asked(), values[0])
			}
		}
	}
}

// values shows the values at the paths that a rule asks for; of alternatives those that are there.
func (b *because) values(lists ...json.RawMessage) {
	for _, c := range conditionsOf(lists) {
		path, ok := tree.ParsePath(c.Path)
		if !ok || c.Path == "" {
			continue
		}
		for _, doc := range documents(b.reply.Facts.Text) {
			if doc.Find(path, func(v tree.Value) bool {
				if !c.agrees(v) {
					return false
				}
				b.add("json "+c.Path, c.asked(), v.Text)
				return true
			}) {
				return
			}
		}
	}
}

// askedFor is a condition on a header or a value, as JSON has it.
type askedFor struct {
	Name, Path, Matches string
	Equals              any
	Exists              *bool
}

func conditionsOf(lists []json.RawMessage) []askedFor {
	var all []askedFor
	for _, raw := range lists {
		var one askedFor
		var many []askedFor
		if json.Unmarshal(raw, &many) == nil {
			all = append(all, many...)
		} else if json.Unmarshal(raw, &one) == nil {
			all = append(all, one)
		}
	}
	return all
}

func (c askedFor) asked() string {
	switch {
	case c.Matches != "":
		return c.Matches
	case c.Equals != nil:
		text, err := json.Marshal(c.Equals)
		if err == nil {
			return strings.Trim(string(text), `"`)
		}
	}
	return "present"
}

func (c askedFor) agrees(v tree.Value) bool {
	switch {
	case c.Matches != "":
		re, err := regexp.Compile(c.Matches)
		return err == nil && re.MatchString(v.Text)
	case c.Equals != nil:
		return strings.EqualFold(c.asked(), v.Text)
	}
	return v.Kind != tree.None
}
