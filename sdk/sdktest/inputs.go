package sdktest

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/weirgate/weir/sdk/wire"
)

// hookOps are the operations that a manifest may list as hooks.
var hookOps = []wire.Op{
	wire.OpPlan, wire.OpRequest, wire.OpResponse, wire.OpEvent, wire.OpEnd, wire.OpRespond, wire.OpRestate, wire.OpClassify,
}

// hooks are the operations that a host would call.
func (c *checker) hooks() []wire.Op {
	var ops []wire.Op
	for _, op := range hookOps {
		if c.listed(op) {
			ops = append(ops, op)
		}
	}
	return ops
}

// provider is one that the plugin speaks for.
func (c *checker) provider() string {
	for _, p := range c.about.Providers {
		return p.ID
	}
	for _, m := range c.about.Matches {
		for _, p := range m.Providers {
			return strings.ReplaceAll(p, "*", "x")
		}
	}
	return "acme"
}

// samples are inputs of an operation as a host would pass them: those of the plugin's examples, then some of every day.
func (c *checker) samples(op wire.Op) [][]byte {
	var list [][]byte
	for _, x := range c.about.Examples {
		if x.Op == op.String() {
			list = append(list, x.Input)
		}
	}
	p := c.provider()
	add := func(format string, args ...any) { list = append(list, fmt.Appendf(nil, format, args...)) }
	switch op {
	case wire.OpPlan:
		for _, stream := range []bool{false, true} {
			add(`{"provider":%q,"connection":{"id":"c1","revision":3,"base_url":"https://api.acme.example/v1","auth":"api_key","data":{"org":"x"},"secrets":["api_key"]},`+
				`"model":"%s/large","upstream_model":"large","endpoint":"/v1/chat/completions","stream":%t,"client_dialect":"openai_chat","config":{}}`, p, p, stream)
		}
	case wire.OpRequest, wire.OpRespond:
		add(`{"provider":%q,"connection":{"id":"c1","data":{"org":"x"}},"model":"%s/large","upstream_model":"large","endpoint":"/v1/chat/completions","stream":true,`+
			`"message_count":2,"body_bytes":812,"fields":{"model":"large","messages.-1.role":"user","messages.-1.content":{"truncated":9000}},"now_ms":%d}`, p, p, now)
	case wire.OpResponse:
		add(`{"status":200,"headers":{"content-type":"application/json","x-request-id":"r1"},"fields":{"usage.total_tokens":12},"now_ms":%d}`, now)
	case wire.OpEnd:
		add(`{"stream_id":1,"complete":true,"now_ms":%d}`, now)
	case wire.OpEvent:
		for _, data := range []string{
			`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}`,
			`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hello, w\u00f6rld"},"finish_reason":null}]}`,
			`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`,
			`[DONE]`,
		} {
			list = append(list, wire.AppendEvent(nil, wire.Event{Stream: 1, Data: []byte(data)}))
		}
		list = append(list, wire.AppendEvent(nil, wire.Event{Stream: 1, Name: []byte("ping"), Data: []byte("{}")}))
	case wire.OpRestate, wire.OpClassify:
		for _, f := range []struct {
			source, text string
			status       int
		}{
			{"http", `{"error":{"code":"quota","type":"","message":"Monthly quota used up"}}`, 403},
			{"http", "<html>502 Bad Gateway</html>", 502}, {"stream_event", `{"error":"overloaded"}`, 200}, {"transport", "", 0},
		} {
			add(`{"provider":%q,"connection_id":"c1","auth":"api_key","model":"%s/large","endpoint":"/v1/chat/completions","stream":true,"attempt":1,"now_ms":%d,"source":%q,`+
				`"status":%d,"original_status":%d,"headers":{"retry-after":"20"},"error":{"code":"","type":"","message":"","text":%q,"text_truncated":false,"text_bytes":%d},`+
				`"elapsed_ms":840,"bytes_sent":0,"config":{}}`, p, p, now, f.source, f.status, f.status, f.text, len(f.text))
		}
	}
	return list
}

// withUnknown is a JSON object with fields that no ABI has, in front of and after the known ones.
func withUnknown(object []byte) []byte {
	inner := bytes.TrimSpace(object)
	if len(inner) < 2 || inner[0] != '{' {
		return object
	}
	inner = bytes.TrimSpace(inner[1 : len(inner)-1])
	const strange = `"zz_unknown":{"provider":"other","status":[1,{"error":null}],"stream":"no"}`
	out := append([]byte("{"+strange), ","...)
	out = append(out, inner...)
	if len(inner) > 0 {
		out = append(out, ',')
	}
	return append(out, `"zz_more":"\u0000\ud83d\ude00"}`...)
}

// large is an input of the operation that is as long as a host's may be.
func large(op wire.Op, object []byte) []byte {
	if op == wire.OpEvent {
		return append(bytes.Clone(object), bytes.Repeat([]byte("x"), max(largeInput-len(object), 0))...)
	}
	inner := bytes.TrimSpace(object)
	const head, tail = `{"zz_padding":"`, `",`
	pad := largeInput - len(head) - len(tail) - len(inner) + 1
	return append(append(append([]byte(head), bytes.Repeat([]byte("\\n"), max(pad/2, 0))...), tail...), inner[1:]...)
}

// garbage are inputs that no host passes.
func garbage() [][]byte {
	return [][]byte{
		nil, []byte("{"), []byte("}"), []byte("null"), []byte("[]"), []byte("7"), []byte(`"text"`), []byte("{}"), []byte("not json"), []byte("\x00\x01\x02"),
		[]byte("\xff\xff\xff\xff\xff\xff"), []byte("\x01\x00\x00\x00\xff\xffab"), []byte(`{"status":"many","error":7,"headers":[],"connection":null,"stream":{}}`),
		[]byte(`{"error":{"text":"\ud800\u"},"status":1e999,"now_ms":-99999999999999999999}`),
		bytes.Repeat([]byte("["), largeGarbage), bytes.Repeat([]byte(`{"a":`), largeGarbage/3), append([]byte(`{"error":{"text":"`), bytes.Repeat([]byte{0xc3}, largeGarbage)...),
	}
}
