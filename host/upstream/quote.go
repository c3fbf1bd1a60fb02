package upstream

import (
	"encoding/json"

	"github.com/weirgate/weir/sdk/wire"
)

// quote is s as a JSON string.
func quote(s string) wire.Raw {
	b, err := json.Marshal(s)
	if err != nil {
		return wire.Raw(`""`) // a Go string always encodes
	}
	return b
}
