package manage

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/host/document"
	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/store"
)

// Problem is an answer that refuses (API-2, OBJ-3). Handlers return one as their error; its status, type and code are
// chosen in this file only.
type Problem struct {
	Status     int
	Type, Code string
	Message    string
	Details    []Detail
	RetryAfter time.Duration // 0: no header
}

// Detail is what is wrong with one field of a request.
type Detail struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Error is the message.
func (p *Problem) Error() string { return p.Message }

// problem makes a Problem with the type and code that OV-7 gives a status.
func problem(status int, format string, args ...any) *Problem {
	p := &Problem{Status: status, Message: fmt.Sprintf(format, args...)}
	switch status {
	case http.StatusBadRequest:
		p.Type, p.Code = "invalid_request_error", "bad_request"
	case http.StatusUnauthorized:
		p.Type, p.Code = "authentication_error", "invalid_api_key"
	case http.StatusForbidden:
		p.Type, p.Code = "permission_error", "insufficient_quota"
	case http.StatusNotFound:
		p.Type, p.Code = "invalid_request_error", "not_found"
	case http.StatusMethodNotAllowed:
		p.Type, p.Code = "invalid_request_error", "method_not_allowed"
	case http.StatusConflict:
		p.Type, p.Code = "invalid_request_error", "conflict"
	case http.StatusRequestEntityTooLarge:
		p.Type, p.Code = "invalid_request_error", "request_too_large"
	case http.StatusTooManyRequests:
		p.Type, p.Code = "rate_limit_error", "rate_limit_exceeded"
	case http.StatusServiceUnavailable:
		p.Type, p.Code = "server_error", "service_unavailable"
	case http.StatusInsufficientStorage:
		p.Type, p.Code = "server_error", "store_degraded"
	default:
		p.Type, p.Code = "server_error", "internal_server_error"
	}
	return p
}

func (p *Problem) coded(code string) *Problem {
	p.Code = code
	return p
}

// notFound names what there is none of.
func notFound(what, id string) *Problem {
	return problem(http.StatusNotFound, "There is no %s %q.", what, id)
}

// invalidJSON is the answer to a body that is not JSON, word for word that of API-2.
func invalidJSON() *Problem {
	p := problem(http.StatusBadRequest, "Invalid request")
	p.Details = []Detail{{"body", "Invalid JSON body"}}
	return p
}

// invalid lists the fields that are wrong (API-2).
func invalid(details ...Detail) *Problem {
	p := problem(http.StatusBadRequest, "Invalid request")
	p.Details = details
	return p
}

// faulty lists the faults of a decoded body. Several faults of one field become one entry.
func faulty(faults []document.Fault) *Problem {
	p := invalid()
	for _, f := range faults {
		field := f.Path
		if field == "" {
			field = "body"
		}
		if n := len(p.Details); n > 0 && p.Details[n-1].Field == field {
			p.Details[n-1].Message += "; " + f.Message
			continue
		}
		p.Details = append(p.Details, Detail{field, f.Message})
	}
	return p
}

// asProblem gives every error its answer. What nobody foresaw is a 500 whose text says nothing about the inside.
func asProblem(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	if f, ok := errors.AsType[document.Fault](err); ok {
		return faulty([]document.Fault{f})
	}
	if p, ok := errors.AsType[*plugin.Problem](err); ok {
		return problem(p.Status, "%s", sentence(p.Message)).coded(p.Code)
	}
	tooLarge, isTooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case isTooLarge:
		return problem(http.StatusRequestEntityTooLarge, "The body is larger than %d bytes.", tooLarge.Limit)
	case errors.Is(err, store.ErrConflict):
		return problem(http.StatusConflict, "The object was changed meanwhile; read it again and repeat the change.")
	case errors.Is(err, store.ErrDegraded):
		return problem(http.StatusInsufficientStorage,
			"The store does not write at the moment (disk full or failing), so nothing was changed; free some space and repeat.")
	case errors.Is(err, store.ErrTooLarge):
		return problem(http.StatusRequestEntityTooLarge, "The object is larger than the store takes (1 MiB).")
	case errors.Is(err, store.ErrClosed):
		return problem(http.StatusServiceUnavailable, "The gateway is stopping.")
	}
	return problem(http.StatusInternalServerError, "Unexpected failure; the log has a line with this request's id.")
}

// sentence ends with a point, as the other messages do.
func sentence(s string) string { return strings.TrimSuffix(s, ".") + "." }

// write sends the problem. A 500 has the short shape of API-2.
func (p *Problem) write(w http.ResponseWriter) {
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int((p.RetryAfter+time.Second-1)/time.Second)))
	}
	if p.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	if p.Status == http.StatusInternalServerError {
		writeJSON(w, p.Status, map[string]string{"error": p.Message})
		return
	}
	writeJSON(w, p.Status, errorAnswer{errorBody{p.Message, p.Type, p.Code, p.Details}})
}

type errorAnswer struct {
	Error errorBody `json:"error"`
}

type errorBody struct {
	Message string   `json:"message"`
	Type    string   `json:"type"`
	Code    string   `json:"code"`
	Details []Detail `json:"details,omitempty"`
}

// writeJSON sends v. Text is not escaped for HTML: answers are never read as a page (nosniff, application/json).
func writeJSON(w http.ResponseWriter, status int, v any) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		status = http.StatusInternalServerError
		b.Reset()
		b.WriteString(`{"error":"the answer could not be encoded"}` + "\n")
	}
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	w.WriteHeader(status)
	_, _ = w.Write([]byte(b.String())) // a client that went away is no fault of ours
}
