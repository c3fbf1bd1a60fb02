package quota

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// The families of headers that speak of limits, as net/http spells their names.
const (
	openAI    = "X-Ratelimit-"         // OpenAI and those that speak as it does: -Limit-, -Remaining-, -Reset- and a window
	anthropic = "Anthropic-Ratelimit-" // a window and -Limit, -Remaining, -Reset; of subscriptions Unified-, a window and -Utilization
	codex     = "X-Codex-"             // Primary- and Secondary-, with Used-Percent, Window-Minutes, Reset-At or Reset-After-Seconds
)

// Learn takes over what the head of an answer says about what is left of a connection (gate 18). An answer that says nothing costs a look
// at the names of its headers.
func (b *Book) Learn(connection string, h map[string][]string, now time.Time) {
	var p *page
	for name, values := range h {
		if len(name) < 12 || name[0] != 'X' && name[0] != 'A' || len(values) == 0 {
			continue
		}
		switch {
		case strings.HasPrefix(name, openAI), strings.HasPrefix(name, anthropic), strings.HasPrefix(name, codex):
		default:
			continue
		}
		if p == nil {
			if p = b.page(connection, true); p == nil {
				return
			}
			p.mu.Lock()
			defer p.mu.Unlock()
			p.at, p.dirty = now.UnixMilli(), true
		}
		p.learn(name, values[0], h, now)
	}
}

// learn takes over one header.
func (p *page) learn(name, value string, h map[string][]string, now time.Time) {
	if rest, ok := strings.CutPrefix(name, openAI); ok {
		field, window, _ := strings.Cut(rest, "-")
		p.set(window, field, value, now)
		return
	}
	if rest, ok := strings.CutPrefix(name, codex); ok {
		p.learnCodex(rest, value, h, now)
		return
	}
	rest := strings.TrimPrefix(name, anthropic)
	i := strings.LastIndexByte(rest, '-')
	if i < 0 {
		return
	}
	window, field := rest[:i], rest[i+1:]
	if window == "Unified" { // of the account as a whole: the windows below it say more
		return
	}
	if unified, ok := strings.CutPrefix(window, "Unified-"); ok {
		window = unified
		if h[anthropic+"Unified-"+unified+"-Utilization"] == nil { // a status, or the claim that counts: they have no number
			return
		}
	}
	p.set(window, field, value, now)
}

// learnCodex takes over one header of a subscription of codex. How long a window is stands beside it.
func (p *page) learnCodex(rest, value string, h map[string][]string, now time.Time) {
	which, field, _ := strings.Cut(rest, "-")
	window := ""
	switch which {
	case "Primary":
		window = "5h"
	case "Secondary":
		window = "7d"
	case "Credits":
		if field == "Balance" {
			p.set("Credits", "Remaining", value, now)
		}
		return
	default:
		return
	}
	if m := h[codex+which+"-Window-Minutes"]; len(m) > 0 {
		window = lengthName(m[0], window)
	}
	p.set(window, field, value, now)
}

// lengthName names a window by its length in minutes.
func lengthName(minutes, otherwise string) string {
	switch n, _ := strconv.Atoi(minutes); n {
	case 300:
		return "5h"
	case 1440:
		return "daily"
	case 10080:
		return "7d"
	case 43200, 43800, 44640:
		return "monthly"
	}
	return otherwise
}

// set notes one field of a window. What is no number is not noted.
func (p *page) set(window, field, value string, now time.Time) {
	name := windowName(window)
	if name == "" {
		return
	}
	var n float64
	var at int64
	switch field {
	case "Limit", "Remaining", "Utilization", "Used-Percent":
		var err error
		if n, err = strconv.ParseFloat(strings.TrimSpace(value), 64); err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
			return
		}
	case "Reset", "Reset-At", "Reset-After-Seconds":
		if at = moment(field, strings.TrimSpace(value), now); at == 0 {
			return
		}
	default:
		return
	}
	w := p.named(name)
	if w == nil {
		return
	}
	w.at = now.UnixMilli()
	switch field {
	case "Limit":
		w.limit = n
	case "Remaining":
		w.remaining = n
	case "Utilization":
		w.used = min(100*n, 100)
	case "Used-Percent":
		w.used = min(n, 100)
	default:
		w.resets = at
	}
}

// maxName bounds the name of a window: it comes from outside.
const maxName = 48

// windowName is a window as it is called in a snapshot.
func windowName(s string) string {
	switch s {
	case "Requests":
		return "requests"
	case "Tokens":
		return "tokens"
	case "Input-Tokens":
		return "input_tokens"
	case "Output-Tokens":
		return "output_tokens"
	case "Requests-Day":
		return "daily"
	case "5h", "7d":
		return s
	case "":
		return "requests"
	}
	if len(s) > maxName {
		return ""
	}
	s = strings.ToLower(s)
	if model, ok := strings.CutPrefix(s, "7d_"); ok {
		return "7d:" + model
	}
	return strings.ReplaceAll(s, "-", "_")
}

// farAway is the latest reset that is believed.
const farAway = 400 * 24 * time.Hour

// moment reads when a window begins anew, in Unix milliseconds: RFC 3339, seconds or milliseconds since 1970, or how long it takes, as a
// number of seconds or 6m0s. 0: it is none, or lies too far away.
func moment(field, value string, now time.Time) int64 {
	var at time.Time
	switch n := len(value); { // by its looks, since a text that does not parse costs more than one that does
	case n == 0:
		return 0
	case n >= len("2006-01-02T15:04:05Z") && value[10] == 'T':
		t, err := time.Parse(time.RFC3339, value)
		if err != nil {
			return 0
		}
		at = t
	case value[n-1] > '9':
		d, err := time.ParseDuration(value)
		if err != nil {
			return 0
		}
		at = now.Add(min(max(d, 0), 2*farAway))
	default:
		x, err := strconv.ParseFloat(value, 64)
		if err != nil || !(x >= 0) || x > 1e15 {
			return 0
		}
		at = number(x, field == "Reset-After-Seconds", now)
	}
	if at.Before(now.Add(-farAway)) || at.After(now.Add(farAway)) {
		return 0
	}
	return at.UnixMilli()
}

// number is a moment that was given as a number: milliseconds or seconds since 1970 when it is that large, else seconds from now.
func number(x float64, length bool, now time.Time) time.Time {
	switch {
	case x >= 1e12 && !length:
		return time.UnixMilli(int64(x))
	case x >= 1e9 && !length:
		return time.Unix(int64(x), 0)
	}
	return now.Add(time.Duration(min(x, 2*farAway.Seconds()) * float64(time.Second)))
}
