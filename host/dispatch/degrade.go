package dispatch

import (
	"slices"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/sdk/wire"
)

// background says whether a client of responses asks for an answer later: it gets it at once (OTH-20).
func (c *Call) background() bool {
	if c.Dialect != wire.OpenAIResponses {
		return false
	}
	raw, ok := c.Scan.Get("background")
	return ok && string(raw) == "true"
}

// inForeground is an editor that takes the wish for an answer later out of a body, after editor.
func (a *attempt) inForeground(editor *body.Editor) (*body.Editor, error) {
	if !a.r.c.background() {
		return editor, nil
	}
	a.r.t.degrade("background")
	a.r.d.Log.Warn("BACKGROUND_DEGRADE", "provider", a.target.Provider.ID, "model", a.target.Model, "request_id", a.r.c.RequestID)
	if a.way != nil { // its request lacks it
		return editor, nil
	}
	off, err := body.Compile([]wire.Edit{{Op: "set", Path: "background", Value: []byte("false")}})
	if err != nil {
		return nil, err
	}
	return editor.Then(off), nil
}

// foreground is a request without the wish for an answer later.
func foreground(q *neutral.Request) {
	q.Extra = slices.DeleteFunc(q.Extra, func(f neutral.Field) bool { return f.Path == "background" })
}
