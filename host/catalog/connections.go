package catalog

import "iter"

// Connections yields every account of every provider, the inactive ones too, provider by provider.
func (s *Snapshot) Connections() iter.Seq[*Connection] {
	return func(yield func(*Connection) bool) {
		for _, p := range s.Providers {
			for _, c := range p.All {
				if !yield(c) {
					return
				}
			}
		}
	}
}
