package rules

import (
	"bytes"
	"strings"
	"unicode/utf8"

	"github.com/weirgate/weir/rules/hint"
	"github.com/weirgate/weir/rules/internal/scan"
	"github.com/weirgate/weir/rules/internal/tree"
	"github.com/weirgate/weir/sdk/wire"
)

const (
	maxFrames      = 64      // of a stream of events that are looked at
	maxItems       = 16      // of an array around an error
	maxFactMessage = 4 << 10 // bytes
	maxFactWord    = 256     // bytes of a code or type
	maxNesting     = 4       // errors in errors, and JSON in strings
)

// Read fills r.Facts and r.Hint from the rest of r. It never fails and looks at no more than MaxText bytes of the body,
// which may be anything: not UTF-8, not JSON, cut off, a page of HTML, a stream of events. A transport failure has no body;
// it keeps a code that is already there (ABI-4), else the code is read from the text of the error.
func Read(r *Reply) {
	body := r.Body
	if len(body) > MaxText {
		body = body[:MaxText]
	}
	r.BodyBytes = max(r.BodyBytes, len(r.Body))
	text := string(body)
	if !utf8.ValidString(text) {
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	text = strings.TrimPrefix(text, "\uFEFF")
	f := Facts{Text: text}
	if r.Source == wire.SourceTransport || r.Original == 0 && r.Status == 0 {
		if f.Message = short(strings.TrimSpace(text), maxFactMessage); f.Message == "" {
			f.Message = r.Facts.Message
		}
		if f.Code = r.Facts.Code; f.Code == "" {
			f.Code = transportCode(text)
		}
		r.Facts, r.Hint = f, Hint{}
		return
	}
	f.HasBody = strings.TrimSpace(text) != ""
	values := documents(text)
	e := finding{}
	for _, v := range values {
		if e = envelope(v, 0); e.any() {
			break
		}
	}
	f.Message, f.Code, f.Type = short(e.message, maxFactMessage), short(e.code, maxFactWord), short(e.typ, maxFactWord)
	if len(values) == 0 {
		f.Message = short(plain(text), maxFactMessage)
	}
	if strings.Contains(text, `\`) {
		f.Decoded = decoded(values)
	}
	if f.Partial = r.good() && (len(values) > 0 || !page(text)); f.Partial {
		f.Words = wordsOf(values)
	}
	r.Facts = f
	h, ok := hint.Read(r.Header, bytes.TrimPrefix(body, []byte("\ufeff")), r.Now)
	r.Hint = Hint{OK: ok, Wait: h.Wait, Source: h.Source}
}

// page reports whether a body is a page of HTML, which no good answer is.
func page(text string) bool { return strings.HasPrefix(strings.TrimSpace(text), "<") }

func short(s string, n int) string { return scan.Cut(s, n) }

// documents returns the JSON values of a body: one, the items of an array after it, or those of a stream's frames. None:
// the body is plain text.
func documents(text string) []tree.Value {
	text = strings.TrimSpace(text)
	if frames := frames(text); frames != nil {
		return frames
	}
	if text == "" || text[0] != '{' && text[0] != '[' && text[0] != '"' {
		return nil
	}
	v, _, _ := tree.Parse(text)
	switch {
	case v.Kind == tree.Array:
		return append([]tree.Value{v}, v.Items[:min(len(v.Items), maxItems)]...)
	case v.Kind == tree.Object && len(v.Items) == 0 && len(text) > 2:
		return nil // a brace that opens no JSON
	case v.Kind == tree.String:
		if inner := documents(v.Text); len(inner) > 0 && len(v.Text) < len(text) {
			return inner
		}
	}
	return []tree.Value{v}
}

// frames returns the values of the data of a stream of events, and nil when text is none.
func frames(text string) []tree.Value {
	head, _, _ := strings.Cut(text, "\n")
	field, _, ok := strings.Cut(head, ":")
	switch field {
	case "data", "event", "id", "retry", "":
	default:
		return nil
	}
	if !ok {
		return nil
	}
	values := []tree.Value{}
	var data []string
	flush := func() {
		if len(data) > 0 {
			if v, _, _ := tree.Parse(strings.Join(data, "\n")); v.Kind == tree.Object || v.Kind == tree.Array {
				values = append(values, v)
			}
		}
		data = data[:0]
	}
	for line := range strings.SplitSeq(text, "\n") {
		if len(values) == maxFrames {
			break
		}
		line = strings.TrimSuffix(line, "\r")
		if line == "" {
			flush()
		}
		if d, ok := strings.CutPrefix(line, "data:"); ok {
			data = append(data, strings.TrimPrefix(d, " "))
		}
	}
	flush() // of a stream that was cut off; nothing when all were read
	if len(values) == 0 {
		return nil
	}
	return values
}

// decoded joins the strings of the values, those of JSON inside a string too, each once.
func decoded(values []tree.Value) string {
	var b strings.Builder
	seen := map[string]bool{}
	var add func(v tree.Value, depth int)
	add = func(v tree.Value, depth int) {
		v.Strings(func(s string) {
			if seen[s] || s == "" || b.Len()+len(s) >= MaxText {
				return
			}
			seen[s] = true
			if b.Len() > 0 {
				b.WriteByte('\n')
			}
			b.WriteString(s)
			if inner, ok := inside(s); ok && depth < maxNesting {
				add(inner, depth+1)
			}
		})
	}
	for _, v := range values {
		add(v, 0)
	}
	return strings.ToValidUTF8(b.String(), "\uFFFD")
}

// inside returns the JSON object or array that a string holds, alone or after some words: relays wrap the answer of
// their own upstream that way.
func inside(s string) (tree.Value, bool) {
	at := strings.IndexByte(s, '{')
	before := s
	if at >= 0 {
		before = s[:at]
	}
	if list := strings.IndexByte(before, '['); list >= 0 {
		at = list
	}
	if at < 0 || len(s)-at < 4 {
		return tree.Value{}, false
	}
	v, _, whole := tree.Parse(s[at:])
	return v, whole && (v.Kind == tree.Object || v.Kind == tree.Array && at == 0) && len(v.Items) > 0
}

// plain is the message of a body that is not JSON: its text, and of a page of HTML the title.
func plain(text string) string {
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "<") {
		return text
	}
	const tag = "<title>"
	for at := 0; ; at++ {
		next := strings.IndexByte(text[at:], tag[0])
		if next < 0 || len(text)-at-next < len(tag) {
			return ""
		}
		if at += next; strings.EqualFold(text[at:at+len(tag)], tag) {
			text = text[at+len(tag):]
			break
		}
	}
	end := strings.IndexByte(text, '<')
	if end < 0 {
		return ""
	}
	return strings.Join(strings.Fields(text[:end]), " ")
}

// transportCode reads the transport code of ABI-4 from the words of an error.
func transportCode(text string) string {
	text = strings.ToLower(text)
	for _, c := range []struct {
		code  string
		words []string
	}{
		{wire.TransportTimeout, []string{"timeout", "timed out", "deadline exceeded"}},
		{wire.TransportDNS, []string{"no such host", "enotfound", "eai_again", "dns"}},
		{wire.TransportTLS, []string{"tls", "x509", "certificate", "ssl"}},
		{wire.TransportReset, []string{"reset", "broken pipe"}},
		{wire.TransportEOF, []string{"eof", "socket hang up", "closed"}},
		{wire.TransportConnect, []string{"refused", "unreachable", "connect", "no route"}},
	} {
		for _, w := range c.words {
			if strings.Contains(text, w) {
				return c.code
			}
		}
	}
	return ""
}
