package dispatch

import (
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/sdk/wire"
)

// LooksFailed says whether a whole answer that came under a good status is a failure in truth, as every answer that is no
// stream is looked at, and which status its body states, 502 when it states none (SCN-8, STM-50).
func LooksFailed(d wire.Dialect, text []byte) (failed bool, status int) {
	a := attempt{prep: &upstream.Prepared{Dialect: d}}
	return a.looksFailed(text)
}
