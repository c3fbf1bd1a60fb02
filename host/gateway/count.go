package gateway

import (
	"net/http"
	"strconv"
	"time"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/sdk/wire"
)

// counting are the paths that count the tokens of a prompt (INF-1). The gemini one is a method of a model.
var counting = map[string]asked{
	"/v1/messages/count_tokens":  {endpoint: "/v1/messages", dialect: wire.AnthropicMessages},
	"/v1/responses/input_tokens": {endpoint: "/v1/responses", dialect: wire.OpenAIResponses},
}

// count answers with the number of tokens of a prompt: the provider's own if it counts in this dialect, else an estimate that says so.
// It moves no breaker and no cooldown (INF-52).
func (g *Gateway) count(w http.ResponseWriter, r *http.Request, e asked) {
	id := g.o.RequestID()
	s := g.o.Snapshot()
	rc := http.NewResponseController(w)
	_ = rc.SetReadDeadline(time.Now().Add(g.o.BodyTime)) // as in generate
	key, failure := g.authorize(r, s)
	if failure != nil {
		g.fail(w, e.dialect, *failure, id)
		return
	}
	buf, failure := g.read(r)
	if failure != nil {
		g.fail(w, e.dialect, *failure, id)
		return
	}
	defer buf.Release()
	_ = rc.SetReadDeadline(time.Time{})
	c := &dispatch.Call{RequestID: id, Endpoint: e.endpoint, Dialect: e.dialect, Catalog: s, Key: key, Body: buf, Header: r.Header, Beta: asksBeta(r, e.dialect)}
	if failure := resolve(c, e); failure != nil {
		g.fail(w, e.dialect, *failure, id)
		return
	}
	n, exact := g.o.Dispatch.Count(r.Context(), c)
	if !exact {
		n = estimate(c.Body)
		w.Header().Set("X-Weir-Estimated", "true")
	}
	text := strconv.FormatInt(n, 10)
	switch e.dialect {
	case wire.GeminiGenerate:
		text = `{"totalTokens":` + text + `}`
	case wire.OpenAIResponses:
		text = `{"object":"response.input_tokens","input_tokens":` + text + `}`
	default:
		text = `{"input_tokens":` + text + `}`
		w.Header().Set("Request-Id", id)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Request-Id", id)
	_, _ = w.Write([]byte(text + "\n")) // a client that left needs no answer
}

// estimate is the size of a body without inline media, in tokens of four bytes (INF-22).
func estimate(b *body.Buffer) int64 {
	text := b.Bytes()
	n := len(text)
	for _, long := range longStrings(text) {
		n -= long
	}
	return int64(max(n/4, 1))
}

// mediaBytes is the length from which a string without a blank is taken for data in base64.
const mediaBytes = 2048

// longStrings are the lengths of runs that only data in base64 makes.
func longStrings(text []byte) (lengths []int) {
	run := 0
	for i := 0; i <= len(text); i++ {
		if i < len(text) && isBase64(text[i]) {
			run++
			continue
		}
		if run >= mediaBytes {
			lengths = append(lengths, run)
		}
		run = 0
	}
	return lengths
}

func isBase64(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '/' || c == '=' || c == '-' || c == '_'
}
