package scan

import (
	"cmp"
	"slices"
)

// Automaton finds all its patterns in one pass (Aho and Corasick). It is immutable and may be used concurrently.
//
// The states next to the root, where a pass spends nearly all its time, have a row of transitions each, one per class of
// bytes that no pattern tells apart; deeper states have a sorted list of edges and a failure link, so that a table of any
// size stays small in memory.
type Automaton struct {
	class  [256]uint16
	width  int     // number of classes
	rows   []int32 // of the states 0 to dense-1, width each
	dense  int32
	out    []int32 // per state the nearest one, itself first, where a pattern ends; 0: none
	states []state
	edges  []edge
	size   int // number of patterns
}

type state struct {
	first, last int32 // edges[first:last]
	fail        int32
	found       int32 // the pattern that ends here, -1: none
	next        int32 // the nearest state on the failure chain where a pattern ends, 0: none
}

type edge struct {
	on byte
	to int32
}

// NewAutomaton builds an automaton; pattern i is found as number i. Patterns must be distinct and not empty.
func NewAutomaton(patterns []string) *Automaton {
	nodes := []node{{found: -1}}
	for i, p := range patterns {
		at := int32(0)
		for _, c := range []byte(p) {
			at = child(&nodes, at, c)
		}
		nodes[at].found = int32(i)
	}
	a := &Automaton{size: len(patterns), states: make([]state, len(nodes))}
	order := a.number(nodes)
	a.link(nodes, order)
	a.fill()
	a.out = make([]int32, len(a.states))
	for i, s := range a.states {
		if a.out[i] = s.next; s.found >= 0 {
			a.out[i] = int32(i)
		}
	}
	return a
}

type node struct {
	edges []edge
	found int32
}

func child(nodes *[]node, at int32, c byte) int32 {
	n := &(*nodes)[at]
	i, ok := slices.BinarySearchFunc(n.edges, c, func(e edge, c byte) int { return cmp.Compare(e.on, c) })
	if ok {
		return n.edges[i].to
	}
	to := int32(len(*nodes))
	n.edges = slices.Insert(n.edges, i, edge{c, to})
	*nodes = append(*nodes, node{found: -1})
	return to
}

// number gives the states their numbers in breadth-first order, which puts the root's children first, and copies the edges.
func (a *Automaton) number(nodes []node) []int32 {
	order := make([]int32, 1, len(nodes))
	for i := 0; i < len(order); i++ {
		n := nodes[order[i]]
		s := &a.states[i]
		s.found, s.first = n.found, int32(len(a.edges))
		for _, e := range n.edges {
			a.edges = append(a.edges, edge{e.on, int32(len(order))})
			order = append(order, e.to)
		}
		s.last = int32(len(a.edges))
	}
	return order
}

func (a *Automaton) link(nodes []node, order []int32) {
	for i := range order {
		for _, e := range a.edges[a.states[i].first:a.states[i].last] {
			fail := int32(0)
			if i != 0 {
				fail = a.slow(a.states[i].fail, e.on)
			}
			s := &a.states[e.to]
			s.fail = fail
			s.next = a.states[fail].next
			if a.states[fail].found >= 0 {
				s.next = fail
			}
		}
	}
}

// mostRows bounds the rows: 64 to 256 KiB of them.
const mostRows = 256

// fill makes the classes and the rows.
func (a *Automaton) fill() {
	classes := [256]bool{}
	for _, e := range a.edges {
		classes[e.on] = true
	}
	a.width = 1 // class 0 are the bytes in no pattern
	for c, used := range classes {
		if used {
			a.class[c] = uint16(a.width)
			a.width++
		}
	}
	a.dense = int32(min(len(a.states), mostRows))
	a.rows = make([]int32, int(a.dense)*a.width)
	for i := range a.dense { // the state that i fails to comes before it
		row, s := a.row(i), a.states[i]
		if i > 0 {
			copy(row, a.row(s.fail))
		}
		for _, e := range a.edges[s.first:s.last] {
			row[a.class[e.on]] = e.to
		}
	}
}

func (a *Automaton) row(i int32) []int32 { return a.rows[int(i)*a.width:][:a.width] }

// slow is one transition by edges and failure links alone.
func (a *Automaton) slow(at int32, c byte) int32 {
	for {
		if to := a.edge(at, c); to > 0 {
			return to
		}
		if at == 0 {
			return 0
		}
		at = a.states[at].fail
	}
}

func (a *Automaton) edge(at int32, c byte) int32 {
	s := &a.states[at]
	lo, hi := s.first, s.last
	for lo < hi {
		mid := (lo + hi) / 2
		switch e := a.edges[mid]; {
		case e.on == c:
			return e.to
		case e.on < c:
			lo = mid + 1
		default:
			hi = mid
		}
	}
	return 0
}

// Absent is the position of a pattern that was not found.
const Absent = int32(1<<31 - 1)

// First returns for each pattern the end of its first occurrence in text, or Absent.
func (a *Automaton) First(text string) []int32 {
	ends := make([]int32, a.size)
	for i := range ends {
		ends[i] = Absent
	}
	if a.size == 0 {
		return ends
	}
	at, rows, width := int32(0), a.rows, int32(a.width)
	for i := range len(text) {
		if at < a.dense { // nearly always
			at = rows[at*width+int32(a.class[text[i]])]
		} else {
			at = a.step(at, text[i])
		}
		for hit := a.out[at]; hit != 0; hit = a.states[hit].next {
			if p := a.states[hit].found; ends[p] == Absent {
				ends[p] = int32(i + 1)
			}
		}
	}
	return ends
}

func (a *Automaton) step(at int32, c byte) int32 {
	for at >= a.dense {
		if to := a.edge(at, c); to > 0 {
			return to
		}
		at = a.states[at].fail
	}
	return a.rows[int(at)*a.width+int(a.class[c])]
}
