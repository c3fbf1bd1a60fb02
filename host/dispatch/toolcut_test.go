package dispatch

import (
	"bytes"
	"strings"
	"testing"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/sdk/wire"
)

// OTH-22: tools are counted and cut in every dialect; those that the tool choice names stay, and nothing else of the body changes.
func TestCutTools(t *testing.T) {
	for _, c := range []struct {
		name    string
		dialect wire.Dialect
		text    string
		count   int
		limit   int
		want    string
	}{
		{"chat", wire.OpenAIChat,
			`{"model":"m","tools":[{"type":"function","function":{"name":"a"}}, {"type":"function","function":{"name":"b"}},{"function":{"name":"c"}}],"n":1}`, 3, 2,
			`{"model":"m","tools":[{"type":"function","function":{"name":"a"}},{"type":"function","function":{"name":"b"}}],"n":1}`},
		{"chat, a chosen one", wire.OpenAIChat,
			`{"tools":[{"function":{"name":"a"}},{"function":{"name":"b"}},{"function":{"name":"c"}}],"tool_choice":{"type":"function","function":{"name":"c"}}}`, 3, 2,
			`{"tools":[{"function":{"name":"a"}},{"function":{"name":"c"}}],"tool_choice":{"type":"function","function":{"name":"c"}}}`},
		{"chat, chosen ones", wire.OpenAIChat,
			`{"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"c"}},{"type":"function","function":{"name":"b"}}]}},"tools":[{"function":{"name":"a"}},{"function":{"name":"b"}},{"function":{"name":"c"}}]}`, 3, 2,
			`{"tool_choice":{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"function","function":{"name":"c"}},{"type":"function","function":{"name":"b"}}]}},"tools":[{"function":{"name":"b"}},{"function":{"name":"c"}}]}`},
		{"chat, the older form", wire.OpenAIChat, `{"functions":[{"name":"a"},{"name":"b"},{"name":"c"}],"function_call":{"name":"b"}}`, 3, 1, `{"functions":[{"name":"b"}],"function_call":{"name":"b"}}`},
		{"chat, both forms", wire.OpenAIChat, `{"functions":[{"name":"c"}],"tools":[{"function":{"name":"a"}},{"function":{"name":"b"}}]}`, 3, 2, `{"tools":[{"function":{"name":"a"}},{"function":{"name":"b"}}]}`},
		{"responses", wire.OpenAIResponses, `{"tools":[{"type":"function","name":"a"},{"type":"web_search"},{"type":"function","name":"b"}],"tool_choice":{"type":"function","name":"b"}}`, 3, 2,
			`{"tools":[{"type":"function","name":"a"},{"type":"function","name":"b"}],"tool_choice":{"type":"function","name":"b"}}`},
		{"messages", wire.AnthropicMessages, `{"tools":[{"name":"a"},{"name":"b"},{"name":"c"}],"tool_choice":{"type":"tool","name":"c"}}`, 3, 2,
			`{"tools":[{"name":"a"},{"name":"c"}],"tool_choice":{"type":"tool","name":"c"}}`},
		{"gemini", wire.GeminiGenerate,
			`{"tools":[{"functionDeclarations":[{"name":"a"},{"name":"b"}]},{"googleSearch":{}},{"function_declarations":[{"name":"c"},{"name":"d"}],"x":1}],"toolConfig":{"functionCallingConfig":{"allowedFunctionNames":["d"]}}}`, 5, 3,
			`{"tools":[{"functionDeclarations":[{"name":"a"},{"name":"b"}]},{"function_declarations":[{"name":"d"}],"x":1}],"toolConfig":{"functionCallingConfig":{"allowedFunctionNames":["d"]}}}`},
		{"more chosen than may stay", wire.AnthropicMessages, `{"tools":[{"name":"a"},{"name":"a"},{"name":"b"}],"tool_choice":{"name":"a"}}`, 3, 1, `{"tools":[{"name":"a"}],"tool_choice":{"name":"a"}}`},
		{"kept whole", wire.OpenAIChat, `{"tools":[{"function":{"name":"a"}}]}`, 1, 1, `{"tools":[{"function":{"name":"a"}}]}`},
		{"no list", wire.OpenAIChat, `{"tools":null,"functions":"x"}`, 0, 1, `{"tools":null,"functions":"x"}`},
		{"raw", wire.RawDialect, `{"tools":[1,2,3]}`, 0, 1, `{"tools":[1,2,3]}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			buf, err := body.Read(strings.NewReader(c.text), int64(len(c.text)), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			defer buf.Release()
			scan, err := buf.Scan()
			if err != nil {
				t.Fatal(err)
			}
			if n := countTools(c.dialect, scan); n != c.count {
				t.Errorf("%d tools, want %d", n, c.count)
			}
			e, err := cutTools(c.dialect, scan, c.limit)
			if err != nil {
				t.Fatal(err)
			}
			out, err := e.Apply(buf)
			if err != nil || !bytes.Equal(out.Bytes(), []byte(c.want)) {
				t.Errorf("%v\n got %s\nwant %s", err, out.Bytes(), c.want)
			}
			out.Discard()
			if string(buf.Bytes()) != c.text {
				t.Error("the client's body was changed")
			}
		})
	}
}
