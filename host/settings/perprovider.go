package settings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/weirgate/weir/host/document"
)

// perProvider is an object keyed by provider whose values are objects with the fields of one. A patch changes only the
// fields that it names: null removes a field, or a provider; a provider without a field is dropped (API-13). The list form
// [{"provider":"glm", ...}] is accepted too.
type perProvider struct {
	fields []providerField
	load   func(field any, entries map[string]map[string]any) // into the typed map
	show   func(field any) map[string]map[string]any
}

type providerField struct {
	name     string
	min, max int64    // of numbers
	words    []string // of texts; nil: a number
}

func (f perProvider) get(field any) any { return f.show(field) }

func (f perProvider) set(field, x any) { f.load(field, x.(map[string]map[string]any)) }

func (f perProvider) parse(r *Row, n *document.Node, path string) (any, []document.Fault) {
	out := map[string]map[string]any{}
	var faults []document.Fault
	one := func(provider string, at *document.Node, path string) {
		provider = strings.ToLower(strings.TrimSpace(provider))
		if c := utf8.RuneCountInString(provider); c < 1 || c > 128 {
			faults = append(faults, r.fault(at, path, "must be keyed by a provider of 1 to 128 characters")...)
			return
		}
		entry, wrong := f.entry(r, at, path)
		faults = append(faults, wrong...)
		out[provider] = entry
	}
	switch n.Kind {
	case document.Map:
		for i := range n.Members {
			one(n.Members[i].Name, n.Members[i].Value, document.Join(path, n.Members[i].Name))
		}
	case document.List:
		for i, item := range n.Items {
			name := item.Member("provider")
			if name == nil || name.Kind != document.Text {
				faults = append(faults, r.fault(item, document.At(path, i), "needs provider")...)
				continue
			}
			one(name.Text, item, document.At(path, i))
		}
	default:
		faults = r.fault(n, path, "must be an object keyed by provider, not "+n.Kind.String())
	}
	return out, faults
}

// entry reads the fields of one provider; nil means null: the provider is removed.
func (f perProvider) entry(r *Row, n *document.Node, path string) (map[string]any, []document.Fault) {
	if n.Kind == document.Null {
		return nil, nil
	}
	if n.Kind != document.Map {
		return nil, r.fault(n, path, "must be an object, not "+n.Kind.String())
	}
	out := map[string]any{}
	var faults []document.Fault
	for i := range n.Members {
		m := &n.Members[i]
		if m.Name == "provider" {
			continue // of the list form
		}
		at := document.Join(path, m.Name)
		k := slices.IndexFunc(f.fields, func(field providerField) bool { return field.name == m.Name })
		switch {
		case k < 0:
			faults = append(faults, r.fault(m.Value, at, "is not known here; known are "+f.names())...)
		case m.Value.Kind == document.Null:
			out[m.Name] = nil
		default:
			x, wrong := f.fields[k].read(r, m.Value, at)
			faults = append(faults, wrong...)
			out[m.Name] = x
		}
	}
	return out, faults
}

func (f perProvider) names() string {
	names := make([]string, len(f.fields))
	for i := range f.fields {
		names[i] = f.fields[i].name
	}
	return strings.Join(names, ", ")
}

func (p *providerField) read(r *Row, n *document.Node, path string) (any, []document.Fault) {
	if p.words != nil {
		return (&Row{Default: "", Words: p.words}).parse(n, path)
	}
	return (&Row{Min: p.min, Max: p.max}).parseInt(n, path)
}

func (perProvider) env(*Row, string) (any, bool) { return nil, false }

func (f perProvider) allowed(*Row) string {
	parts := make([]string, len(f.fields))
	for i, p := range f.fields {
		if p.words != nil {
			parts[i] = p.name + ": one of " + strings.Join(p.words, ", ")
		} else {
			parts[i] = fmt.Sprintf("%s: %d to %d", p.name, p.min, p.max)
		}
	}
	return "an object keyed by provider, of " + strings.Join(parts, "; ")
}

func (f perProvider) merge(stored, given json.RawMessage) json.RawMessage {
	old, change := map[string]map[string]any{}, map[string]map[string]any{}
	if json.Unmarshal(stored, &old) != nil || old == nil { // absent, or not ours: begins empty
		old = map[string]map[string]any{}
	}
	if json.Unmarshal(given, &change) != nil {
		return stored
	}
	for provider, fields := range change {
		if fields == nil {
			delete(old, provider)
			continue
		}
		if old[provider] == nil {
			old[provider] = map[string]any{}
		}
		maps.Copy(old[provider], fields)
	}
	for provider, fields := range old {
		maps.DeleteFunc(fields, func(_ string, x any) bool { return x == nil })
		if len(fields) == 0 {
			delete(old, provider)
		}
	}
	if len(old) == 0 {
		return nil
	}
	b, err := json.Marshal(old)
	if err != nil {
		return stored
	}
	return b
}

// quotaOverrides is providerQuotaOverrides (API-13, COOL-22).
func quotaOverrides() perProvider {
	fields := []providerField{
		{name: "rateLimitCooldownSeconds", min: 1, max: 21_600},
		{name: "rpm", min: 1, max: 1_000_000},
		{name: "concurrency", min: 1, max: 10_000},
		{name: "providerConcurrency", min: 0, max: 10_000},
	}
	return perProvider{
		fields: fields,
		load: func(field any, entries map[string]map[string]any) {
			out := make(map[string]QuotaOverride, len(entries))
			for provider, e := range entries {
				o := QuotaOverride{
					RateLimitCooldown: time.Duration(whole(e["rateLimitCooldownSeconds"])) * time.Second,
					RPM:               int(whole(e["rpm"])), Concurrency: int(whole(e["concurrency"])),
					ProviderConcurrency: int(whole(e["providerConcurrency"])),
				}
				if o != (QuotaOverride{}) {
					out[provider] = o
				}
			}
			*field.(*map[string]QuotaOverride) = out
		},
		show: func(field any) map[string]map[string]any {
			out := map[string]map[string]any{}
			for provider, o := range *field.(*map[string]QuotaOverride) {
				values := []int64{int64(o.RateLimitCooldown / time.Second), int64(o.RPM), int64(o.Concurrency), int64(o.ProviderConcurrency)}
				entry := map[string]any{}
				for i, x := range values {
					if x > 0 {
						entry[fields[i].name] = x
					}
				}
				out[provider] = entry
			}
			return out
		},
	}
}

// strategies is providerStrategies (SEL-3).
func strategies() perProvider {
	const name = "fallbackStrategy"
	return perProvider{
		fields: []providerField{{name: name, words: accountStrategies()}},
		load: func(field any, entries map[string]map[string]any) {
			out := make(map[string]string, len(entries))
			for provider, e := range entries {
				if word, ok := e[name].(string); ok {
					out[provider] = word
				}
			}
			*field.(*map[string]string) = out
		},
		show: func(field any) map[string]map[string]any {
			out := map[string]map[string]any{}
			for provider, word := range *field.(*map[string]string) {
				out[provider] = map[string]any{name: word}
			}
			return out
		},
	}
}

// accountStrategies are the words of SEL-4.
func accountStrategies() []string { return []string{"fill-first", "round-robin", "p2c", "random"} }

func whole(x any) int64 {
	i, _ := x.(int64)
	return i
}
