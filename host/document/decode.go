package document

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// Option changes how Decode reads a document.
type Option func(*decoder)

// Tag makes Decode take field names from the struct tag of that name first, and from json where there is none. So one
// struct can be written in camel case by the API and in snake case by the file (OBJ-1).
func Tag(name string) Option { return func(d *decoder) { d.tag = name } }

// Short lets a text stand for a T: the text becomes the field of that name, as in models: [gpt-5].
func Short[T any](field string) Option {
	return func(d *decoder) { d.short[reflect.TypeFor[T]()] = field }
}

// Read makes Decode read every T with read, whose error becomes a fault: the same field is a number in one document and a
// duration in another (OBJ-1).
func Read[T any](read func(*Node) (T, error)) Option {
	return func(d *decoder) {
		d.readers[reflect.TypeFor[T]()] = func(n *Node, v reflect.Value) error {
			x, err := read(n)
			if err == nil {
				v.Set(reflect.ValueOf(&x).Elem())
			}
			return err
		}
	}
}

// NullClears makes a null of the document set the field to its zero value, as in a PATCH (OBJ-9). Without it null is as if
// absent.
func NullClears() Option { return func(d *decoder) { d.nullClears = true } }

// Decode fills dst, a pointer, from n. It is strict: unknown names, wrong types and numbers out of range are faults, all
// reported at once in the order of the document, with places and paths from the top of n. An absent or null value leaves
// dst as it was. time.Duration is written as 30s; types with UnmarshalJSON or UnmarshalText read themselves. When there is
// a fault, dst may be partly filled.
func (n *Node) Decode(dst any, options ...Option) []Fault {
	return n.DecodeAt("", dst, options...)
}

// DecodeAt is Decode for a part of a document: paths of faults begin with path.
func (n *Node) DecodeAt(path string, dst any, options ...Option) []Fault {
	d := &decoder{short: map[reflect.Type]string{}, readers: map[reflect.Type]func(*Node, reflect.Value) error{}}
	for _, o := range options {
		o(d)
	}
	d.value(n, path, reflect.ValueOf(dst).Elem())
	return sorted(d.faults)
}

type decoder struct {
	tag        string
	short      map[reflect.Type]string
	readers    map[reflect.Type]func(*Node, reflect.Value) error
	nullClears bool
	faults     []Fault
}

var (
	durationType  = reflect.TypeFor[time.Duration]()
	timeType      = reflect.TypeFor[time.Time]()
	jsonReadsType = reflect.TypeFor[json.Unmarshaler]()
	textReadsType = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (d *decoder) fault(n *Node, path, message string) {
	d.faults = append(d.faults, Fault{File: n.File, Path: path, Message: message, Line: n.Line, Column: n.Column})
}

func (d *decoder) wrong(n *Node, path, want string) {
	message := "must be " + want + ", not " + n.Kind.String()
	if want == "text" && (n.Kind == Number || n.Kind == Bool) {
		message += "; put it in quotes"
	}
	d.fault(n, path, message)
}

func (d *decoder) value(n *Node, path string, v reflect.Value) {
	if n == nil || n.Kind == Null {
		if n != nil && v.Kind() != reflect.Pointer && v.CanAddr() && v.Addr().Type().Implements(jsonReadsType) {
			d.readsJSON(n, path, v)
			return
		}
		if n != nil && d.nullClears {
			v.SetZero()
		}
		return
	}
	if read, ok := d.readers[v.Type()]; ok {
		if err := read(n, v); err != nil {
			d.fault(n, path, err.Error())
		}
		return
	}
	switch {
	case v.Type() == durationType:
		d.duration(n, path, v)
		return
	case v.Type() == timeType:
		d.time(n, path, v)
		return
	case v.Kind() != reflect.Pointer && v.Addr().Type().Implements(jsonReadsType):
		d.readsJSON(n, path, v)
		return
	case v.Kind() != reflect.Pointer && v.Addr().Type().Implements(textReadsType):
		d.readsText(n, path, v)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		d.value(n, path, v.Elem())
	case reflect.Struct:
		d.structure(n, path, v)
	case reflect.Map:
		d.mapping(n, path, v)
	case reflect.Slice:
		d.list(n, path, v)
	case reflect.Interface:
		d.anything(n, path, v)
	default:
		d.scalar(n, path, v)
	}
}

func (d *decoder) readsJSON(n *Node, path string, v reflect.Value) {
	if err := v.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(n.JSON()); err != nil {
		d.fault(n, path, err.Error())
	}
}

func (d *decoder) readsText(n *Node, path string, v reflect.Value) {
	if n.Kind == List || n.Kind == Map {
		d.wrong(n, path, "text")
		return
	}
	if err := v.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText([]byte(n.Text)); err != nil {
		d.fault(n, path, err.Error())
	}
}

func (d *decoder) anything(n *Node, path string, v reflect.Value) {
	if v.NumMethod() > 0 {
		d.fault(n, path, "cannot be read here")
		return
	}
	var x any
	if err := json.Unmarshal(n.JSON(), &x); err != nil {
		d.fault(n, path, "holds a number that is out of range")
		return
	}
	v.Set(reflect.ValueOf(&x).Elem())
}

func (d *decoder) list(n *Node, path string, v reflect.Value) {
	if n.Kind != List {
		d.wrong(n, path, "a list")
		return
	}
	out := reflect.MakeSlice(v.Type(), len(n.Items), len(n.Items))
	for i, item := range n.Items {
		if item.Kind == Null && refusesNull(v.Type().Elem()) {
			d.fault(item, At(path, i), "must not be null")
			continue
		}
		d.value(item, At(path, i), out.Index(i))
	}
	v.Set(out)
}

func (d *decoder) mapping(n *Node, path string, v reflect.Value) {
	if n.Kind != Map {
		d.wrong(n, path, "an object")
		return
	}
	t := v.Type()
	if t.Key().Kind() != reflect.String {
		d.fault(n, path, "cannot be read here")
		return
	}
	out := reflect.MakeMapWithSize(t, len(n.Members))
	for i := range n.Members {
		m := &n.Members[i]
		at := Join(path, m.Name)
		if m.Value.Kind == Null && refusesNull(t.Elem()) {
			d.fault(m.Value, at, "must not be null")
			continue
		}
		item := reflect.New(t.Elem()).Elem()
		d.value(m.Value, at, item)
		out.SetMapIndex(reflect.ValueOf(m.Name).Convert(t.Key()), item)
	}
	v.Set(out)
}

// refusesNull says whether a null entry of a list or map would be mistaken for an empty value.
func refusesNull(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Map, reflect.Slice:
		return false
	}
	return !reflect.PointerTo(t).Implements(jsonReadsType)
}

func (d *decoder) structure(n *Node, path string, v reflect.Value) {
	fields := map[string][]int{}
	d.fields(v.Type(), nil, fields)
	if short, ok := d.short[v.Type()]; ok && n.Kind == Text {
		d.value(n, path, v.FieldByIndex(fields[short]))
		return
	}
	if n.Kind != Map {
		d.wrong(n, path, "an object")
		return
	}
	for i := range n.Members {
		m := &n.Members[i]
		at := Join(path, m.Name)
		index, ok := fields[m.Name]
		if !ok {
			d.faults = append(d.faults, Fault{
				File: n.File, Path: at, Message: unknownKey(m.Name, fields), Line: m.Line, Column: m.Column,
			})
			continue
		}
		d.value(m.Value, at, v.FieldByIndex(index))
	}
}

// fields maps the names that a struct understands to its fields; embedded structs count as part of it.
func (d *decoder) fields(t reflect.Type, prefix []int, into map[string][]int) {
	for i := range t.NumField() {
		f := t.Field(i)
		index := append(append([]int(nil), prefix...), i)
		name, given := d.fieldName(f)
		if f.Anonymous && !given && f.Type.Kind() == reflect.Struct {
			d.fields(f.Type, index, into)
			continue
		}
		if f.IsExported() && name != "-" {
			into[name] = index
		}
	}
}

func (d *decoder) fieldName(f reflect.StructField) (name string, given bool) {
	for _, tag := range []string{d.tag, "json"} {
		value, ok := f.Tag.Lookup(tag)
		if !ok || tag == "" {
			continue
		}
		if name, _, _ = strings.Cut(value, ","); name != "" {
			return name, true
		}
	}
	return f.Name, false
}

func unknownKey(name string, fields map[string][]int) string {
	known := make([]string, 0, len(fields))
	for k := range fields {
		known = append(known, k)
	}
	if near := Nearest(name, known, 1); len(near) > 0 {
		return fmt.Sprintf("is not known here; did you mean %s?", near[0])
	}
	return "is not known here"
}
