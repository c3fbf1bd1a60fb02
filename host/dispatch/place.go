package dispatch

import (
	"bytes"
	"strconv"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/sdk/wire"
)

// numbering is what a client of responses was told of its stream so far: its events are numbered, and the last one names the whole
// response again (INF-21), also when that is a failure (INF-34).
type numbering struct {
	id   string
	next int64 // number of the next event
}

var (
	sequenceName = []byte(`"sequence_number":`)
	createdName  = []byte("response.created")
)

// note learns from a run that is being sent.
func (t *numbering) note(run []byte) {
	if t.id == "" && bytes.Contains(run, createdName) {
		upstream.Events(run, func(e upstream.Event) bool {
			t.id = gjson.GetBytes(e.Data, "response.id").Str
			return t.id == ""
		})
	}
	i := bytes.LastIndex(run, sequenceName)
	if i < 0 {
		return
	}
	digits := bytes.TrimLeft(run[i+len(sequenceName):], " ")
	n := 0
	for n < len(digits) && n < 18 && digits[n] >= '0' && digits[n] <= '9' {
		n++
	}
	if last, err := strconv.ParseInt(string(digits[:n]), 10, 64); err == nil {
		t.next = last + 1
	}
}

// place is where in a stream its failure is told.
func (t *numbering) place(r *run) dialect.Place {
	p := placeOf(r.c, r.t)
	p.Sequence = t.next
	if t.id != "" {
		p.ID = t.id
	}
	return p
}

// placeOf is the place of a failure before any event was sent.
func placeOf(c *Call, t *Trail) dialect.Place {
	return dialect.Place{ID: toldID(c), Model: c.Model, Created: t.Began.Unix()}
}

// numbered says whether the events of a client's dialect are numbered.
func numbered(d wire.Dialect) bool { return d == wire.OpenAIResponses }
