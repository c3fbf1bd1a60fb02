package rules

import (
	"regexp"
	"time"

	"github.com/weirgate/weir/rules/hint"
	"github.com/weirgate/weir/rules/internal/tree"
)

// source is where a reading takes its text from.
type source uint8

const (
	fromText source = iota + 1
	fromHeader
	fromJSON
	fromHint
	fromClock // next_midnight needs no text
)

// byClock is the source of a time that the rule's author knows and the answer does not say: the next midnight.
const byClock = "clock"

// reading is a time that a rule takes out of the answer.
type reading struct {
	from     source
	header   string
	path     tree.Path
	pathText string
	match    *regexp.Regexp // its first group that took part, or all of it
	unit     string
	required bool
}

func (r *reading) setPath(text string, bad func()) {
	path, ok := tree.ParsePath(text)
	if !ok {
		bad()
	}
	r.path, r.pathText = path, text
}

// read returns the time and where it was found (COOL-6).
func (r *reading) read(m *Match, limit int) (wait time.Duration, source string, ok bool) {
	switch r.from {
	case fromHint:
		h := m.reply.Hint
		return h.Wait, h.Source, h.OK && h.Wait > 0
	case fromClock:
		wait, ok = hint.Unit("", r.unit, m.reply.Now)
		return wait, byClock, ok
	case fromHeader:
		for _, v := range m.header(r.header) {
			if wait, ok = r.take(m, v); ok {
				return wait, "header:" + r.header, true
			}
		}
	case fromJSON:
		ok = m.find(r.path, limit, func(v tree.Value) bool {
			if !v.Scalar() {
				return false
			}
			wait, ok = r.take(m, v.Text)
			return ok
		})
		return wait, "json:" + r.pathText, ok
	case fromText:
		for _, text := range m.look(limit).cut {
			if wait, ok = r.take(m, text); ok {
				return wait, "text", true
			}
		}
	}
	return 0, "", false
}

// take reads the time in one text.
func (r *reading) take(m *Match, text string) (time.Duration, bool) {
	if r.match != nil {
		groups := r.match.FindStringSubmatch(text)
		if groups == nil {
			return 0, false
		}
		text = captured(groups)
	}
	return hint.Unit(text, r.unit, m.reply.Now)
}

// captured returns the first group that took part in the match, so that each branch of an alternation may have its own.
func captured(groups []string) string {
	for _, g := range groups[1:] {
		if g != "" {
			return g
		}
	}
	return groups[0]
}
