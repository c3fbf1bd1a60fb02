package rules

import (
	"strconv"
	"strings"

	"github.com/weirgate/weir/rules/internal/scan"
	"github.com/weirgate/weir/rules/internal/tree"
)

// The texts of an answer, in the order in which a reading looks at them.
const (
	inMessage = iota
	inDecoded
	inText
	textCount
)

// sight is what a plugin with a given need of text sees of the answer: so much of each text.
type sight struct {
	limit   int
	cut     [textCount]string
	ends    [textCount]int32 // where the visible part ends in the folded text
	longest [textCount]int   // how long the words of a text are, 0: not known
	twice   bool             // the message stands in another text too, as words of their own
	tried   []int8           // per expression of the view: does it match? 0 unknown, 1 yes, -1 no
}

// look returns the sight of limit bytes.
func (m *Match) look(limit int) *sight {
	for _, s := range m.sights {
		if s.limit == limit {
			return s
		}
	}
	m.scan()
	s := &sight{limit: limit}
	for i, text := range m.texts {
		s.cut[i] = scan.Cut(text, limit)
		switch {
		case len(s.cut[i]) == len(text) || m.folded[i] == "":
			s.ends[i] = int32(len(m.folded[i]))
		case len(text) == len(m.folded[i]):
			s.ends[i] = int32(len(s.cut[i]))
		default: // a few letters fold to another length
			s.ends[i] = int32(len(scan.Fold(s.cut[i])))
		}
	}
	s.twice = s.cut[inMessage] != "" && (standsIn(s.cut[inMessage], s.cut[inText]) || standsIn(s.cut[inMessage], s.cut[inDecoded]))
	s.tried = make([]int8, m.view.expressions)
	m.sights = append(m.sights, s)
	return s
}

// standsIn reports whether part stands in text without a letter, digit or _ next to it, so that any expression without
// anchors that matches part matches text.
func standsIn(part, text string) bool {
	at := strings.Index(text, part)
	if at < 0 {
		return false
	}
	before, after := text[:at], text[at+len(part):]
	return (before == "" || !wordByte(before[len(before)-1])) && (after == "" || !wordByte(after[0]))
}

func wordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// scan finds all markers of the view in one pass over each text. A message that
// stands in the text as it is needs no look of its own, when all of the text is seen.
func (m *Match) scan() {
	if m.scanned {
		return
	}
	m.scanned = true
	f := &m.reply.Facts
	m.texts = [textCount]string{inMessage: f.Message, inDecoded: f.Decoded, inText: f.Text}
	if f.Partial {
		m.texts = [textCount]string{inText: f.Words}
	}
	if f.Message == f.Text {
		m.texts[inMessage] = ""
	}
	whole := len(f.Text) <= m.view.least && strings.Contains(f.Text, m.texts[inMessage])
	for i, text := range m.texts {
		if i == inMessage && whole {
			text = ""
		}
		m.folded[i] = scan.Fold(text)
		m.found[i] = m.view.markers.First(m.folded[i])
	}
}

// sees reports whether the marker is in the visible part.
func (m *Match) sees(s *sight, marker int32) bool {
	for i := range textCount {
		if m.found[i][marker] <= s.ends[i] {
			return true
		}
	}
	return false
}

// marked checks the three lists of markers.
func (m *Match) marked(e *entry) bool {
	if len(e.contains)+len(e.all)+len(e.none) == 0 {
		return true
	}
	s := m.look(e.limit)
	for _, marker := range e.all {
		if !m.sees(s, marker) {
			return false
		}
	}
	for _, marker := range e.none {
		if m.sees(s, marker) {
			return false
		}
	}
	return len(e.contains) == 0 || m.any(s, e.contains)
}

func (m *Match) any(s *sight, markers []int32) bool {
	for _, marker := range markers {
		if m.sees(s, marker) {
			return true
		}
	}
	return false
}

// patternsHold tries the regular expressions, each once, and those only whose literals were found.
func (m *Match) patternsHold(e *entry) bool {
	if len(e.sought) == 0 {
		return true
	}
	s := m.look(e.limit)
	for i := range e.sought {
		p := &e.sought[i]
		if s.tried[p.number] == 0 {
			found, sure := m.matches(s, e.source, p)
			switch {
			case found:
				s.tried[p.number] = 1
			case sure:
				s.tried[p.number] = -1
			}
		}
		if s.tried[p.number] > 0 {
			return true
		}
	}
	return false
}

// matches says whether the expression matches one of the texts; not sure: the plugin has done too much for this answer.
func (m *Match) matches(s *sight, source int, p *sought) (found, sure bool) {
	for _, set := range p.literals {
		if !m.any(s, set) {
			return false, true
		}
	}
	for i, text := range s.cut {
		if i == inMessage && s.twice && !p.Anchored {
			continue
		}
		if text == "" && s.cut != [textCount]string{} {
			continue
		}
		if found, sure = m.matchesIn(s, i, source, p); found || !sure {
			return found, sure
		}
	}
	return false, true
}

// header returns the values of a header, by its lower-case name.
func (m *Match) header(name string) []string {
	if m.headers == nil {
		m.headers = make(map[string][]string, len(m.reply.Header))
		for k, v := range m.reply.Header {
			k = strings.ToLower(k)
			m.headers[k] = append(m.headers[k], v...)
		}
	}
	return m.headers[name]
}

// holds checks a header's values, one of which is enough.
func (c headerCondition) holds(values []string) bool {
	if c.exists != nil {
		return *c.exists == (len(values) > 0)
	}
	for _, v := range values {
		v = strings.TrimSpace(v)
		switch {
		case c.equals != nil && v == *c.equals,
			c.matches != nil && c.matches.MatchString(subject(v)),
			c.listZero && hasZero(v):
			return true
		}
	}
	return false
}

// hasZero reports whether one value of a list name=value,... is zero.
func hasZero(list string) bool {
	for item := range strings.SplitSeq(list, ",") {
		if i := strings.LastIndexByte(item, '='); i >= 0 {
			if n, err := strconv.ParseFloat(strings.TrimSpace(item[i+1:]), 64); err == nil && n == 0 {
				return true
			}
		}
	}
	return false
}

// find calls f with each value that the path leads to, in each JSON value of the visible body, until f returns true.
func (m *Match) find(path tree.Path, limit int, f func(tree.Value) bool) bool {
	values, ok := m.values[limit]
	if !ok {
		values = documents(scan.Cut(m.reply.Facts.Text, limit))
		if m.values == nil {
			m.values = map[int][]tree.Value{}
		}
		m.values[limit] = values
	}
	for _, v := range values {
		if v.Find(path, f) {
			return true
		}
	}
	return false
}

// value checks one JSON value.
func (c jsonCondition) value(v tree.Value) bool {
	switch {
	case c.exists != nil:
		return true // it is there; whether it should be, the caller knows
	case !v.Scalar():
		return false
	case c.equals != nil:
		return v.Text == *c.equals || v.Kind == tree.Number && sameNumber(v.Text, *c.equals)
	}
	return c.matches.MatchString(subject(v.Text))
}

func sameNumber(a, b string) bool {
	x, err1 := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err1 == nil && err2 == nil && x == y
}
