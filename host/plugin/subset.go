package plugin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
)

// subset says where got does not hold what expect names (ABI-2.4): every field named there must be equal, others are free.
// Lists are compared item by item and have the same length.
func subset(path string, expect, got []byte) error {
	var e, g any
	for raw, dst := range map[*[]byte]*any{&expect: &e, &got: &g} {
		d := json.NewDecoder(bytes.NewReader(*raw))
		d.UseNumber()
		if err := d.Decode(dst); err != nil {
			return fmt.Errorf("not JSON: %w", err)
		}
	}
	return differ(path, e, g)
}

func differ(path string, e, g any) error {
	switch e := e.(type) {
	case map[string]any:
		object, ok := g.(map[string]any)
		if !ok {
			break
		}
		for k, v := range e {
			if err := differ(join(path, k), v, object[k]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		list, ok := g.([]any)
		if !ok || len(list) != len(e) {
			break
		}
		for i := range e {
			if err := differ(join(path, fmt.Sprint(i)), e[i], list[i]); err != nil {
				return err
			}
		}
		return nil
	case json.Number:
		if n, ok := g.(json.Number); ok {
			a, _ := e.Float64()
			b, _ := n.Float64()
			if a == b {
				return nil
			}
		}
	default:
		if reflect.DeepEqual(e, g) {
			return nil
		}
	}
	want, _ := json.Marshal(e)
	has, _ := json.Marshal(g)
	return fmt.Errorf("%s is %.300s, expected %.300s", cmp.Or(path, "the answer"), has, want)
}

func join(path, k string) string {
	if path == "" {
		return k
	}
	return path + "." + k
}
