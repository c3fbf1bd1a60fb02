package wire

// PlanQuery is the input of op plan (ABI-3).
type PlanQuery struct {
	Provider      string         `json:"provider"`
	Connection    PlanConnection `json:"connection"`
	Model         string         `json:"model"`
	UpstreamModel string         `json:"upstream_model"`
	Endpoint      string         `json:"endpoint"`
	Stream        bool           `json:"stream"`
	ClientDialect Dialect        `json:"client_dialect"`
	Config        Raw            `json:"config,omitempty"`
}

// PlanConnection is what a guest learns about a connection: names of secrets, never values.
type PlanConnection struct {
	ID       string            `json:"id"`
	Revision uint64            `json:"revision"`
	BaseURL  string            `json:"base_url"`
	Auth     Auth              `json:"auth"`
	Data     map[string]string `json:"data,omitempty"`
	Secrets  []string          `json:"secrets,omitempty"`
}

// Plan says how to call a provider (ABI-3). It is cached, so it holds templates in place of secrets.
type Plan struct {
	Method       string            `json:"method,omitempty"`
	URL          string            `json:"url,omitempty"`
	Headers      map[string]string `json:"headers,omitempty"`
	Dialect      Dialect           `json:"dialect,omitempty"`
	Body         []Edit            `json:"body,omitempty"`
	BodyMaxBytes int64             `json:"body_max_bytes,omitempty"`
	Response     PlanResponse      `json:"response,omitzero"`
	Error        *PlanError        `json:"error,omitempty"`
	Usage        *PlanUsage        `json:"usage,omitempty"`
	Timeouts     PlanTimeouts      `json:"timeouts,omitzero"`
	Upstream     string            `json:"upstream,omitempty"` // "none": op respond answers
	Hooks        []string          `json:"hooks,omitempty"`
	TTLMS        int64             `json:"ttl_ms,omitempty"`
	Sign         Raw               `json:"sign,omitempty"` // a later minor; refused as unsupported
}

// Edit is one step of a plan's body table, in order.
type Edit struct {
	Op    string   `json:"op"` // set, set_default, delete, rename, clamp
	Path  string   `json:"path"`
	Value Raw      `json:"value,omitempty"`
	To    string   `json:"to,omitempty"`
	Min   *float64 `json:"min,omitempty"`
	Max   *float64 `json:"max,omitempty"`
}

// PlanResponse says how the answer is treated.
type PlanResponse struct {
	Mode         string   `json:"mode,omitempty"` // passthrough (default), buffer
	StripHeaders []string `json:"strip_headers,omitempty"`
	Native       bool     `json:"native,omitempty"` // a normal end without content is an answer (STM-61)
	Events       string   `json:"events,omitempty"` // passthrough (default), hook
	Stateful     bool     `json:"stateful,omitempty"`
	Frames       string   `json:"frames,omitempty"` // sse (default); others are a later minor
}

// PlanError says where a provider puts its error fields.
type PlanError struct {
	TextPaths []string       `json:"text_paths,omitempty"`
	CodePaths []string       `json:"code_paths,omitempty"`
	TypePaths []string       `json:"type_paths,omitempty"`
	InStream  *PlanErrorInSt `json:"in_stream,omitempty"`
}

// PlanErrorInSt names the event and path of an error inside a stream.
type PlanErrorInSt struct {
	Event string `json:"event,omitempty"`
	Path  string `json:"path,omitempty"`
}

// PlanUsage names the paths of token counts in an answer.
type PlanUsage struct {
	InputTokens  string `json:"input_tokens,omitempty"`
	OutputTokens string `json:"output_tokens,omitempty"`
}

// PlanTimeouts lower the host's own; 0 means no word. Milliseconds.
type PlanTimeouts struct {
	ConnectMS   int64 `json:"connect_ms,omitempty"`
	FirstByteMS int64 `json:"first_byte_ms,omitempty"`
	IdleMS      int64 `json:"idle_ms,omitempty"`
}

// RequestFacts is the input of on_request and respond.
type RequestFacts struct {
	Provider      string         `json:"provider"`
	Connection    PlanConnection `json:"connection"`
	Model         string         `json:"model"`
	UpstreamModel string         `json:"upstream_model"`
	Endpoint      string         `json:"endpoint"`
	Stream        bool           `json:"stream"`
	MessageCount  int            `json:"message_count"`
	BodyBytes     int            `json:"body_bytes"`
	Fields        map[string]Raw `json:"fields,omitempty"`
	NowMS         int64          `json:"now_ms"`
}

// Answer is the output of respond: a plain body, or events.
type Answer struct {
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    Raw               `json:"body,omitempty"` // any JSON value; a JSON string is sent as its text
	Events  []AnswerEvent     `json:"events,omitempty"`
}

// AnswerEvent is one server-sent event of an Answer, sent after a pause.
type AnswerEvent struct {
	DelayMS int64  `json:"delay_ms,omitempty"`
	Event   string `json:"event,omitempty"`
	Data    string `json:"data"`
}
