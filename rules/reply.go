package rules

import (
	"time"

	"github.com/weirgate/weir/sdk/wire"
)

// MaxText is how much of a body is examined (RST-10, CLS-20).
const MaxText = 65536

// Reply is a failed upstream answer as the rules see it. Read fills Facts and Hint.
type Reply struct {
	Provider   string // canonical id, lower case
	Connection string
	Auth       wire.Auth
	Model      string
	Endpoint   string
	Stream     bool // the client asked for a stream
	Attempt    int
	Source     wire.Source
	Status     int                 // as restated by now
	Original   int                 // as it came; 0: no HTTP answer
	Header     map[string][]string // any letter case of names
	Body       []byte              // the first MaxText bytes
	BodyBytes  int                 // how long it was in all, as far as known
	Now        time.Time
	Elapsed    time.Duration
	BytesSent  int64
	Restated   string // rule id of the restatement, empty: none
	Facts      Facts
	Hint       Hint
	Operator   Operator // asked between the phases of the plugins; nil: nobody
}

// Operator is what an operator says about failed answers: a rule after the phase guard and before all plugins of the phase
// normal, a default after these and before the phase late (CLS-7).
type Operator interface {
	Rule(r *Reply) (wire.Verdict, bool)
	Default(r *Reply) (wire.Verdict, bool)
}

// Facts is the structured error that was found in a body.
type Facts struct {
	Message string
	Code    string
	Type    string
	Text    string // the whole body as text: valid UTF-8, bad bytes replaced
	Decoded string // the texts of the body's JSON strings, for markers that are escaped in the body; empty when equal to Text
	HasBody bool
	Partial bool   // the answer came under a good status: of its text only Words are about the failure
	Words   string // what the failure in a good answer says itself, empty when it holds none
}

// Hint is when the answer said to come back.
type Hint struct {
	OK     bool
	Wait   time.Duration
	Source string // header:retry-after, json:error.details, text, ...
}
