package gateway

import (
	"net/http"
	"slices"
	"strings"

	"github.com/weirgate/weir/host/dialect"
)

const (
	ownPrefix   = "X-Weir-"
	olderPrefix = "X-Omniroute-"
)

// adoptHeaders makes the headers that older clients send under X-OmniRoute-* readable under X-Weir-*. The same header under both names
// with different values is refused, since either could be meant (OV-10).
func adoptHeaders(h http.Header) *dialect.Failure {
	for name, values := range h {
		rest, older := strings.CutPrefix(name, olderPrefix)
		if !older {
			continue
		}
		own := ownPrefix + rest
		if present, both := h[own]; both && !slices.Equal(present, values) {
			return &dialect.Failure{Status: http.StatusBadRequest, Type: "invalid_request_error", Code: "conflicting_headers", NoRetry: true,
				Message: "The headers " + own + " and " + name + " are one header under two names and say different things; send one of them."}
		}
		h[own] = values
	}
	return nil
}
