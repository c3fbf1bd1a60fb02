package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/dispatch"
)

// keptForm is how much of a multipart body is kept, so that it may be sent again (INF-7).
const keptForm = 1 << 20

// readForm reads a multipart body until the name of its model is known, and at least what is kept. heard is called when the client has
// sent all of it.
func (g *Gateway) readForm(r *http.Request, c *dispatch.Call, boundary string, heard func()) *dialect.Failure {
	if r.ContentLength > g.o.MaxBody {
		return g.tooLarge()
	}
	source, size := io.Reader(r.Body), r.ContentLength
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		decoded, err := body.Decode(encoding, r.Body)
		if err != nil {
			return g.unread(err)
		}
		source, size = decoded, -1 // what the decoder holds goes with the request's body
	}
	source = &formReader{from: source, left: g.o.MaxBody, heard: heard}
	f := &dispatch.Form{Type: r.Header.Get("Content-Type"), Size: size}
	for limit := int64(keptForm); ; limit += keptForm {
		n := len(f.Head)
		more, err := io.ReadAll(io.LimitReader(source, limit+1-int64(n)))
		f.Head = append(f.Head, more...)
		if err != nil {
			return g.unread(err)
		}
		whole := int64(len(f.Head)) <= limit
		var found bool
		if f.From, f.To, found = formField(f.Head, boundary, "model"); !found && !whole {
			continue
		}
		if !found {
			return &dialect.Failure{Status: http.StatusBadRequest, NoRetry: true,
				Message: "The request has no model; give its name in the form field model."}
		}
		if !whole || len(f.Head) > keptForm { // with nothing left it is still sent only once
			f.Rest = source
		}
		break
	}
	name := f.Head[f.From:f.To]
	if !utf8.Valid(name) || bytes.ContainsAny(name, "\r\n\"\\") {
		return &dialect.Failure{Status: http.StatusBadRequest, NoRetry: true, Message: "The form field model does not hold the name of a model."}
	}
	b, err := named(string(name))
	if err != nil {
		return g.unread(err)
	}
	c.Form, c.Body = f, b
	return nil
}

// formReader bounds a body, and says when it is over.
type formReader struct {
	from  io.Reader
	left  int64
	heard func()
}

// Read fails with body.ErrTooLarge behind the limit.
func (f *formReader) Read(p []byte) (int, error) {
	n, err := f.from.Read(p)
	if f.left -= int64(n); f.left < 0 {
		return 0, body.ErrTooLarge
	}
	if errors.Is(err, io.EOF) {
		f.heard()
	}
	return n, err
}

// formField finds the value of a field that is whole in the beginning of a multipart body.
func formField(b []byte, boundary, name string) (from, to int, ok bool) {
	border := []byte("\r\n--" + boundary)
	at := bytes.Index(b, border[2:])
	for at >= 0 {
		line := bytes.Index(b[at:], []byte("\r\n"))
		if line < 0 {
			return 0, 0, false
		}
		head := at + line + 2
		blank := bytes.Index(b[head-2:], []byte("\r\n\r\n"))
		if blank < 0 {
			return 0, 0, false
		}
		from = head - 2 + blank + 4
		length := bytes.Index(b[from-2:], border) // a value may be empty
		if length < 0 {
			return 0, 0, false
		}
		to = max(from-2+length, from)
		if fieldName(b[head:from]) == name {
			return from, to, true
		}
		at = from - 2 + length + 2
	}
	return 0, 0, false
}

// fieldName is the name in the header of a part; empty: it is a file, or has none.
func fieldName(header []byte) string {
	for line := range strings.SplitSeq(string(header), "\r\n") {
		key, value, _ := strings.Cut(line, ":")
		if !strings.EqualFold(strings.TrimSpace(key), "Content-Disposition") {
			continue
		}
		if _, params, err := mime.ParseMediaType(strings.TrimSpace(value)); err == nil && params["filename"] == "" {
			return params["name"]
		}
	}
	return ""
}

func (g *Gateway) tooLarge() *dialect.Failure {
	return &dialect.Failure{Status: http.StatusRequestEntityTooLarge, Code: "request_too_large", NoRetry: true,
		Message: fmt.Sprintf("The request body is larger than %d bytes.", g.o.MaxBody)}
}
