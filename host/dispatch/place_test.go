package dispatch_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weirgate/weir/sdk/wire"
)

// INF-21, INF-34: a responses stream that fails goes on with the numbers of its events and ends with the whole response, by the id that
// the client was told, in its own dialect and in a translated one.
func TestFailedResponsesAreNumbered(t *testing.T) {
	ask := `{"model":"acme/large","input":"hi","stream":true}`
	own := []string{
		"event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"resp_up\",\"model\":\"up\",\"output\":[]}}",
		"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":1,\"output_index\":0,\"content_index\":0,\"delta\":\"hi\"}",
	}
	for name, b := range map[string]*bench{
		"own":        newBench(t).speaks(wire.OpenAIResponses, "/v1/responses", "/responses").with("a", streams(own...)),
		"translated": newBench(t).messages().with("a", streams(start, opened, delta)),
	} {
		c, _ := b.ask(wire.OpenAIResponses, "/v1/responses", ask, true)
		next, id, ends := int64(0), "", 0
		for block := range strings.SplitSeq(strings.TrimSpace(c.body.String()), "\n\n") {
			_, data, _ := strings.Cut(block, "data: ")
			var e struct {
				Type     string
				Sequence *int64 `json:"sequence_number"`
				Response *struct {
					ID, Object, Status, Model string
					Output                    []any
				}
			}
			if err := json.Unmarshal([]byte(data), &e); err != nil || e.Sequence == nil || *e.Sequence != next {
				t.Fatalf("%s: event %d: %v %s", name, next, err, data)
			}
			next++
			switch e.Type {
			case "response.created":
				id = e.Response.ID
			case "response.failed":
				if ends++; e.Response.ID != id || id == "" || e.Response.Object != "response" || e.Response.Status != "failed" || e.Response.Model == "" || e.Response.Output == nil {
					t.Errorf("%s: %s", name, data)
				}
			}
		}
		if ends != 1 {
			t.Errorf("%s: %d ends", name, ends)
		}
	}
}
