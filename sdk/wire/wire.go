// Package wire holds the documents that cross the wall between the host and a plugin: manifest, plan, reply,
// restatement and verdict (ABI-2 to ABI-4), and the binary form of events (ABI-5). It owns their names and nothing else: no
// decoding of JSON, no I/O, and no import that a sandboxed guest would have to pay for.
package wire

// Raw is a JSON value kept as it came. Its methods make encoding/json treat it so without importing it here.
type Raw []byte

// MarshalJSON returns the value itself, or null when it is empty.
func (r Raw) MarshalJSON() ([]byte, error) {
	if len(r) == 0 {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON keeps a copy of b.
func (r *Raw) UnmarshalJSON(b []byte) error {
	*r = append((*r)[:0], b...)
	return nil
}

// Auth says how an account authenticates (ABI-2.2).
type Auth string

// The ways to authenticate.
const (
	AuthAPIKey Auth = "api_key"
	AuthOAuth  Auth = "oauth"
	AuthLocal  Auth = "local"
)

// Dialect names a wire format of a provider's generation endpoint (ABI-3).
type Dialect string

// The wire formats. Raw means that the host looks at nothing but the status.
const (
	OpenAIChat        Dialect = "openai_chat"
	OpenAIResponses   Dialect = "openai_responses"
	AnthropicMessages Dialect = "anthropic_messages"
	GeminiGenerate    Dialect = "gemini_generate"
	RawDialect        Dialect = "raw"
)

// Source says where a failure was seen (ABI-4).
type Source string

// The places where a failure is seen.
const (
	SourceHTTP      Source = "http"
	SourceStream    Source = "stream_event"
	SourceTransport Source = "transport"
)

// Transport codes: the error.code of a reply with Status 0 (ABI-4).
const (
	TransportTimeout = "timeout"
	TransportConnect = "connect"
	TransportReset   = "reset"
	TransportTLS     = "tls"
	TransportDNS     = "dns"
	TransportEOF     = "eof"
)

// Op numbers an operation of a guest (ABI-1).
type Op int32

// The operations.
const (
	OpDescribe  Op = 1
	OpConfigure Op = 2
	OpPlan      Op = 10
	OpRequest   Op = 11
	OpResponse  Op = 12
	OpEvent     Op = 13
	OpEnd       Op = 14
	OpRespond   Op = 15
	OpRestate   Op = 20
	OpClassify  Op = 30
)

// String returns the name that hooks, examples and logs use.
func (o Op) String() string {
	switch o {
	case OpDescribe:
		return "describe"
	case OpConfigure:
		return "configure"
	case OpPlan:
		return "plan"
	case OpRequest:
		return "on_request"
	case OpResponse:
		return "on_response"
	case OpEvent:
		return "on_event"
	case OpEnd:
		return "on_end"
	case OpRespond:
		return "respond"
	case OpRestate:
		return "restate"
	case OpClassify:
		return "classify"
	}
	return "op_unknown"
}

// Reply is what the rules and hooks see of an upstream failure (ABI-4). Headers have lower-case names and only those
// that the plugin declared.
type Reply struct {
	Provider       string            `json:"provider"`
	ConnectionID   string            `json:"connection_id"`
	Auth           Auth              `json:"auth,omitempty"` // how the account authenticates (condition auth of ABI-2.1)
	Model          string            `json:"model"`
	Endpoint       string            `json:"endpoint"`
	Stream         bool              `json:"stream"`
	Attempt        int               `json:"attempt"`
	NowMS          int64             `json:"now_ms"`
	Source         Source            `json:"source"`
	Status         int               `json:"status"`
	OriginalStatus int               `json:"original_status"`
	Headers        map[string]string `json:"headers"`
	Error          ErrorFacts        `json:"error"`
	ElapsedMS      int64             `json:"elapsed_ms"`
	BytesSent      int64             `json:"bytes_sent"`
	Config         Raw               `json:"config,omitempty"`
}

// ErrorFacts is the structured error that the host found in a body.
type ErrorFacts struct {
	Code          string `json:"code"`
	Type          string `json:"type"`
	Message       string `json:"message"`
	Text          string `json:"text"`
	TextTruncated bool   `json:"text_truncated"`
	TextBytes     int    `json:"text_bytes"`
}

// TerminalState is a connection state that time does not heal (COOL-50).
type TerminalState string

// The terminal states.
const (
	Banned           TerminalState = "banned"
	Expired          TerminalState = "expired"
	CreditsExhausted TerminalState = "credits_exhausted"
)
