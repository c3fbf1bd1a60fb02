package dialect

import (
	"net/http"
	"time"

	"github.com/weirgate/weir/sdk/wire"
)

// Failure is what a client is told when a request cannot be answered. Type and Code that are set win over those of the
// status (INF-37); the facts are written in the form of the client's dialect.
type Failure struct {
	Status     int
	Type       string
	Code       string
	Message    string
	RetryAfter time.Duration // 0: no word about it
	NoRetry    bool          // repeating does not help: x-should-retry false (INF-43)
	Facts      []Fact        // further fields, in order
	RequestID  string
}

// Fact is one further field of an error body: model, reset_seconds, diagnostics.
type Fact struct {
	Name  string
	Value any
}

// WithDefaults fills Type and Code from the status as OV-7 and INF-31 say for chat and responses.
func (f Failure) WithDefaults() Failure {
	typ, code := chatWords(f.Status)
	if f.Type == "" {
		f.Type = typ
	}
	if f.Code == "" {
		f.Code = code
	}
	return f
}

// StatusFor is the status that goes over the wire: 529 is known on messages routes only (INF-31).
func StatusFor(d wire.Dialect, status int) int {
	if status == 529 && d != wire.AnthropicMessages {
		return http.StatusServiceUnavailable
	}
	return status
}

// chatWords is the chat and responses column of INF-31.
func chatWords(status int) (typ, code string) {
	switch status {
	case 401:
		return "invalid_request_error", "invalid_api_key"
	case 402:
		return "insufficient_quota", "insufficient_quota"
	case 404:
		return "invalid_request_error", "model_not_found"
	case 429:
		return "requests", "rate_limit_exceeded"
	case 500:
		return "server_error", ""
	case 502:
		return "server_error", "bad_gateway"
	case 503, 529:
		return "server_error", "server_is_overloaded"
	case 504:
		return "server_error", "timeout"
	}
	if status >= 500 {
		return "server_error", ""
	}
	return "invalid_request_error", ""
}

// messagesType is the messages column of INF-31.
func messagesType(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 402:
		return "billing_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 503, 529:
		return "overloaded_error"
	case 504:
		return "timeout_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

// geminiStatus is the gemini column of INF-31.
func geminiStatus(status int) string {
	switch status {
	case 401:
		return "UNAUTHENTICATED"
	case 402:
		return "FAILED_PRECONDITION"
	case 403:
		return "PERMISSION_DENIED"
	case 404:
		return "NOT_FOUND"
	case 429:
		return "RESOURCE_EXHAUSTED"
	case 500:
		return "INTERNAL"
	case 502, 503, 529:
		return "UNAVAILABLE"
	case 504:
		return "DEADLINE_EXCEEDED"
	}
	if status >= 500 {
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}
