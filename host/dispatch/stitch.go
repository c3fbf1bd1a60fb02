package dispatch

import (
	"bytes"

	"github.com/weirgate/weir/host/translate/neutral"
)

// stitch joins the text of a new answer to the text that was told already, without a character twice and without one that is missing
// (STM-45). Models go on in three ways: exactly where the text ends, from its last words, or from its beginning. So the longest
// overlap of the tail with the new head is dropped, where it is one: a few letters that happen to be the same are none. Nothing is told
// before that is clear.
type stitch struct {
	old     []byte
	head    []byte // of the new answer, until it is clear how it goes on
	joined  bool
	refused bool // the new answer does not go on with the old one (STM-44)
}

// add takes a piece of the new answer and returns what is to be told.
func (s *stitch) add(text string) string {
	if s.joined || s.refused {
		return text
	}
	s.head = append(s.head, text...)
	if s.mayOverlapMore() {
		return ""
	}
	return s.join()
}

// mayOverlapMore says whether the head, so far, lies within the old text, so that more of it may follow.
func (s *stitch) mayOverlapMore() bool {
	n := len(s.head)
	return n < len(s.old) && bytes.Contains(s.old[:len(s.old)-1], s.head)
}

// join decides where the new text begins.
func (s *stitch) join() string {
	if s.joined || s.refused {
		return ""
	}
	n := min(len(s.head), len(s.old))
	for k := n; k > 0; k-- {
		if bytes.Equal(s.old[len(s.old)-k:], s.head[:k]) && s.meant(k) {
			s.joined = true
			return string(s.head[k:])
		}
	}
	if same := common(s.old, s.head); same >= restarted && same < n { // it began anew, and differently
		s.refused = true
		return ""
	}
	s.joined = true
	white := s.old[len(bytes.TrimRight(s.old, blanks)):] // the new answer's model did not see it
	return string(s.head[common(white, s.head):])
}

// blanks are the characters that the beginning of an answer may not end with, for some models.
const blanks = " \t\r\n"

const (
	restarted = 24 // bytes of the same beginning that are no chance
	overlaps  = 12 // bytes of overlap within a word that are no chance
	words     = 4  // bytes of overlap that begin with a word
)

// meant says whether an overlap of k bytes is one, and no chance.
func (s *stitch) meant(k int) bool {
	at := len(s.old) - k
	if at == 0 {
		return true // the whole text once more
	}
	tail := s.old[at:]
	if len(bytes.TrimSpace(tail)) == 0 {
		return false
	}
	if k >= words && (s.old[at-1] == ' ' || s.old[at-1] == '\n') {
		return true
	}
	return k >= overlaps && distinct(tail) > 3
}

// distinct counts the different bytes of b, up to four.
func distinct(b []byte) int {
	var seen [256]bool
	n := 0
	for _, c := range b {
		if !seen[c] {
			seen[c] = true
			if n++; n > 3 {
				break
			}
		}
	}
	return n
}

func common(a, b []byte) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// resumption is an answer that goes on with what another one began. It filters the new answer's events: the client has the beginning
// already, and its last part may still be open.
type resumption struct {
	stitch stitch
	open   bool // the client's text part is open
	closed bool // the first text part of the new answer is over
	usage  neutral.Usage
	event  neutral.Event
	writer neutral.StreamWriter // of the client's stream
}

// take hands on what of an event is new to the client.
func (r *resumption) take(e *neutral.Event, emit func(*neutral.Event)) {
	if r.stitch.refused {
		return
	}
	switch e.Kind {
	case neutral.Begin:
	case neutral.Open:
		if e.Part.Kind != neutral.Thought && (r.closed || e.Part.Kind != neutral.Text) {
			r.finishText(emit)
			emit(e)
		}
	case neutral.Delta:
		r.delta(e, emit)
	case neutral.Close:
		if e.Part.Kind == neutral.Text && !r.closed {
			r.finishText(emit)
		} else if e.Part.Kind != neutral.Thought {
			emit(e)
		}
	case neutral.Sign:
	case neutral.Finished:
		r.finishText(emit)
		if r.stitch.refused {
			return
		}
		r.event = *e
		r.event.Usage.Add(r.usage)
		emit(&r.event)
	default:
		emit(e)
	}
}

func (r *resumption) delta(e *neutral.Event, emit func(*neutral.Event)) {
	switch {
	case e.Part.Kind == neutral.Thought:
	case e.Part.Kind != neutral.Text || r.closed:
		emit(e)
	default:
		r.say(r.stitch.add(e.Text), emit)
	}
}

func (r *resumption) say(text string, emit func(*neutral.Event)) {
	if text == "" {
		return
	}
	if !r.open {
		r.open = true
		emit(&neutral.Event{Kind: neutral.Open})
	}
	emit(&neutral.Event{Kind: neutral.Delta, Text: text})
}

// finishText tells what was held back and closes the client's part, once.
func (r *resumption) finishText(emit func(*neutral.Event)) {
	if r.closed {
		return
	}
	r.closed = true
	r.say(r.stitch.join(), emit)
	if r.open && !r.stitch.refused {
		r.open = false
		emit(&neutral.Event{Kind: neutral.Close})
	}
}
