package plugin

import (
	"slices"

	"github.com/weirgate/weir/sdk/wire"
)

// Priced is the table of prices that one plugin carries (OBJ-21).
type Priced struct {
	Plugin  string
	Version string
	Builtin bool
	Prices  []wire.Price
}

// Prices are the tables of the plugins in force, in the order in which they are asked: the operator's before the shipped one. The rows
// must not be changed.
func (r *Runtime) Prices() []Priced {
	set := r.Acquire()
	defer set.Release()
	var list []Priced
	for _, v := range slices.SortedStableFunc(slices.Values(set.plugins), func(a, b *version) int { return before(a, b, 0, 0) }) {
		if len(v.manifest.Prices) > 0 {
			list = append(list, Priced{
				Plugin: v.name, Version: v.manifest.Version, Builtin: v.origin == OriginBuiltin, Prices: v.manifest.Prices,
			})
		}
	}
	return list
}
