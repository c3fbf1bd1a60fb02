package upstream

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/textproto"
	"strings"
)

// withheld are the client's headers that no template resolves and no upstream sees: credentials, cookies, hop-by-hop
// headers, and what Weir itself reads (INF-11, SEC-6, AFF-8).
func withheld(canonical string) bool {
	switch canonical {
	case "Authorization", "Proxy-Authorization", "X-Api-Key", "X-Goog-Api-Key", "Cookie", "Set-Cookie",
		"Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade",
		"Host", "Content-Length", "Content-Encoding", "Expect", "X-Codex-Session-Id",
		"X-Claude-Code-Session-Id", "Session-Id", "X-Session-Id", "X-Session-Affinity":
		return true
	}
	return strings.HasPrefix(canonical, "X-Weir-") || strings.HasPrefix(canonical, "X-Omniroute-")
}

// forwarded are the client's headers that go unchanged to an upstream of the same dialect (INF-12).
func forwarded(canonical string) bool {
	switch canonical {
	case "Anthropic-Version", "Anthropic-Beta", "Openai-Beta", "X-Goog-Api-Client", "Originator", "Session-Id", "Thread-Id",
		"X-Client-Request-Id":
		return true
	}
	return strings.HasPrefix(canonical, "X-Codex-") && canonical != "X-Codex-Session-Id"
}

func (m Moment) header(name string) (string, bool) {
	canonical := textproto.CanonicalMIMEHeaderKey(name)
	if withheld(canonical) {
		return "", false
	}
	v := m.Header[canonical]
	if len(v) == 0 {
		return "", false
	}
	return strings.Join(v, ","), true // INF-12
}

// addForwarded copies the client's headers of INF-12 into h, which stays nil when there are none; base is what the plan
// set, which wins.
func addForwarded(h, base http.Header, client map[string][]string) http.Header {
	for name, vv := range client {
		if !forwarded(name) || len(vv) == 0 || len(base[name]) > 0 {
			continue
		}
		if h == nil {
			h = make(http.Header, len(base)+4)
			maps.Copy(h, base)
		}
		h[name] = []string{strings.Join(vv, ",")}
	}
	return h
}

// ownHeader are the headers of a request that belong to the connection: the host sets them, or nobody does.
func ownHeader(canonical string) bool {
	switch canonical {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Upgrade", "Expect":
		return true
	}
	return false
}

// ErrEdits: what a hook wants to add to a request or an answer cannot be sent.
var ErrEdits = errors.New("the hook's answer cannot be used")

// RequestHeader checks the headers that on_request adds: as those of plans, but literal. Nothing is filled in, so a place for a
// secret is a mistake (ABI-3). The error wraps ErrEdits.
func RequestHeader(from map[string]string) (http.Header, error) { return hookHeader(from, ownHeader) }

// ResponseHeader checks the headers that on_response adds to an answer: none that AnswerHeader keeps back. The error wraps
// ErrEdits.
func ResponseHeader(from map[string]string) (http.Header, error) {
	return hookHeader(from, func(canonical string) bool { return canonical == "Content-Encoding" || dropAnswerHeader(canonical) })
}

func hookHeader(from map[string]string, own func(canonical string) bool) (http.Header, error) {
	if len(from) == 0 {
		return nil, nil
	}
	h := make(http.Header, len(from))
	for name, value := range from {
		canonical := textproto.CanonicalMIMEHeaderKey(name)
		switch {
		case own(canonical):
			return nil, fmt.Errorf("%w: header %s is the host's own", ErrEdits, canonical)
		case strings.Contains(value, "{{"):
			return nil, fmt.Errorf("%w: the value of header %s has a place to fill in; only plans have those", ErrEdits, canonical)
		}
		if err := setHeader(h, canonical, value); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrEdits, err)
		}
	}
	return h, nil
}

// AnswerHeader is what of an upstream's head is for the client: all but hop-by-hop headers, those that Connection names too,
// cookies, permissions for web pages, the server's name, and what Weir sets itself. The map is the caller's; the values are
// shared and read only.
func AnswerHeader(from http.Header) http.Header {
	h := make(http.Header, len(from)+4)
	for name, vv := range from {
		if !dropAnswerHeader(name) {
			h[name] = vv
		}
	}
	for _, names := range from["Connection"] {
		for name := range strings.SplitSeq(names, ",") {
			delete(h, textproto.CanonicalMIMEHeaderKey(strings.TrimSpace(name)))
		}
	}
	return h
}

func dropAnswerHeader(canonical string) bool {
	switch canonical {
	case "Connection", "Proxy-Connection", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Proxy-Authenticate",
		"Set-Cookie", "Set-Cookie2", "Server", "Alt-Svc", "Content-Length", "Date", "X-Request-Id", "Strict-Transport-Security",
		"Clear-Site-Data", "Nel", "Report-To":
		return true
	}
	for _, prefix := range [...]string{"X-Weir-", "X-Omniroute-", "Access-Control-"} {
		if strings.HasPrefix(canonical, prefix) {
			return true
		}
	}
	return false
}
