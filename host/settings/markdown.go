package settings

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Markdown returns the reference page of all settings, made from the table.
func Markdown() string {
	var b strings.Builder
	b.WriteString(`# Settings

This page is made from the table in ` + "`host/settings`" + `; a test fails when they differ. Later sources win: default,
environment, stored through the API, configuration file (OV-20, OBJ-16). A field that the file gives cannot be changed
through the API. ` + "`GET /api/resilience?explain=true`" + ` shows where each value came from. A variable that begins with
` + "`WEIR_`" + ` is also read with ` + "`OMNIROUTE_`" + ` in its place. Times that end in ` + "`Ms`" + ` or ` + "`_MS`" + ` are whole milliseconds.
`)
	section(&b, "`resilience`", "PATCH `/api/resilience`, and the block `resilience:` of the configuration file.", Resilience)
	section(&b, "`settings`", "PATCH `/api/settings`, and the block `settings:` of the configuration file.", General)
	section(&b, "Environment only", "Read once at start.", "")
	return b.String()
}

func section(b *strings.Builder, title, where string, which Doc) {
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n| Name | Default | Allowed | Environment | Meaning |\n| --- | --- | --- | --- | --- |\n", title, where)
	table := Table()
	for i := range table {
		r := &table[i]
		in := len(r.Docs) == 0 && which == ""
		for _, d := range r.Docs {
			in = in || d == which
		}
		if !in {
			continue
		}
		env := r.Env
		if r.Path == "" {
			env = env[1:] // the first is its name
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s | %s |\n", r.Name(), r.defaultText(), r.allowed(), code(env), r.Meaning)
	}
}

func (r *Row) defaultText() string {
	switch x := r.Default.(type) {
	case nil:
		return "null"
	case json.RawMessage, map[string]map[string]any:
		return "{}"
	case []int:
		return strings.Trim(strings.ReplaceAll(fmt.Sprint(x), " ", ", "), "[]")
	}
	switch {
	case r.Follows != "":
		return "`" + r.Follows + "`"
	case r.derive != nil:
		return "derived"
	case r.as == optionalInt{}:
		return "null"
	}
	if list, ok := r.Default.([]string); ok && len(list) == 0 {
		return "none"
	}
	return fmt.Sprint(r.Default)
}

func code(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "`, `") + "`"
}
