package gateway

import (
	"strings"

	"github.com/weirgate/weir/host/dispatch"
)

// degraded is X-Weir-Degraded: what of the request was not done as asked (OTH-20, OTH-22); empty: all of it was.
func degraded(t *dispatch.Trail) string {
	return strings.Trim(t.Degraded+", "+t.FewerTools, ", ")
}
