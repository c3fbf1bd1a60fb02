package dispatch

import (
	"bytes"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/sdk/wire"
)

// toolLists are the members of a body that hold tools, in each dialect. Gemini's are in groups.
func toolLists(d wire.Dialect) []string {
	switch d {
	case wire.OpenAIChat:
		return []string{"tools", "functions"} // the second is the older form
	case wire.OpenAIResponses, wire.AnthropicMessages, wire.GeminiGenerate:
		return []string{"tools"}
	case wire.RawDialect:
	}
	return nil
}

// countTools counts the tools of a body. It reads nothing but where the scan says they are.
func countTools(d wire.Dialect, s *body.Scan) (n int) {
	if s == nil {
		return 0
	}
	for _, name := range toolLists(d) {
		items, ok := s.Items(name)
		if !ok {
			continue
		}
		if d != wire.GeminiGenerate {
			n += items
			continue
		}
		raw, _ := s.Get(name)
		gjson.ParseBytes(raw).ForEach(func(_, group gjson.Result) bool {
			n += groupSize(group)
			return true
		})
	}
	return n
}

// declarations are the functions of one of gemini's groups; false: it is a tool of the provider's own.
func declarations(group gjson.Result) (name string, list gjson.Result, ok bool) {
	for _, name := range [...]string{"functionDeclarations", "function_declarations"} {
		if list := group.Get(name); list.IsArray() {
			return name, list, true
		}
	}
	return "", gjson.Result{}, false
}

func groupSize(group gjson.Result) int {
	if _, list, ok := declarations(group); ok {
		return int(list.Get("#").Int())
	}
	return 1
}

// cutTools is the edit that leaves limit tools of a body that has more: the first ones, and those that its tool choice names.
func cutTools(d wire.Dialect, s *body.Scan, limit int) (*body.Editor, error) {
	left := keeper{limit: limit, chosen: chosenTools(d, s)}
	total := countTools(d, s)
	for _, name := range toolLists(d) {
		raw, _ := s.Get(name)
		left.count(gjson.ParseBytes(raw))
	}
	var edits []wire.Edit
	for _, name := range toolLists(d) {
		if _, ok := s.Items(name); !ok {
			continue
		}
		raw, _ := s.Get(name)
		if kept := left.list(gjson.ParseBytes(raw)); kept != nil {
			edits = append(edits, wire.Edit{Op: "set", Path: name, Value: kept})
		} else {
			edits = append(edits, wire.Edit{Op: "delete", Path: name})
		}
	}
	e, err := body.Compile(edits)
	if err != nil {
		return nil, fmt.Errorf("cut %d tools to %d: %w", total, limit, err)
	}
	return e, nil
}

// chosenTools are the names that the tool choice of a body names.
func chosenTools(d wire.Dialect, s *body.Scan) map[string]bool {
	names := map[string]bool{}
	paths := map[wire.Dialect][]string{
		wire.OpenAIChat:        {"tool_choice.function.name", "tool_choice.custom.name", "function_call.name"},
		wire.OpenAIResponses:   {"tool_choice.name"},
		wire.AnthropicMessages: {"tool_choice.name"},
	}
	for _, path := range paths[d] {
		if raw, ok := s.Get(path); ok {
			names[gjson.ParseBytes(raw).String()] = true
		}
	}
	var lists []string
	switch d {
	case wire.OpenAIChat:
		lists = []string{"tool_choice.allowed_tools.tools"}
	case wire.OpenAIResponses:
		lists = []string{"tool_choice.tools"}
	case wire.GeminiGenerate:
		lists = []string{"toolConfig.functionCallingConfig.allowedFunctionNames", "tool_config.function_calling_config.allowed_function_names"}
	case wire.AnthropicMessages, wire.RawDialect:
	}
	for _, path := range lists {
		raw, _ := s.Get(path)
		gjson.ParseBytes(raw).ForEach(func(_, item gjson.Result) bool {
			names[toolName(item)] = true
			return true
		})
	}
	delete(names, "")
	return names
}

// toolName is the name of a tool, of any dialect; empty for one of the provider's own.
func toolName(tool gjson.Result) string {
	if tool.Type == gjson.String {
		return tool.String()
	}
	for _, path := range [...]string{"function.name", "name", "custom.name"} {
		if name := tool.Get(path); name.Type == gjson.String {
			return name.String()
		}
	}
	return ""
}

// keeper picks the tools that stay.
type keeper struct {
	limit  int
	chosen map[string]bool // that the tool choice names
	named  int             // of those, how many the body has and the limit lets stay
	others int             // that stay beside them
}

// count counts the tools of a list that the choice names.
func (k *keeper) count(list gjson.Result) {
	each(list, func(tool gjson.Result) {
		if k.chosen[toolName(tool)] && k.named < k.limit {
			k.named++
		}
	})
	k.others = k.limit - k.named
}

// each calls take for every tool of a list, those in groups too.
func each(list gjson.Result, take func(gjson.Result)) {
	list.ForEach(func(_, item gjson.Result) bool {
		if _, functions, ok := declarations(item); ok {
			functions.ForEach(func(_, f gjson.Result) bool { take(f); return true })
		} else {
			take(item)
		}
		return true
	})
}

// stays says whether a tool stays, and counts it.
func (k *keeper) stays(tool gjson.Result) bool {
	left := &k.others
	if k.chosen[toolName(tool)] {
		left = &k.named
	}
	if *left <= 0 {
		return false
	}
	*left--
	return true
}

// list is a list without what does not stay; nil: nothing does.
func (k *keeper) list(list gjson.Result) []byte {
	var out bytes.Buffer
	list.ForEach(func(_, item gjson.Result) bool {
		if name, functions, ok := declarations(item); ok {
			if kept := k.list(functions); kept != nil {
				put(&out, regrouped(item, name, kept))
			} else if functions.Get("#").Int() == 0 {
				put(&out, item.Raw)
			}
		} else if k.stays(item) {
			put(&out, item.Raw)
		}
		return true
	})
	if out.Len() == 0 {
		return nil
	}
	out.WriteByte(']')
	return out.Bytes()
}

// regrouped is a group with another list of functions.
func regrouped(group gjson.Result, name string, list []byte) string {
	var out bytes.Buffer
	group.ForEach(func(key, value gjson.Result) bool {
		if out.Len() == 0 {
			out.WriteByte('{')
		} else {
			out.WriteByte(',')
		}
		out.WriteString(key.Raw)
		out.WriteByte(':')
		if key.String() == name {
			out.Write(list)
		} else {
			out.WriteString(value.Raw)
		}
		return true
	})
	out.WriteByte('}')
	return out.String()
}

func put(out *bytes.Buffer, item string) {
	if out.Len() == 0 {
		out.WriteByte('[')
	} else {
		out.WriteByte(',')
	}
	out.WriteString(item)
}

// fewerTools is the editor of an attempt for text, its body in the upstream's dialect: with an edit before its own ones when the
// provider takes fewer tools than text has (OTH-22). The client is told in X-Weir-Degraded.
func (a *attempt) fewerTools(text *body.Buffer, own *body.Editor) (*body.Editor, error) {
	r := a.r
	limit, known := r.d.tools.Of(a.target.Provider.ID, r.t.Began)
	if !known {
		return own, nil
	}
	d := a.spoken()
	scan, err := text.Scan()
	if err != nil {
		return own, nil // who applies the edits says so
	}
	a.tools = countTools(d, scan)
	if a.tools <= limit || !r.c.Catalog.Settings.ToolTruncate {
		return own, nil
	}
	cut, err := cutTools(d, scan, limit)
	if err != nil {
		return nil, err
	}
	r.t.FewerTools = fmt.Sprintf("tools; sent=%d; of=%d", limit, a.tools)
	r.t.trace.add(gateSend, "tools", "cut", a.target, r.t.FewerTools)
	r.t.note(fmt.Sprintf("tools: %d of %d, as many as the provider takes", limit, a.tools))
	a.changed, a.tools = true, limit
	return cut.Then(own), nil
}
