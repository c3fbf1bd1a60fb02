// Package hint reads when an upstream answer says to come back: from its headers, from typed fields of its body, or from
// its words (COOL-14). It owns the forms and the order of the sources, knows no provider, and is pure: the moment of
// arrival is an argument.
package hint

import (
	"strings"
	"time"
)

const (
	// MaxWait is the longest wait that is believed; longer ones are cut to it (COOL-14).
	MaxWait = 30 * 24 * time.Hour
	// MaxBody is how many bytes of a body are looked at (RST-10).
	MaxBody = 64 << 10
)

// Result is a wait that an answer asked for, in whole milliseconds, and where it was read: header:NAME, json:PATH, or
// text.
type Result struct {
	Wait   time.Duration
	Source string
}

// Read returns the wait that the answer asks for, and false when it asks for none. Names in header may have any letter
// case; of body the first MaxBody bytes are read. A wait is never negative and never above MaxWait. A source whose
// moment has passed gives way to the next one; when no source names a later moment, the wait is 0 and true: the caller
// may retry at once. Read is pure and may be called by many goroutines at once (COOL-14).
func Read(header map[string][]string, body []byte, now time.Time) (Result, bool) {
	if len(body) > MaxBody {
		body = body[:MaxBody]
	}
	p := pick{now: now}
	h := tellingHeaders(header)
	if p.direct(h) || p.buckets(h, "header:") {
		return p.result()
	}
	doc := readBody(strings.TrimSpace(string(body)))
	if p.fields(doc.relative, false) || p.fields(doc.absolute, true) {
		return p.result()
	}
	for _, inner := range doc.headers {
		if p.direct(inner) || p.buckets(inner, "json:headers.") {
			return p.result()
		}
	}
	p.text(doc.text)
	return p.result()
}

// pick keeps the answer while the sources are asked in order.
type pick struct {
	now  time.Time
	best Result
	ok   bool
}

// offer takes a wait and says whether it ends the search: a moment that has passed does not.
func (p *pick) offer(d time.Duration, source string) bool {
	if d < 0 {
		d = 0
	}
	if !p.ok || p.best.Wait == 0 && d > 0 {
		p.best, p.ok = Result{Wait: d, Source: source}, true
	}
	return d > 0
}

func (p *pick) result() (Result, bool) {
	p.best.Wait = clip(p.best.Wait)
	return p.best, p.ok
}

// clip rounds up to whole milliseconds and cuts to MaxWait.
func clip(d time.Duration) time.Duration {
	if d <= 0 {
		return 0
	}
	if d >= MaxWait {
		return MaxWait
	}
	return (d + time.Millisecond - 1).Truncate(time.Millisecond)
}
