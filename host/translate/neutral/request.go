package neutral

import "github.com/weirgate/weir/sdk/wire"

// Role says who speaks in a turn.
type Role uint8

// The roles. System and Developer turns are those in the midst of a conversation; leading ones are Request.System (TR-11).
const (
	User Role = iota
	Model
	System
	Developer
)

// Request is one request for generation in no dialect in particular (TR-2).
type Request struct {
	From   wire.Dialect // of the body that was read
	Model  string       // as the client named it
	Stream bool
	// UsageInStream is stream_options.include_usage of chat; the other dialects always state usage.
	UsageInStream bool

	// System is what the dialect keeps apart from the turns: system, instructions, systemInstruction. Chat has no such field;
	// there it is in the first turns. Leading gives both.
	System      []Part
	SystemPlain bool // it was one bare text
	Turns       []Turn

	Tools       []Tool
	Choice      Choice
	ParallelOff bool // no two calls in one turn

	MaxOutput   *int64
	LimitName   string // the member that gave MaxOutput, where a dialect has two
	Temperature Number
	TopP        Number
	TopK        Number
	Seed        Number
	Frequency   Number // frequency_penalty
	Presence    Number // presence_penalty
	Stop        []string
	StopPlain   bool // it was one bare text

	Reasoning Reasoning
	Format    Format

	CacheKey string // prompt_cache_key
	User     string // user, safety_identifier, metadata.user_id

	// Extra holds the members that the neutral form has no word for, in their order, with the path that names them in an error:
	// TR-9 says of each whether it is dropped, emulated or refused towards another dialect.
	Extra []Field
}

// Number is a JSON number with its digits as the client wrote them; empty: not given (TR-14).
type Number string

// Field is a member of a body that the neutral form has no word for.
type Field struct {
	Path string // messages[3].cache_control
	Raw  []byte // the JSON value as it came
}

// Turn is what one side says before the other one speaks.
type Turn struct {
	Role  Role
	Parts []Part
	Plain bool    // its content was one bare text
	Name  string  // the speaker's name, which chat has
	Path  string  // where it stood, for errors (TR-31)
	Extra []Field // as of Request
}

// Kind says what a part holds.
type Kind uint8

// The kinds of parts.
const (
	Text Kind = iota
	Image
	Document
	Audio
	Call    // the model calls a tool
	Result  // what the tool said
	Thought // reasoning, shown or not
	Refusal // text by which the model declines (TR-23)
	Unknown // only Raw; passes within its dialect, is dropped and counted towards another (TR-29)
)

// Part is one piece of a turn or of an answer. Which fields mean something follows from Kind.
type Part struct {
	Kind Kind
	Text string // of Text, Thought, Refusal

	// Media of Image, Document, Audio: inline data as base64, or an address.
	Media Media
	// Call of Call.
	Call ToolCall
	// Result of Result.
	Result ToolResult
	// Signature of Thought, and of a Call of gemini (thoughtSignature): opaque, and of use only where it came from (TR-18).
	Signature Signature

	CacheMark []byte // cache_control as it came; only messages has it (TR-25)
	Type      string // the dialect's own word for the part, for errors and counts
	Path      string // where it stood, for errors (TR-31)
	Raw       []byte // of Unknown: the whole part as it came
	Extra     []Field
}

// Media is data beside text.
type Media struct {
	Type   string // MIME
	Base64 string
	URL    string
	Name   string // file name
	Detail string // low, high, auto
}

// ToolCall is a model's call of a tool.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is the text of a JSON object with its key order and digits kept, or any text when Custom (TR-14).
	Arguments string
	Custom    bool // a free-form tool
}

// ToolResult is what a tool said.
type ToolResult struct {
	ID     string // of the call
	Name   string // of the tool, where the dialect says it
	Parts  []Part // text and media (TR-15)
	Plain  bool   // its content was one bare text
	Object []byte // the JSON object as it came, where the dialect gives one (gemini); Parts has what it says
	Error  bool
	Custom bool
}

// Signature is what a provider wants back byte for byte with a thought: signature, encrypted_content, thoughtSignature,
// redacted_thinking.data.
type Signature struct {
	Value    string
	Redacted bool   // the thought is in the signature alone
	Family   string // provider and model family it belongs to; empty: as the upstream sent it (TR-18)
}

// Tool is a tool that the model may call.
type Tool struct {
	Name        string
	Description string
	Schema      []byte // JSON schema as it came; nil: none (TR-12)
	Strict      *bool
	Custom      bool   // free-form
	Format      []byte // of a custom tool
	SchemaName  string // the member that gave Schema, where a dialect has two
	Hosted      string // a tool that the provider runs itself, by its type; Raw holds it (TR-9)
	Raw         []byte
	CacheMark   []byte
	Path        string
	Extra       []Field
}

// ChoiceMode says whether the model must call a tool.
type ChoiceMode uint8

// The modes; ChoiceUnset is the dialect's default.
const (
	ChoiceUnset ChoiceMode = iota
	ChoiceAuto
	ChoiceNone
	ChoiceAny
	ChoiceNamed
)

// Choice is the tool choice. Names has one name for ChoiceNamed; gemini may allow several with ChoiceAny.
type Choice struct {
	Mode  ChoiceMode
	Names []string
}

// Reasoning is how much the model is to think and whether that is shown (TR-17).
type Reasoning struct {
	Effort   string // none, minimal, low, medium, high, xhigh, max; empty: not said
	Budget   *int64 // tokens; -1: the model decides
	Off      bool   // thinking.type disabled
	Adaptive bool
	Show     *bool
	Summary  string // of responses: auto, concise, detailed
}

// Format asks for structured output.
type Format struct {
	Kind   FormatKind
	Name   string
	Schema []byte
	Old    []byte // the schema as it came, where the dialect has an older form of its own
	Strict *bool
}

// FormatKind is the kind of structured output.
type FormatKind uint8

// The kinds; FormatText is plain text.
const (
	FormatText FormatKind = iota
	FormatJSON
	FormatSchema
)

// Leading returns what is said before the conversation begins, and the turns behind it: System and the first turns of the roles
// System and Developer (TR-11).
func (r *Request) Leading() (system []Part, rest []Turn) {
	system, rest = r.System, r.Turns
	for len(rest) > 0 && (rest[0].Role == System || rest[0].Role == Developer) {
		system = append(system[:len(system):len(system)], rest[0].Parts...)
		rest = rest[1:]
	}
	return system, rest
}
