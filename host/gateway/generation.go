package gateway

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/weirgate/weir/host/dialect"
	"github.com/weirgate/weir/sdk/wire"
)

// asked is what the path of a generation request says.
type asked struct {
	endpoint string // canonical
	dialect  wire.Dialect
	model    string // where the path names it, not the body
	stream   bool   // with model
	array    bool   // a stream as one JSON array (INF-1)
}

// generation are the paths that stand for a dialect by themselves (INF-1).
var generation = map[string]asked{
	"/v1/chat/completions": {endpoint: "/v1/chat/completions", dialect: wire.OpenAIChat},
	"/v1/responses":        {endpoint: "/v1/responses", dialect: wire.OpenAIResponses},
	"/v1/messages":         {endpoint: "/v1/messages", dialect: wire.AnthropicMessages},
}

// asksBeta says whether a client of messages asked for ?beta=true, which changes nothing here but is forwarded (INF-1).
func asksBeta(r *http.Request, d wire.Dialect) bool {
	return d == wire.AnthropicMessages && r.URL.RawQuery != "" && r.URL.Query().Get("beta") == "true"
}

// geminiEndpoint is the canonical name of Google's generation endpoint, whatever the method and version of a request.
const geminiEndpoint = "/v1beta/models:generateContent"

// geminiVersions are the prefixes under which the gemini routes stand (INF-1, INF-2).
var geminiVersions = [...]string{"/v1/", "/v1beta/", "/v1alpha/"}

// splitMethod parts models/{m}:{method}; the colon may be percent-encoded, and the name may hold colons and slashes.
func splitMethod(rest string) (model, method string) {
	i, n := strings.LastIndexByte(rest, ':'), 1
	if j := max(strings.LastIndex(rest, "%3A"), strings.LastIndex(rest, "%3a")); j > i {
		i, n = j, 3
	}
	if i <= 0 {
		return rest, ""
	}
	switch method = rest[i+n:]; method {
	case "generateContent", "streamGenerateContent", "countTokens", "embedContent", "batchEmbedContents":
		return rest[:i], method
	}
	return rest, ""
}

// geminiName is what stands behind the version in a path of Google's, without models/, which clients leave out when the name of a model
// holds a slash.
func geminiName(path string) (rest string, ok bool) {
	for _, version := range geminiVersions {
		if rest, ok = strings.CutPrefix(path, version); ok {
			return strings.TrimPrefix(rest, "models/"), true
		}
	}
	return "", false
}

// gemini answers POST /v1beta/models/{m}:{method}.
func (g *Gateway) gemini(w http.ResponseWriter, r *http.Request) {
	rest, _ := geminiName(r.URL.EscapedPath())
	model, method := splitMethod(rest)
	if plain, err := url.PathUnescape(model); err == nil {
		model = plain
	}
	e := asked{endpoint: geminiEndpoint, dialect: wire.GeminiGenerate, model: model}
	switch method {
	case "generateContent":
	case "streamGenerateContent":
		e.stream, e.array = true, r.URL.Query().Get("alt") != "sse"
	case "countTokens":
		g.count(w, r, e)
		return
	case "":
		g.unknown(w, r)
		return
	default:
		g.fail(w, wire.GeminiGenerate, dialect.Failure{Status: http.StatusNotFound, Code: "unknown_path", NoRetry: true,
			Message: "The method " + method + " is not served here; generateContent and streamGenerateContent are."}, g.o.RequestID())
		return
	}
	g.generate(w, r, e)
}
