package examples

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"strconv"
)

// differ says where got does not hold what expect names (ABI-2.4): every field named there must be equal, others are free.
// Lists are compared item by item and have the same length.
func differ(expect, got []byte) error {
	e, err := decode(expect)
	if err != nil {
		return fmt.Errorf("the expectation is no JSON: %w", err)
	}
	g, err := decode(got)
	if err != nil {
		return fmt.Errorf("the answer is no JSON: %w", err)
	}
	return compare("", e, g)
}

func decode(raw []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	return v, d.Decode(&v)
}

func compare(path string, e, g any) error {
	switch e := e.(type) {
	case map[string]any:
		if object, ok := g.(map[string]any); ok {
			for k, v := range e {
				if err := compare(join(path, k), v, object[k]); err != nil {
					return err
				}
			}
			return nil
		}
	case []any:
		if list, ok := g.([]any); ok && len(list) == len(e) {
			for i := range e {
				if err := compare(join(path, strconv.Itoa(i)), e[i], list[i]); err != nil {
					return err
				}
			}
			return nil
		}
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
