package dispatch

import (
	"strings"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/sdk/wire"
)

// Trail is what became of one call: its attempts, what was left out and why, and how it ended.
type Trail struct {
	Began     time.Time
	Took      time.Duration
	FirstByte time.Duration // from the beginning to the first byte for the client; 0: none
	Attempts  []Attempt
	Excluded  []Exclusion
	Committed bool
	Cancelled bool // the client left (OV-4)
	Partial   bool // the stream ended with an error
	Cut       bool // a part of the answer is out and the rest will not come: break the connection, so that it does not look whole
	Status    int  // as the client saw it
	Failure   *dialect.Failure
	Unchanged []byte // the upstream's own error body, to be sent as it came (CMB-18)
	Usage     Usage
	Estimated bool          // the client was told tokens that nobody stated (INF-22)
	Waited    time.Duration // for cooldowns, altogether
	Gates     []Gate        // nil unless requestLog.trace is on
	Kept      *kept         // nil unless requestLog.bodies is on
	Restated  string        // RST-7: rule and original status of the last restatement
	Notes     []string      // what became of fields on the way to another dialect (TR-9)

	Degraded   string // what of the request was not done as asked: background (OTH-20), encrypted_state (SCN-16)
	FewerTools string // how many of its tools the latest attempt sent, when it was not all (OTH-22)
	Rescue     string // the model that answered because the accounts of the request's own are out of money (OTH-23)

	Tell []Header // further X-Weir-* headers of a failure

	trace   *trace
	serving catalog.Target
	room    [1]Attempt // for Attempts: most calls need one
}

// Usage are the tokens that the answer stated; negative: not stated (TR-5).
type Usage = neutral.Usage

// Attempt is one dispatch of one target on one connection.
type Attempt struct {
	Provider   string
	Connection string
	Model      string
	At         time.Time
	FirstByte  time.Duration
	Took       time.Duration
	Status     int
	Original   int
	OK         bool
	Left       bool // the client left, or another attempt was quicker: it says nothing about the target
	Told       bool // a part of its answer reached the client
	Verdict    wire.Verdict
	RestatedBy string // plugin/rule
}

// Billed says whether the tokens of the attempt are those of the request: it answered, or at least began to. One that failed unseen
// costs nothing (FLT-16).
func (a *Attempt) Billed() bool { return a.OK || a.Told }

// Exclusion is a target that a gate left out.
type Exclusion struct {
	Target  catalog.Target
	Refusal resilience.Refusal
}

func (t *Trail) exclude(target catalog.Target, r resilience.Refusal) {
	t.Excluded = append(t.Excluded, Exclusion{target, r})
}

// Header is one header of ours, its name without X-Weir-.
type Header struct{ Name, Value string }

func (t *Trail) tell(name, value string) { t.Tell = append(t.Tell, Header{name, value}) }

// Serving is the target whose answer the client got; its Provider is nil before the commit.
func (t *Trail) Serving() catalog.Target { return t.serving }

// Last is the latest attempt, or nil.
func (t *Trail) Last() *Attempt {
	if len(t.Attempts) == 0 {
		return nil
	}
	return &t.Attempts[len(t.Attempts)-1]
}

// degrade adds to what was not done as asked, once.
func (t *Trail) degrade(what string) {
	switch {
	case t.Degraded == "":
		t.Degraded = what
	case !strings.Contains(t.Degraded, what):
		t.Degraded += ", " + what
	}
}

// maxNotes bounds what is told of one call.
const maxNotes = 32

func (t *Trail) note(text string) {
	if len(t.Notes) < maxNotes {
		t.Notes = append(t.Notes, shorten(text, 200))
	}
}
