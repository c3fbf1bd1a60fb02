package route

import (
	"cmp"
	"slices"

	"github.com/weirgate/weir/host/catalog"
)

// Window is the known context window of a target's model in tokens, 0 when it is not known.
func Window(t *catalog.RouteTarget) int {
	for i := range t.Provider.Models {
		if t.Provider.Models[i].ID == t.Model {
			return t.Provider.Models[i].ContextWindow
		}
	}
	return 0
}

// TooSmall says whether a target's known window does not do for what its combo wants (CMB-5).
func TooSmall(t *catalog.RouteTarget, want catalog.ContextRequirements) bool {
	w := Window(t)
	return want.MinWindow > 0 && w > 0 && w < want.MinWindow
}

// byContext moves the targets whose window is too small behind the others and, when large ones are preferred, sorts the others by
// their windows, unknown ones behind (CMB-5). Ties keep the order of the strategy (STR-3).
func byContext(ts []catalog.RouteTarget, want catalog.ContextRequirements, order []int) []int {
	if order == nil {
		order = configured(len(ts))
	}
	slices.SortStableFunc(order, func(a, b int) int {
		small, other := TooSmall(&ts[a], want), TooSmall(&ts[b], want)
		switch {
		case small != other && small:
			return 1
		case small != other:
			return -1
		case want.PreferLarge:
			return cmp.Compare(Window(&ts[b]), Window(&ts[a]))
		}
		return 0
	})
	return order
}
