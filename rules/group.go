package rules

import "math/bits"

// group is one table of a view, restatement or a phase of classification, indexed by status, code and type.
type group struct {
	entries []entry
	ends    []int // entries[ends[i-1]:ends[i]] are those of source i

	sets   []bitset // distinct sets of rules by status
	status [statusCount]uint16
	odd    bitset // the rules without a status, for a status outside 0 to 599
	code   words
	typ    words
	size   int // of a set, in words
}

// bitset has a bit per entry.
type bitset []uint64

func (b bitset) set(i int) { b[i/64] |= 1 << (i % 64) }

// words is the index of a condition on exact words.
type words struct {
	any bitset // the rules without the condition
	by  map[string]bitset
}

// end closes the present source.
func (g *group) end() { g.ends = append(g.ends, len(g.entries)) }

// span returns the entries of the sources from to to-1.
func (g *group) span(from, to int) (lo, hi int) {
	from, to = max(from, 0), min(to, len(g.ends))
	if from >= to {
		return 0, 0
	}
	if from > 0 {
		lo = g.ends[from-1]
	}
	return lo, g.ends[to-1]
}

func (g *group) index() {
	if len(g.entries) == 0 {
		return
	}
	g.size = (len(g.entries) + 63) / 64
	g.odd = make(bitset, g.size)
	seen := map[string]uint16{}
	for n := range statusCount {
		set := make(bitset, g.size)
		for i, e := range g.entries {
			if e.status.has(n) {
				set.set(i)
			}
		}
		key := set.key()
		at, ok := seen[key]
		if !ok {
			at = uint16(len(g.sets))
			seen[key] = at
			g.sets = append(g.sets, set)
		}
		g.status[n] = at
	}
	for i, e := range g.entries {
		if e.status == nil {
			g.odd.set(i)
		}
	}
	g.code = g.words(func(e entry) []string { return e.codes })
	g.typ = g.words(func(e entry) []string { return e.types })
}

func (b bitset) key() string {
	text := make([]byte, 0, 8*len(b))
	for _, w := range b {
		for range 8 {
			text = append(text, byte(w))
			w >>= 8
		}
	}
	return string(text)
}

func (g *group) words(of func(entry) []string) words {
	w := words{any: make(bitset, g.size), by: map[string]bitset{}}
	for i, e := range g.entries {
		list := of(e)
		if len(list) == 0 {
			w.any.set(i)
		}
		for _, word := range list {
			if w.by[word] == nil {
				w.by[word] = make(bitset, g.size)
			}
			w.by[word].set(i)
		}
	}
	return w
}

// candidates yields the numbers from lo to hi-1 of the entries whose status, code and type conditions hold, in order. The
// status condition may hold for either of the two statuses.
func (g *group) candidates(lo, hi int, status [2]int, code, typ string) func(yield func(int) bool) {
	return func(yield func(int) bool) {
		if lo >= hi {
			return
		}
		one, other := g.byStatus(status[0]), g.byStatus(status[1])
		byCode, byType := g.code.by[code], g.typ.by[typ]
		for w := lo / 64; w <= (hi-1)/64; w++ {
			left := (one[w] | other[w]) & g.code.at(byCode, w) & g.typ.at(byType, w)
			for ; left != 0; left &= left - 1 {
				i := w*64 + bits.TrailingZeros64(left)
				if i >= hi || i >= lo && !yield(i) {
					return
				}
			}
		}
	}
}

func (g *group) byStatus(status int) bitset {
	if 0 <= status && status < statusCount {
		return g.sets[g.status[status]]
	}
	return g.odd
}

func (w words) at(exact bitset, i int) uint64 {
	if exact == nil {
		return w.any[i]
	}
	return w.any[i] | exact[i]
}
