package settings

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weirgate/weir/host/document"
)

// ErrManagedByFile is the reason for which a patch is refused: a field belongs to the configuration file (OBJ-16).
var ErrManagedByFile = errors.New("managed_by_file")

// Document returns one document with every field, in the order of the table (API-10, API-15).
func Document(v *Values, which Doc) []byte {
	root := nested(which, func(r *Row) any { return r.get(v) })
	if which == Resilience {
		root.Members = append(root.Members, document.Member{Name: "legacy", Value: legacy(v)})
	}
	return root.JSON()
}

// Explain is Document with {value, source} in place of each value (OV-25).
func Explain(v *Values, sources Sources, which Doc) []byte {
	type explained struct {
		Value  any    `json:"value"`
		Source Source `json:"source"`
	}
	return nested(which, func(r *Row) any { return explained{r.get(v), sources[r.Name()]} }).JSON()
}

func nested(which Doc, value func(*Row) any) *document.Node {
	root := &document.Node{Kind: document.Map}
	table := Table()
	for i := range table {
		r := &table[i]
		if r.Path == "" || !slices.Contains(r.Docs, which) {
			continue
		}
		b, err := json.Marshal(value(r))
		if err != nil {
			continue // what a row gets always encodes
		}
		leaf, _ := document.ParseJSON("", b)
		put(root, strings.Split(r.Path, "."), leaf)
	}
	return root
}

func put(n *document.Node, path []string, leaf *document.Node) {
	if len(path) == 1 {
		n.Members = append(n.Members, document.Member{Name: path[0], Value: leaf})
		return
	}
	child := n.Member(path[0])
	if child == nil {
		child = &document.Node{Kind: document.Map}
		n.Members = append(n.Members, document.Member{Name: path[0], Value: child})
	}
	put(child, path[1:], leaf)
}

// Read flattens one document, as people write it in the file or in a patch. base is its path in the surrounding text.
// All faults are reported: unknown fields, wrong types, numbers out of bounds. A null stays in the result as null.
func Read(n *document.Node, which Doc, base string) (Stored, []document.Fault) {
	f := flattener{table: Table(), which: which, out: Stored{}}
	if n != nil && n.Kind != document.Null {
		f.object(n, base, "")
	}
	return f.out, f.faults
}

type flattener struct {
	table  []Row
	which  Doc
	out    Stored
	faults []document.Fault
}

func (f *flattener) object(n *document.Node, at, prefix string) {
	if n.Kind != document.Map {
		f.faults = append(f.faults, document.Fault{
			File: n.File, Path: at, Message: "must be an object, not " + n.Kind.String(), Line: n.Line, Column: n.Column,
		})
		return
	}
	known := f.known(prefix)
	for i := range n.Members {
		m := &n.Members[i]
		path, here := prefix+m.Name, document.Join(at, m.Name)
		row := find(f.table, path)
		switch {
		case !slices.Contains(known, m.Name):
			f.unknown(n, m, here, known)
		case row == nil:
			f.object(m.Value, here, path+".")
		case row.readOnly:
			f.faults = append(f.faults, n.Fault(m.Name, "is set by the environment variable "+row.Env[0]+" alone; it is shown here to be seen"))
			f.faults[len(f.faults)-1].Path = here
		case m.Value.Kind == document.Null:
			f.out[path] = json.RawMessage("null")
		default:
			f.leaf(row, m.Value, here)
		}
	}
}

func (f *flattener) leaf(row *Row, n *document.Node, at string) {
	x, faults := row.parse(n, at)
	f.faults = append(f.faults, faults...)
	if b, err := json.Marshal(x); err == nil && len(faults) == 0 {
		f.out[row.Path] = b
	}
}

// known lists the names that may stand below prefix in this document.
func (f *flattener) known(prefix string) []string {
	names := map[string]bool{}
	for i := range f.table {
		rest, ok := strings.CutPrefix(f.table[i].Path, prefix)
		if ok && f.table[i].Path != "" && slices.Contains(f.table[i].Docs, f.which) {
			name, _, _ := strings.Cut(rest, ".")
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func (f *flattener) unknown(n *document.Node, m *document.Member, at string, known []string) {
	message := "is not known here"
	if near := document.Nearest(m.Name, known, 1); len(near) > 0 {
		message += "; did you mean " + near[0] + "?"
	} else if other := f.elsewhere(m.Name); other != "" {
		message += "; it stands in " + string(other)
	}
	f.faults = append(f.faults, document.Fault{File: n.File, Path: at, Message: message, Line: m.Line, Column: m.Column})
}

// elsewhere is the document that has a section of this name, when it is not this one.
func (f *flattener) elsewhere(name string) Doc {
	for i := range f.table {
		section, _, _ := strings.Cut(f.table[i].Path, ".")
		if docs := f.table[i].Docs; section == name && len(docs) > 0 && !slices.Contains(docs, f.which) {
			return docs[0]
		}
	}
	return ""
}

// Patch merges one document of a caller into what is stored and returns the result; stored is not changed. null removes a
// stored value. When a field belongs to the file nothing is applied: the error is ErrManagedByFile and the faults name the
// fields. Other faults come without an error; an empty patch is one of them (API-11). now are the values in force, for the
// bounds that one field sets to another.
func Patch(now *Values, stored Stored, patch *document.Node, which Doc, file Stored) (Stored, []document.Fault, error) {
	given, faults := readPatch(patch, which)
	if len(faults) > 0 {
		return nil, faults, nil
	}
	if len(given) == 0 {
		return nil, []document.Fault{{Path: "body", Message: "Must provide " + strings.TrimPrefix(string(which)+" ", "settings ") + "settings to update"}}, nil
	}
	next := maps.Clone(stored)
	if next == nil {
		next = Stored{}
	}
	table := Table()
	for _, path := range slices.Sorted(maps.Keys(given)) {
		if _, owned := file[path]; owned {
			faults = append(faults, patch.Fault(path, "belongs to the configuration file; change it there"))
			continue
		}
		change := given[path]
		if m, ok := find(table, path).as.(merger); ok && string(change) != "null" {
			change = m.merge(next[path], change)
		}
		if change == nil || string(change) == "null" {
			delete(next, path)
		} else {
			next[path] = change
		}
	}
	if len(faults) > 0 {
		return nil, faults, ErrManagedByFile
	}
	if faults = crossed(table, now, given, patch); len(faults) > 0 {
		return nil, faults, nil
	}
	return next, nil, nil
}

// crossed finds the fields of a patch that would stand below the one that bounds them, in the patch or in force (PCD-5).
func crossed(table []Row, now *Values, given Stored, patch *document.Node) (faults []document.Fault) {
	after := *now
	for i := range table {
		r := &table[i]
		if x, ok := r.stored(given, func(string, ...any) {}); ok {
			r.set(&after, x)
		} else if string(given[r.Path]) == "null" && r.Path != "" && r.derive == nil {
			r.set(&after, r.Default)
		}
	}
	for i := range table {
		r := &table[i]
		_, changed := given[r.Path]
		_, bound := given[r.above]
		if r.above == "" || !changed && !bound {
			continue
		}
		if low := r.low(&after); number(r.get(&after)) < low {
			at := r.Path
			if !changed {
				at = r.above
			}
			faults = append(faults, patch.Fault(at, fmt.Sprintf("%s must be at least %s, which is %d ms", r.Path, r.above, low)))
		}
	}
	return faults
}
