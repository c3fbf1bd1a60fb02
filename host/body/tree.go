package body

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
)

// node is a value under edit: a stretch of some text, opened into its members or items only where an edit goes inside.
type node struct {
	src        []byte
	start, end int
	open       bool
	array      bool
	kids       []kid
}

// kid is a member of an object or an item of an array, with its place in the parent's text, if it has one.
type kid struct {
	val        node
	name       []byte // decoded
	quoted     []byte // the key as it is to be written, when it differs from the text
	keyStart   int    // of the opening quote; -1 for items and for what an edit added
	keyEnd     int
	start, end int // of the value in the parent's text
	added      bool
	replaced   bool // val is not the text between start and end
	gone       bool
}

func (n *node) kind() Kind {
	if n.open {
		if n.array {
			return Array
		}
		return Object
	}
	return kindOf(n.src[n.start])
}

func newNode(text []byte) node { return node{src: text, end: len(text)} }

// root is the whole body, opened from its scan.
func (s *Scan) root(b []byte, room []kid) node {
	n := node{src: b, end: len(b), open: true, kids: room}
	for i := range s.list {
		n.kids = append(n.kids, memberKid(b, 0, &s.list[i]))
	}
	return n
}

func memberKid(src []byte, off int, m *member) kid {
	k := kid{
		keyStart: off + int(m.keyStart) - 1, keyEnd: off + int(m.keyEnd) + 1,
		start: off + int(m.start), end: off + int(m.end),
	}
	if k.name = src[k.keyStart+1 : k.keyEnd-1]; m.escaped {
		k.name = []byte(unquote(src[k.keyStart:k.keyEnd]))
	}
	k.val = node{src: src, start: k.start, end: k.end}
	return k
}

// expand opens an object or array; false for other values.
func (n *node) expand() bool {
	if n.open {
		return true
	}
	text := n.src[n.start:n.end]
	switch text[0] {
	case '{':
		for m := range members(text) {
			n.kids = append(n.kids, memberKid(n.src, n.start, &m))
		}
	case '[':
		n.array = true
		for m := range items(text) {
			k := kid{keyStart: -1, start: n.start + int(m.start), end: n.start + int(m.end)}
			k.val = node{src: n.src, start: k.start, end: k.end}
			n.kids = append(n.kids, k)
		}
	default:
		return false
	}
	n.open = true
	return true
}

// child returns the member or item that a part names: of several members of one name the last. nil when there is none.
func (n *node) child(name string) *kid {
	if !n.expand() {
		return nil
	}
	if n.array {
		return n.item(name)
	}
	for i := len(n.kids) - 1; i >= 0; i-- {
		if k := &n.kids[i]; !k.gone && string(k.name) == name {
			return k
		}
	}
	return nil
}

func (n *node) item(name string) *kid {
	alive := 0
	for i := range n.kids {
		if !n.kids[i].gone {
			alive++
		}
	}
	want, ok := index(name, alive)
	if !ok {
		return nil
	}
	for i := range n.kids {
		if n.kids[i].gone {
			continue
		}
		if want == 0 {
			return &n.kids[i]
		}
		want--
	}
	return nil
}

// drop deletes the member of that name and its duplicates, or one item, except keep.
func (n *node) drop(name string, keep *kid) {
	if n.array {
		if k := n.item(name); k != nil {
			k.gone = true
		}
		return
	}
	for i := range n.kids {
		if k := &n.kids[i]; k != keep && string(k.name) == name {
			k.gone = true
		}
	}
}

// put sets a member, or an item that is there.
func (n *node) put(name string, val node) {
	if k := n.child(name); k != nil {
		k.val, k.replaced = val, true
		return
	}
	if n.array {
		return
	}
	quoted, _ := json.Marshal(name) // a string always marshals
	n.kids = append(n.kids, kid{val: val, name: []byte(name), quoted: quoted, keyStart: -1, added: true, replaced: true})
}

// run does one step on the whole body.
func (s *step) run(root *node) {
	if s.op == opRename && !s.sibling {
		s.move(root)
		return
	}
	s.descend(root, s.path)
}

func (s *step) descend(n *node, path []part) {
	p := path[0]
	if p.star {
		if !n.expand() || !n.array {
			return
		}
		for i := range n.kids {
			if k := &n.kids[i]; !k.gone {
				s.enter(n, k, path)
			}
		}
		return
	}
	k := n.child(p.name)
	if k != nil && !n.array {
		n.drop(p.name, k) // duplicates: else a reader that takes the first would not see the edit
	}
	if s.op == opSet || s.op == opSetDefault {
		s.set(n, k, path)
		return
	}
	if k != nil {
		s.enter(n, k, path)
	}
}

// enter goes on below k, or acts on it when the path ends there.
func (s *step) enter(n *node, k *kid, path []part) {
	if len(path) > 1 {
		s.descend(&k.val, path[1:])
		return
	}
	switch s.op {
	case opSet:
		k.val, k.replaced = newNode(s.value), true
	case opDelete:
		if path[0].star {
			k.gone = true
		} else {
			n.drop(path[0].name, nil)
		}
	case opRename:
		s.rename(n, k)
	case opClamp:
		s.clamp(k)
	}
}

func (s *step) set(n *node, k *kid, path []part) {
	last := len(path) == 1
	switch {
	case !n.open || (k == nil && n.array):
		return // another value stands in the way, or no such item
	case last && s.op == opSetDefault && k != nil:
		return
	case last:
		n.put(path[0].name, newNode(s.value))
	case k == nil || k.val.kind() == Null:
		if slices.ContainsFunc(path[1:], isStar) {
			return
		}
		fresh := newNode([]byte("{}"))
		fresh.expand()
		s.descend(&fresh, path[1:])
		n.put(path[0].name, fresh)
	default:
		s.descend(&k.val, path[1:])
	}
}

// rename changes the name of a member; an earlier member of the new name goes.
func (s *step) rename(n *node, k *kid) {
	to := s.to[len(s.to)-1].name
	if n.array || to == string(k.name) {
		return
	}
	n.drop(to, nil)
	k.name = []byte(to)
	k.quoted, _ = json.Marshal(to)
}

// move takes a value to another place. When there is no way to that place, the value stays.
func (s *step) move(root *node) {
	parent := root
	for _, p := range s.path[:len(s.path)-1] {
		k := parent.child(p.name)
		if k == nil {
			return
		}
		if !parent.array {
			parent.drop(p.name, k)
		}
		parent = &k.val
	}
	name := s.path[len(s.path)-1].name
	k := parent.child(name)
	if k == nil || parent.array || !reachable(root, s.to) {
		return
	}
	val := newNode(bytes.Clone(k.val.render())) // the place it lies in may be written over
	parent.drop(name, nil)
	set := step{op: opSet, value: val.src}
	set.descend(root, s.to)
}

// reachable tells whether set would find or make the place that a path names.
func reachable(n *node, path []part) bool {
	for i, p := range path {
		if !n.expand() {
			return false
		}
		k := n.child(p.name)
		if k == nil {
			return !n.array
		}
		if i < len(path)-1 && k.val.kind() == Null {
			return true
		}
		n = &k.val
	}
	return true
}

func (s *step) clamp(k *kid) {
	if k.val.kind() != Number {
		return
	}
	v, err := strconv.ParseFloat(string(k.val.src[k.val.start:k.val.end]), 64)
	if err != nil && v == 0 {
		return // out of range is ±Inf with an error, and is clamped as such
	}
	switch {
	case s.min != nil && v < *s.min:
		k.val, k.replaced = newNode(s.low), true
	case s.max != nil && v > *s.max:
		k.val, k.replaced = newNode(s.up), true
	}
}

// render returns the text of a value with its edits.
func (n *node) render() []byte {
	if !n.open {
		return n.src[n.start:n.end]
	}
	out := make([]byte, 0, n.end-n.start+64)
	at := n.start
	for _, p := range n.patches(nil) {
		out = append(append(out, n.src[at:p.start]...), p.text...)
		at = p.end
	}
	return append(out, n.src[at:n.end]...)
}

// patch replaces a stretch of the text.
type patch struct {
	start, end int
	text       []byte
}

// patches appends, in order, what has to change in the node's text. Untouched members keep every byte and their place.
func (n *node) patches(ps []patch) []patch {
	if !n.open {
		return ps
	}
	last := n.opening()
	survivors := false
	for i := range n.kids {
		k := &n.kids[i]
		if k.added {
			continue
		}
		if k.gone {
			ps = append(ps, n.deletion(i, last, survivors))
		} else {
			survivors = true
			if k.quoted != nil {
				ps = n.differ(ps, k.keyStart, k.keyEnd, k.quoted)
			}
			if k.replaced {
				ps = n.differ(ps, k.start, k.end, k.val.render())
			} else {
				ps = k.val.patches(ps)
			}
		}
		last = k.end
	}
	return n.additions(ps, last, survivors)
}

// differ appends a patch unless the text is there already.
func (n *node) differ(ps []patch, start, end int, text []byte) []patch {
	if bytes.Equal(n.src[start:end], text) {
		return ps
	}
	return append(ps, patch{start, end, text})
}

// opening is just behind the opening bracket: blanks may stand before that of the body.
func (n *node) opening() int { return skipSpace(n.src, n.start) + 1 }

func (k *kid) from() int {
	if k.keyStart >= 0 {
		return k.keyStart
	}
	return k.start
}

// deletion removes a kid with the comma that is no longer needed: the one before it when something stays before it,
// else the one behind it. last is where the kid before it ends.
func (n *node) deletion(i, last int, survivors bool) patch {
	k := &n.kids[i]
	if survivors {
		return patch{start: last, end: k.end}
	}
	if i+1 < len(n.kids) && !n.kids[i+1].added {
		return patch{start: k.from(), end: n.kids[i+1].from()}
	}
	return patch{start: k.from(), end: k.end}
}

func (n *node) additions(ps []patch, at int, survivors bool) []patch {
	var text []byte
	for i := range n.kids {
		k := &n.kids[i]
		if !k.added || k.gone {
			continue
		}
		if survivors {
			text = append(text, ',')
		}
		survivors = true
		text = append(append(append(text, k.quoted...), ':'), k.val.render()...)
	}
	if text == nil {
		return ps
	}
	return append(ps, patch{at, at, text})
}
