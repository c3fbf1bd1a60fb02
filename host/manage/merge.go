package manage

import (
	"slices"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/document"
)

// merge lays a patch over dst: a field that is absent stays, null clears, all else replaces; a nested object is merged
// likewise. dst must share nothing with anybody.
func merge(patch *document.Node, dst any) error {
	faults := patch.Decode(dst, document.NullClears(), document.Short[catalog.TargetInput]("model"),
		document.Short[catalog.ModelInput]("id"))
	if len(faults) > 0 {
		return faulty(faults)
	}
	return nil
}

// without drops members that are shown and cannot be written, so that an object that was read may be sent back.
func without(n *document.Node, names ...string) *document.Node {
	kept := *n
	kept.Members = nil
	for _, m := range n.Members {
		if !slices.Contains(names, m.Name) {
			kept.Members = append(kept.Members, m)
		}
	}
	return &kept
}

// shownOnly are the fields of OBJ-4 that every object shows and nobody writes.
var shownOnly = []string{"managedBy", "revision", "createdAt", "updatedAt"}
