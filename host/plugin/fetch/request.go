package fetch

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"github.com/weirgate/weir/host/allow"
)

// request is one fetch on its way; a redirect changes it.
type request struct {
	method  string
	url     *url.URL
	named   map[string]string // headers as the guest wrote them, canonical names
	header  http.Header       // the same with secrets in place
	body    string
	timeout time.Duration
	secrets []string        // values that were placed
	sealed  map[string]bool // headers that hold one
}

// parse reads a request and refuses what no request may have, whatever is granted. Unknown fields are ignored (ABI-1).
func parse(raw []byte) (*request, error) {
	if len(raw) > MaxRequest {
		return nil, fmt.Errorf("%w: the request has %d bytes, at most %d are allowed", ErrTooLarge, len(raw), MaxRequest)
	}
	var in struct {
		Method    string            `json:"method"`
		URL       string            `json:"url"`
		Headers   map[string]string `json:"headers"`
		Body      string            `json:"body"`
		TimeoutMS int64             `json:"timeout_ms"`
	}
	if err := json.Unmarshal(raw, &in); err != nil {
		return nil, fmt.Errorf("%w: the request is not the JSON of http_fetch", ErrInvalid)
	}
	r := &request{method: in.Method, body: in.Body, timeout: MaxTime}
	switch in.Method {
	case "":
		r.method = http.MethodGet
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
	default:
		return nil, fmt.Errorf("%w: the method is not one of GET, HEAD, POST, PUT, PATCH, DELETE", ErrInvalid)
	}
	if in.TimeoutMS < 0 {
		return nil, fmt.Errorf("%w: timeout_ms is below 0", ErrInvalid)
	}
	if in.TimeoutMS > 0 && in.TimeoutMS < MaxTime.Milliseconds() {
		r.timeout = time.Duration(in.TimeoutMS) * time.Millisecond
	}
	if namesSecret(in.URL) || namesSecret(in.Body) {
		return nil, fmt.Errorf("%w: secrets stand in header values only", ErrInvalid)
	}
	u, err := url.Parse(in.URL)
	if err != nil || u.Hostname() == "" {
		return nil, fmt.Errorf("%w: url is not an absolute address", ErrInvalid)
	}
	u.Fragment, u.RawFragment = "", ""
	r.url = u
	return r, r.headers(in.Headers)
}

// ownHeaders are the host's.
var ownHeaders = map[string]bool{
	"Host": true, "Content-Length": true, "Transfer-Encoding": true, "Connection": true, "Keep-Alive": true, "Upgrade": true,
	"Te": true, "Trailer": true, "Expect": true, "Accept-Encoding": true, "Proxy-Authorization": true, "Proxy-Connection": true,
}

func (r *request) headers(given map[string]string) error {
	r.named = map[string]string{"User-Agent": "weir"}
	seen := map[string]bool{}
	for name, value := range given {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case !token(name):
			return fmt.Errorf("%w: a header has no proper name", ErrInvalid)
		case ownHeaders[canonical]:
			return fmt.Errorf("%w: the header %s is the host's own", ErrInvalid, canonical)
		case seen[canonical]:
			return fmt.Errorf("%w: the header %s is given twice", ErrInvalid, canonical)
		case !printable(value):
			return fmt.Errorf("%w: the value of the header %s has a line break or control character", ErrInvalid, canonical)
		}
		seen[canonical] = true
		r.named[canonical] = value
	}
	return nil
}

// fill puts the secrets in place. It comes after the check of the host.
func (r *request) fill(g Grant) error {
	r.header, r.sealed = http.Header{}, map[string]bool{}
	for name, text := range r.named {
		before := len(r.secrets)
		value, err := r.place(text, g)
		if err != nil {
			return err
		}
		if !printable(value) {
			return fmt.Errorf("%w: a secret in the header %s has a line break or control character", ErrInvalid, name)
		}
		r.header[name], r.sealed[name] = []string{value}, len(r.secrets) > before
	}
	return nil
}

// place replaces each {{secret.NAME}} of text. Other braces stay as they are.
func (r *request) place(text string, g Grant) (string, error) {
	var out strings.Builder
	for {
		before, after, found := strings.Cut(text, "{{")
		out.WriteString(before)
		if !found {
			return out.String(), nil
		}
		inner, rest, closed := strings.Cut(after, "}}")
		name, secret := strings.CutPrefix(inner, "secret.")
		switch {
		case !secret || !closed:
			out.WriteString("{{")
			text = after
			continue
		case g.Secret == nil:
			return "", fmt.Errorf("%w: the secret %q is not granted", ErrDenied, name)
		}
		value, granted := g.Secret(name)
		switch {
		case !granted:
			return "", fmt.Errorf("%w: the secret %q is not granted", ErrDenied, name)
		case !value.Set():
			return "", fmt.Errorf("%w: the secret %q has no value; the operator gives one", ErrNotFound, name)
		}
		r.secrets = append(r.secrets, value.Reveal())
		out.WriteString(value.Reveal())
		text = rest
	}
}

// namesSecret says whether text has a place for a secret, in any spelling, also written as part of an address.
func namesSecret(text string) bool {
	for _, open := range []string{"{{", "%7B%7B", "%7b%7b"} {
		for rest := text; ; {
			_, after, found := strings.Cut(rest, open)
			if !found {
				break
			}
			if strings.HasPrefix(strings.TrimLeft(after, " \t\r\n{"), "secret.") {
				return true
			}
			rest = after
		}
	}
	return false
}

// harmless are the headers that another host may see. All others may hold a credential.
var harmless = map[string]bool{
	"Accept": true, "Accept-Language": true, "Content-Type": true, "User-Agent": true, "If-None-Match": true, "If-Modified-Since": true,
}

// move points r at next. What goes to another host carries no credential, and gets none back when a later hop returns.
func (r *request) move(next *url.URL, status int) {
	hostA, portA := allow.Place(r.url)
	hostB, portB := allow.Place(next)
	if hostA != hostB || portA != portB {
		for name := range r.header {
			if !harmless[name] || r.sealed[name] {
				delete(r.header, name)
			}
		}
	}
	r.url = next
	again := status == http.StatusTemporaryRedirect || status == http.StatusPermanentRedirect
	if !again && r.method != http.MethodGet && r.method != http.MethodHead {
		r.method, r.body = http.MethodGet, ""
		delete(r.header, "Content-Type")
	}
}

// token says whether s is the name of a header.
func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c >= 0x7f || strings.IndexByte(`()<>@,;:\"/[]?={}`, c) >= 0 {
			return false
		}
	}
	return s != ""
}

// printable says whether s may stand in a header.
func printable(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' && c != '\t' || c == 0x7f {
			return false
		}
	}
	return true
}
