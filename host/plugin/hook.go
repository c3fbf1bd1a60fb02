package plugin

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
)

// hookInput is the input of restate and classify (ABI-4): what needs declares of the reply, nothing more.
func hookInput(r *rules.Reply, needs wire.Needs, config wire.Raw, now time.Time) []byte {
	in := wire.Reply{
		Provider: r.Provider, ConnectionID: r.Connection, Model: r.Model, Endpoint: r.Endpoint, Stream: r.Stream,
		Attempt: r.Attempt, NowMS: now.UnixMilli(), Source: r.Source, Status: r.Status, OriginalStatus: r.Original,
		Headers: map[string]string{}, ElapsedMS: r.Elapsed.Milliseconds(), BytesSent: r.BytesSent, Config: config,
		Error: wire.ErrorFacts{Code: r.Facts.Code, Type: r.Facts.Type, Message: r.Facts.Message, TextBytes: r.BodyBytes},
	}
	for name, values := range r.Header {
		if name = strings.ToLower(name); rules.Visible(needs, name) {
			in.Headers[name] = strings.Join(values, ", ")
		}
	}
	text := r.Facts.Text
	if most := rules.TextBytes(needs); len(text) > most {
		text = strings.ToValidUTF8(text[:most], "")
	}
	in.Error.Text = text
	in.Error.TextTruncated = len(text) < r.BodyBytes
	b, err := json.Marshal(in)
	if err != nil { // config is JSON that was checked at load, so this cannot be
		return nil
	}
	return b
}

// replyOf is the reply that an example describes: hookInput backwards.
func replyOf(input []byte, now time.Time) (*rules.Reply, error) {
	var in wire.Reply
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, err
	}
	if in.NowMS == 0 {
		in.NowMS = now.UnixMilli()
	}
	return rules.FromWire(in), nil
}
