package resilience

import "github.com/weirgate/weir/host/catalog"

// Outdated says whether the connection of t was deleted, or got new credentials, since the attempt chose it: then its
// outcome tells nothing about the connection as it is now (OBJ-7, COOL-52). A provider that the catalog does not know is
// taken as unchanged.
func Outdated(at Moment, t catalog.Target) bool {
	for _, p := range at.Catalog.Providers {
		if p.ID != t.Provider.ID {
			continue
		}
		for _, list := range [...][]*catalog.Connection{p.Connections, p.All} {
			for _, c := range list {
				if c.ID == t.Connection.ID {
					return c.CredentialRevision != t.Connection.CredentialRevision
				}
			}
		}
		return true
	}
	return false
}
