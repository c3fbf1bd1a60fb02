package document

import (
	"reflect"
	"strconv"
	"strings"
	"time"
)

func (d *decoder) duration(n *Node, path string, v reflect.Value) {
	if n.Kind != Text {
		d.wrong(n, path, "a duration such as 30s or 10m")
		return
	}
	took, err := time.ParseDuration(strings.TrimSpace(n.Text))
	if err != nil {
		d.fault(n, path, "is not a duration; write one such as 30s or 10m")
		return
	}
	v.SetInt(int64(took))
}

func (d *decoder) time(n *Node, path string, v reflect.Value) {
	at, err := time.Parse(time.RFC3339, n.Text)
	if n.Kind != Text || err != nil {
		d.fault(n, path, "must be a time such as 2026-01-31T12:00:00Z")
		return
	}
	v.Set(reflect.ValueOf(at))
}

func (d *decoder) scalar(n *Node, path string, v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		if n.Kind != Text {
			d.wrong(n, path, "text")
			return
		}
		v.SetString(n.Text)
	case reflect.Bool:
		b, err := strconv.ParseBool(n.Text)
		if n.Kind != Bool && (!n.expanded || err != nil) {
			d.wrong(n, path, "true or false")
			return
		}
		v.SetBool(b)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.integer(n, path, v)
	case reflect.Float32, reflect.Float64:
		f, err := strconv.ParseFloat(n.Text, v.Type().Bits())
		switch {
		case n.Kind != Number && (!n.expanded || !validNumber(n.Text)):
			d.wrong(n, path, "a number")
		case err != nil:
			d.fault(n, path, "is out of range")
		default:
			v.SetFloat(f)
		}
	default:
		d.fault(n, path, "cannot be read here")
	}
}

func (d *decoder) integer(n *Node, path string, v reflect.Value) {
	if n.Kind != Number && (!n.expanded || !validNumber(n.Text)) {
		d.wrong(n, path, "a whole number")
		return
	}
	text := n.Text
	if f, err := strconv.ParseFloat(text, 64); err == nil && strings.ContainsAny(text, ".eE") && f == float64(int64(f)) && f < 1<<53 && f > -1<<53 {
		text = strconv.FormatInt(int64(f), 10) // 1e3 and 1.0 are whole
	}
	if v.CanInt() {
		i, err := strconv.ParseInt(text, 10, v.Type().Bits())
		if err != nil {
			d.fault(n, path, wholeFault(text))
			return
		}
		v.SetInt(i)
		return
	}
	u, err := strconv.ParseUint(text, 10, v.Type().Bits())
	if err != nil {
		d.fault(n, path, wholeFault(text))
		return
	}
	v.SetUint(u)
}

func wholeFault(text string) string {
	if strings.ContainsAny(text, ".eE") {
		return "must be a whole number"
	}
	return "is out of range"
}
