package neutral

import "fmt"

// Fault is what is wrong with a client's body (TR-31): it is answered with 400, and Path becomes the error's param.
type Fault struct {
	Path    string // messages[3].content[0].type
	Message string
}

// Error names the path and what is wrong there.
func (f *Fault) Error() string {
	if f.Path == "" {
		return f.Message
	}
	return f.Path + ": " + f.Message
}

// Faultf makes a Fault.
func Faultf(path, format string, args ...any) *Fault {
	return &Fault{Path: path, Message: fmt.Sprintf(format, args...)}
}

// Bounds of a body (TR-31).
const (
	MaxDepth = 64
	MaxParts = 20_000
)

// Note is what became of a field on the way to another dialect: for the trail and the ledger, never an error.
type Note struct {
	Field string // path or name, without any content: it is written to logs
	What  string // dropped, capped at 1, renamed, ...
}

// Target is what a writer of requests has to know of where the request goes.
type Target struct {
	Model     string // upstream's name
	Family    string // provider and model family, by which signatures know where they belong (TR-18)
	MaxOutput int64  // output limit of the model, 0: not known (TR-16)
	Thinks    bool   // the model reasons; false: reasoning is dropped (TR-17)
	NoSchema  bool   // no structured output: one forced tool stands in for it (TR-22)
	Reduced   bool   // gemini upstreams that know only the reduced schema (TR-12)
	Marks     bool   // set cache marks towards messages (TR-25)
	Strict    bool   // x-weir-strict: even harmless drops are faults (TR-9)
}

// Told is what a writer of answers has to know of the request that is answered.
type Told struct {
	ID      string // the gateway's own, in the dialect's form (TR-8)
	Model   string // as the client named it (TR-8)
	Created int64  // Unix seconds
	Usage   bool   // chat: send the chunk with usage (INF-21)
	Prompt  int64  // estimated tokens of the prompt, for what the upstream leaves out (INF-22)
	Request *Request
}

// Codec is one dialect: what each of the four packages beside this one offers. All functions are pure and safe for concurrent
// use; the readers and writers of a stream belong to one stream.
type Codec struct {
	// ReadRequest reads a client's body. A body that is not what the dialect says is a *Fault.
	ReadRequest func(body []byte) (*Request, error)
	// WriteRequest appends r as a body for t. What was dropped or bent is in the notes; what cannot be is a *Fault (TR-9).
	WriteRequest func(dst []byte, r *Request, t Target) ([]byte, []Note, error)
	// ReadAnswer reads an upstream's whole answer.
	ReadAnswer func(body []byte) (*Answer, error)
	// WriteAnswer appends a whole answer for a client.
	WriteAnswer func(dst []byte, a *Answer, t Told) []byte
	NewReader   func() StreamReader
	NewWriter   func(t Told) StreamWriter
}
