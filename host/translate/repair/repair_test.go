package repair_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/repair"
)

func text(s string) neutral.Part { return neutral.Part{Text: s} }
func call(id string) neutral.Part {
	return neutral.Part{Kind: neutral.Call, Call: neutral.ToolCall{ID: id, Name: "f"}}
}

func result(id, s string) neutral.Part {
	return neutral.Part{Kind: neutral.Result, Result: neutral.ToolResult{ID: id, Parts: []neutral.Part{text(s)}}}
}
func user(ps ...neutral.Part) neutral.Turn  { return neutral.Turn{Role: neutral.User, Parts: ps} }
func model(ps ...neutral.Part) neutral.Turn { return neutral.Turn{Role: neutral.Model, Parts: ps} }

// shape is turns as a line: u[text result(id)] m[call(id)].
func shape(turns []neutral.Turn) string {
	var b strings.Builder
	for _, t := range turns {
		b.WriteString(map[neutral.Role]string{neutral.User: "u", neutral.Model: "m", neutral.System: "s", neutral.Developer: "d"}[t.Role])
		b.WriteByte('[')
		for i, p := range t.Parts {
			if i > 0 {
				b.WriteByte(' ')
			}
			switch p.Kind {
			case neutral.Call:
				b.WriteString("call:" + p.Call.ID)
			case neutral.Result:
				b.WriteString("result:" + p.Result.ID + "=" + p.Result.Parts[0].Text)
				if p.Result.Error {
					b.WriteByte('!')
				}
			default:
				b.WriteString(strings.ReplaceAll(p.Text, "\n", "|"))
			}
		}
		b.WriteString("] ")
	}
	return strings.TrimSpace(b.String())
}

func TestAlternating(t *testing.T) {
	for _, c := range []struct {
		name string
		in   []neutral.Turn
		want string
	}{
		{"TR-10 neighbours are merged", []neutral.Turn{user(text("a")), user(text("b")), model(text("c")), model(text("d"))}, "u[a b] m[c d]"},
		{"TR-10 empty texts go", []neutral.Turn{user(text(""), text("a")), model(text("")), user(text("b"))}, "u[a b]"},
		{"TR-10 the user is first", []neutral.Turn{model(text("a")), user(text("b"))}, "u[.] m[a] u[b]"},
		{
			"TR-10 results right behind their calls, in one turn",
			[]neutral.Turn{user(text("q")), model(call("1"), call("2")), user(result("1", "x")), user(text("and")), user(result("2", "y"))},
			"u[q] m[call:1 call:2] u[result:1=x result:2=y and]",
		},
		{
			"TR-10 a call without a result",
			[]neutral.Turn{user(text("q")), model(call("1")), user(text("go on"))},
			"u[q] m[call:1] u[result:1=(no result)! go on]",
		},
		{"TR-10 the last call may be open", []neutral.Turn{user(text("q")), model(call("1"))}, "u[q] m[call:1]"},
		{"TR-10 a result without a call", []neutral.Turn{user(text("q"), result("9", "lost"))}, "u[q lost]"},
		{
			"TR-11 system text in the midst", []neutral.Turn{user(text("q")), {Role: neutral.Developer, Parts: []neutral.Part{text("be brief")}}, model(text("a"))},
			"u[q <system-reminder>|be brief|</system-reminder>] m[a]",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, shape(repair.Alternating(c.in))); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// TR-7, TR-13: what fits stays; anything else becomes a stable name that fits and leads back.
func TestNames(t *testing.T) {
	for _, s := range []string{"get_weather", "mcp__server__tool-1"} {
		if got := repair.ToolName.Map(s); got != s {
			t.Errorf("%q became %q", s, got)
		}
	}
	tools := []neutral.Tool{{Name: "a.b:c"}, {Name: "ünïcode tool"}, {Name: strings.Repeat("x", 100)}}
	for _, tool := range tools {
		to := repair.ToolName.Map(tool.Name)
		if !repair.ToolName.Fits(to) || to == tool.Name || to != repair.ToolName.Map(tool.Name) {
			t.Errorf("%q became %q", tool.Name, to)
		}
		if back := repair.Back(tools, repair.ToolName, to); back != tool.Name {
			t.Errorf("%q came back as %q", tool.Name, back)
		}
	}
	if !repair.ToolNameGemini.Fits("a.b:c") || !repair.ToolNameMessages.Fits(strings.Repeat("x", 100)) {
		t.Error("gemini allows dots and colons, messages 128 characters")
	}
	clash := []neutral.Tool{{Name: "a.b"}, {Name: repair.ToolName.Map("a.b"), Path: "tools[1]"}}
	if err := repair.Names(clash, repair.ToolName); err == nil {
		t.Error("a collision must be a fault")
	}
	if id := repair.CallID.Map("call|with/odd:chars"); !repair.CallID.Fits(id) {
		t.Errorf("id %q", id)
	}
	if long := repair.CallIDOpenAI.Map(strings.Repeat("é", 60)); len(long) > 64 {
		t.Errorf("%d bytes", len(long))
	}
}
