package dispatch

import "github.com/weirgate/weir/sdk/wire"

// Meter counts what happens inside a call. Calls are cheap and safe for concurrent use.
type Meter interface {
	// Attempt counts one dispatch; an empty reason is a success.
	Attempt(provider string, reason wire.Reason)
	Fallback(reason wire.Reason)
	Refused(gate string)
	Restated(rule string)
}
