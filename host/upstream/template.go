package upstream

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// ErrPlanInvalid: a plan that cannot be used for this connection; the attempt fails without an upstream call (ABI-3).
var ErrPlanInvalid = errors.New("plan invalid")

// template is text with {{name|filter}} places, parsed once (ABI-3).
type template struct {
	parts []part
}

type part struct {
	literal string
	name    string // empty: literal
	filters []filter
}

type filter struct {
	name, arg string
}

// values answers names; ok false means unresolved.
type values func(name string) (text string, ok bool)

func parseTemplate(s string) (template, error) {
	var t template
	for {
		open := strings.Index(s, "{{")
		if open < 0 {
			if s != "" {
				t.parts = append(t.parts, part{literal: s})
			}
			return t, nil
		}
		if open > 0 {
			t.parts = append(t.parts, part{literal: s[:open]})
		}
		shut := strings.Index(s[open:], "}}")
		if shut < 0 {
			return t, fmt.Errorf("%w: %q has {{ without }}", ErrPlanInvalid, s)
		}
		p, err := parsePlace(s[open+2 : open+shut])
		if err != nil {
			return t, err
		}
		t.parts = append(t.parts, p)
		s = s[open+shut+2:]
	}
}

func parsePlace(s string) (part, error) {
	fields := splitOutsideQuotes(s, '|')
	p := part{name: strings.TrimSpace(fields[0])}
	if p.name == "" {
		return p, fmt.Errorf("%w: an empty {{}}", ErrPlanInvalid)
	}
	for _, f := range fields[1:] {
		name, arg, hasArg := strings.Cut(strings.TrimSpace(f), ":")
		switch name {
		case "base64", "urlquery":
			if hasArg {
				return p, fmt.Errorf("%w: filter %s takes no argument", ErrPlanInvalid, name)
			}
		case "default":
			unquoted, err := strconv.Unquote(strings.TrimSpace(arg))
			if err != nil {
				return p, fmt.Errorf("%w: filter default wants a quoted text, as default:\"x\"", ErrPlanInvalid)
			}
			arg = unquoted
		default:
			return p, fmt.Errorf("%w: unknown filter %q; known are base64, urlquery and default", ErrPlanInvalid, name)
		}
		p.filters = append(p.filters, filter{name, arg})
	}
	return p, nil
}

func splitOutsideQuotes(s string, sep byte) []string {
	var out []string
	quoted, from := false, 0
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && quoted:
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == sep && !quoted:
			out = append(out, s[from:i])
			from = i + 1
		}
	}
	return append(out, s[from:])
}

// render fills the places. An unresolved name without a default fails with ErrPlanInvalid that names it.
func (t template) render(v values) (string, error) {
	if len(t.parts) == 1 && t.parts[0].name == "" {
		return t.parts[0].literal, nil
	}
	var b strings.Builder
	for _, p := range t.parts {
		if p.name == "" {
			b.WriteString(p.literal)
			continue
		}
		text, ok := v(p.name)
		for _, f := range p.filters {
			switch f.name {
			case "default":
				if !ok || text == "" {
					text, ok = f.arg, true
				}
			case "base64":
				text = base64.StdEncoding.EncodeToString([]byte(text))
			case "urlquery":
				text = url.QueryEscape(text)
			}
		}
		if !ok {
			return "", fmt.Errorf("%w: {{%s}} has no value", ErrPlanInvalid, p.name)
		}
		b.WriteString(text)
	}
	return b.String(), nil
}

// perRequest says whether a place has another value in each request.
func (t template) perRequest() bool {
	for _, p := range t.parts {
		if strings.HasPrefix(p.name, "request.") || strings.HasPrefix(p.name, "now.") {
			return true
		}
	}
	return false
}

// Moment is what per-request places resolve to.
type Moment struct {
	RequestID string
	Header    map[string][]string // the client's, canonical names
	Now       time.Time
	Query     string      // added to the address
	Extra     http.Header // for this request only, over the plan's and the client's; checked by RequestHeader
}

func (m Moment) value(name string) (string, bool) {
	switch {
	case name == "request.id":
		return m.RequestID, m.RequestID != ""
	case name == "now.unix_s":
		return strconv.FormatInt(m.Now.Unix(), 10), true
	case strings.HasPrefix(name, "request.header."):
		return m.header(strings.TrimPrefix(name, "request.header."))
	}
	return "", false
}
