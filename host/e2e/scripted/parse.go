package scripted

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// line is one line of a script: whom it is about, when, how often, and what happens then.
type line struct {
	provider, key, model string // empty: any
	from, until          time.Duration
	times                int // 0: always
	used                 int
	does                 behaviour
}

// behaviour is what happens to one request.
type behaviour struct {
	status int // 0: a good answer
	header http.Header
	body   []byte        // nil: the usual one of the status
	slow   time.Duration // before anything is said, in real time
	each   time.Duration // between the events of a stream, in real time
	cut    int           // the stream is reset after so many events; 0: not
	hang   bool          // nothing is ever said
	stall  bool          // the head of a stream and a comment, then nothing
	reset  bool          // the connection is reset at once
}

// matches says whether the line is about this request.
func (l *line) matches(h Hit, since time.Duration) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	return is(l.provider, h.Provider) && is(l.key, h.Key) && is(l.model, h.Model) &&
		since >= l.from && (l.until == 0 || since < l.until) && (l.times == 0 || l.used < l.times)
}

// parse reads a script. Each line is
//
//	[provider P] [key K] [model M]: [at 10s] [until 60s] [times 2] WHAT...
//
// and the first that matches a request decides; at and until count from the start of the script. WHAT is ok, a status,
// reset, hang, stall, slow 200ms, each 50ms, cut 3, retry-after 30, header NAME VALUE, body @FILE, or body and the rest of the line.
// Empty lines and those that begin with # are skipped.
func parse(text string, read func(name string) ([]byte, error)) ([]*line, error) {
	var lines []*line
	n := 0
	for raw := range strings.Lines(text) {
		n++
		raw = strings.TrimSpace(raw)
		if raw == "" || strings.HasPrefix(raw, "#") {
			continue
		}
		l, err := parseLine(raw, read)
		if err != nil {
			return nil, fmt.Errorf("line %d: %q: %w", n, raw, err)
		}
		lines = append(lines, l)
	}
	return lines, nil
}

func parseLine(raw string, read func(name string) ([]byte, error)) (*line, error) {
	whom, what, ok := strings.Cut(raw, ":")
	if !ok {
		return nil, fmt.Errorf("has no colon after whom it is about")
	}
	l := &line{does: behaviour{header: http.Header{}}}
	about := strings.Fields(whom)
	if len(about)%2 != 0 {
		return nil, fmt.Errorf("must be about provider P, key K, model M, or nobody in particular")
	}
	for i := 0; i < len(about); i += 2 {
		switch about[i] {
		case "provider":
			l.provider = about[i+1]
		case "key":
			l.key = about[i+1]
		case "model":
			l.model = about[i+1]
		default:
			return nil, fmt.Errorf("%s is not provider, key or model", about[i])
		}
	}
	w := words{rest: what}
	for w.err == nil {
		word, more := w.next()
		if !more {
			break
		}
		l.take(word, &w, read)
	}
	return l, w.err
}

// take reads one WHAT with its arguments.
func (l *line) take(word string, w *words, read func(name string) ([]byte, error)) {
	b := &l.does
	switch word {
	case "ok":
		b.status = 0
	case "reset":
		b.reset = true
	case "hang":
		b.hang = true
	case "stall":
		b.stall = true
	case "at":
		l.from = w.duration()
	case "until":
		l.until = w.duration()
	case "times":
		l.times = w.number()
	case "slow":
		b.slow = w.duration()
	case "each":
		b.each = w.duration()
	case "cut":
		b.cut = w.number()
	case "retry-after":
		value, _ := w.next()
		b.header.Set("Retry-After", value)
	case "header":
		name, _ := w.next()
		value, _ := w.next()
		b.header.Set(name, value)
	case "body":
		text := strings.TrimSpace(w.rest)
		w.rest = ""
		b.body = []byte(text)
		if name, ok := strings.CutPrefix(text, "@"); ok {
			b.body, w.err = read(name)
		}
	default:
		status, err := strconv.Atoi(word)
		if err != nil || status < 100 || status > 599 {
			w.err = fmt.Errorf("%s is nothing that an upstream does", word)
		}
		b.status = status
	}
}

// words takes a text apart.
type words struct {
	rest string
	err  error
}

func (w *words) next() (string, bool) {
	w.rest = strings.TrimSpace(w.rest)
	if w.rest == "" {
		return "", false
	}
	word, rest, _ := strings.Cut(w.rest, " ")
	w.rest = rest
	return word, true
}

func (w *words) duration() time.Duration {
	word, _ := w.next()
	d, err := time.ParseDuration(word)
	if err != nil && w.err == nil {
		w.err = err
	}
	return d
}

func (w *words) number() int {
	word, _ := w.next()
	n, err := strconv.Atoi(word)
	if err != nil && w.err == nil {
		w.err = err
	}
	return n
}
