package mend

import (
	"bytes"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/sdk/wire"
)

// Mender puts one stream right. Not for concurrent use.
type Mender struct {
	dialect wire.Dialect
	o       Options
	blind   bool   // the upstream does not count, so that we do
	said    int64  // bytes of the answer, while we count
	head    []byte // of chat: the id, the time and the model that every chunk repeats
	counted bool   // of chat: a chunk stated usage
	mended  int
	dropped map[string]int
}

// Options say what the client asked for.
type Options struct {
	Beta   bool  // it sent a beta header, so that it knows event types which we do not (INF-23)
	Usage  bool  // it wants usage in a chat stream
	Prompt int64 // estimated tokens of the prompt, for an upstream that states none
}

// New makes a mender for one stream of a dialect.
func New(d wire.Dialect, o Options) *Mender { return &Mender{dialect: d, o: o} }

// Passes says whether a run of whole events needs nothing, so that it may be sent as it is. It costs a few searches.
func (m *Mender) Passes(run []byte) bool {
	switch m.dialect {
	case wire.AnthropicMessages, wire.OpenAIResponses:
		return !m.blind && m.passesNamed(run)
	case wire.GeminiGenerate:
		if bytes.IndexByte(run, '\r') >= 0 || lineBegins(run, ':') || lineBegins(run, 'e') || bytes.Contains(run, finishReason) || bytes.Contains(run, doneMark) {
			return false
		}
		m.said += saidIn(run)
		return true
	case wire.OpenAIChat:
		m.learn(run)
		lacks := m.o.Usage && !m.counted // then the chunk with usage stands before the end
		return !(lacks && bytes.Contains(run, doneMark)) && !lineBegins(run, 'e')
	default:
		return true
	}
}

var (
	finishReason = []byte("finishReason")
	doneMark     = []byte("[DONE]")
	eventLine    = []byte("event: ")
	dataLine     = []byte("data:")
)

// passesNamed looks at the names of the events of a dialect that names each.
func (m *Mender) passesNamed(run []byte) bool {
	names, lines := 0, 0
	for rest := run; len(rest) > 0; {
		line := rest
		if i := bytes.IndexByte(rest, '\n'); i >= 0 {
			line, rest = rest[:i], rest[i+1:]
		} else {
			rest = nil
		}
		switch {
		case bytes.HasPrefix(line, dataLine):
			lines++
		case bytes.HasPrefix(line, eventLine):
			name := bytes.TrimRight(line[len(eventLine):], "\r")
			if mayLack(name) || !m.speaks(name) {
				return false
			}
			names++
		}
	}
	return names == lines
}

// mayLack says whether an event has a place for usage, so that it must be looked into.
func mayLack(name []byte) bool {
	switch string(name) {
	case "message_start", "message_delta", "response.completed", "response.incomplete":
		return true
	}
	return false
}

// speaks says whether the client knows an event of that name.
func (m *Mender) speaks(name []byte) bool {
	if m.o.Beta {
		return true
	}
	switch m.dialect {
	case wire.AnthropicMessages:
		switch string(name) {
		case "message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "message_stop", "ping", "error":
			return true
		}
		return false
	case wire.OpenAIResponses:
		return bytes.HasPrefix(name, []byte("response.")) || string(name) == "error"
	default:
		return true
	}
}

// Event appends what becomes of one event: raw with the blank line behind it, its name and its data.
func (m *Mender) Event(dst, raw []byte, name string, data []byte) []byte {
	data = bytes.TrimSpace(data)
	switch m.dialect {
	case wire.AnthropicMessages, wire.OpenAIResponses:
		return m.named(dst, raw, name, data)
	case wire.GeminiGenerate:
		return m.gemini(dst, raw, name, data)
	case wire.OpenAIChat:
		return m.chat(dst, raw, name, data)
	default:
		return append(dst, raw...)
	}
}

func (m *Mender) named(dst, raw []byte, name string, data []byte) []byte {
	if len(data) == 0 { // comments
		return append(dst, raw...)
	}
	kind := gjson.GetBytes(data, "type").Str
	if kind == "" {
		kind = name
	}
	if kind == "" || string(data) == "[DONE]" || !m.speaks([]byte(kind)) {
		m.drop(kind)
		return dst
	}
	whole := m.withUsage(kind, data)
	if name == kind && len(whole) == len(data) {
		return append(dst, raw...)
	}
	m.mended++
	return emit(dst, kind, whole)
}

// withUsage is an event with the usage that its upstream left out, estimated (INF-22).
func (m *Mender) withUsage(kind string, data []byte) []byte {
	switch kind {
	case "message_start":
		return splice(data, "message", "usage", func(w *jsonw.Writer) {
			m.blind = true
			w.Open().Key("input_tokens").Int(max(m.o.Prompt, 1)).Key("output_tokens").Int(1).Close()
		})
	case "content_block_delta":
		d := gjson.GetBytes(data, "delta")
		m.said += int64(len(d.Get("text").Str) + len(d.Get("thinking").Str) + len(d.Get("partial_json").Str))
	case "message_delta":
		return splice(data, "", "usage", func(w *jsonw.Writer) { w.Open().Key("output_tokens").Int(max(m.said/4, 1)).Close() })
	case "response.completed", "response.incomplete":
		in, out := max(m.o.Prompt, 1), max(saidIn([]byte(gjson.GetBytes(data, "response.output").Raw))/4, 1)
		return splice(data, "response", "usage", func(w *jsonw.Writer) {
			w.Open().Key("input_tokens").Int(in).Key("input_tokens_details").Open().Key("cached_tokens").Int(0).Close().
				Key("output_tokens").Int(out).Key("output_tokens_details").Open().Key("reasoning_tokens").Int(0).Close().
				Key("total_tokens").Int(in + out).Close()
		})
	}
	return data
}

// gemini leaves out comments and names, with which its clients cannot live (INF-25), states tokens in the last chunk, and ends lines in
// one way: a client of Google's takes the first ending that it sees for all, and what we add ends with a line feed.
func (m *Mender) gemini(dst, raw []byte, name string, data []byte) []byte {
	if len(data) == 0 || string(data) == "[DONE]" {
		m.drop("comment")
		return dst
	}
	whole := data
	m.said += saidIn(data)
	if reason := gjson.GetBytes(data, "candidates.0.finishReason"); reason.Type == gjson.String && reason.Str != "" {
		in, out := max(m.o.Prompt, 1), max(m.said/4, 1)
		whole = splice(data, "", "usageMetadata", func(w *jsonw.Writer) {
			w.Open().Key("promptTokenCount").Int(in).Key("candidatesTokenCount").Int(out).Key("totalTokenCount").Int(in + out).Close()
		})
	}
	if name == "" && len(whole) == len(data) && !lineBegins(raw, ':') && bytes.IndexByte(raw, '\r') < 0 {
		return append(dst, raw...)
	}
	if len(whole) != len(data) {
		m.mended++
	}
	return emit(dst, "", whole)
}

// chat has one thing to add, the chunk with usage before the end, and leaves out what is no chunk.
func (m *Mender) chat(dst, raw []byte, name string, data []byte) []byte {
	switch {
	case string(data) == "[DONE]":
		return append(m.End(dst), raw...)
	case name != "" && name != "error" && bytes.HasPrefix(data, []byte("{")) && !m.o.Beta && !gjson.GetBytes(data, "choices").Exists():
		m.drop(name)
		return dst
	}
	return append(dst, raw...)
}

// learn notes what chunks of chat repeat, and whether one stated usage.
func (m *Mender) learn(run []byte) {
	if !m.o.Usage || m.counted {
		return
	}
	if m.head == nil {
		if i := bytes.IndexByte(run, '{'); i >= 0 {
			c := gjson.ParseBytes(run[i:])
			w := jsonw.Writer{}
			w.Open().Key("id").String(c.Get("id").Str).Key("object").String("chat.completion.chunk").
				Key("created").Int(c.Get("created").Int()).Key("model").String(c.Get("model").Str)
			m.head = w.B
		}
	}
	for _, name := range chatTexts {
		m.said += texts(run, name)
	}
	for b := run; ; {
		i := bytes.Index(b, []byte(`"usage"`))
		if i < 0 {
			return
		}
		b = bytes.TrimLeft(b[i+len(`"usage"`):], " \t:")
		if m.counted = len(b) > 0 && b[0] == '{'; m.counted {
			return
		}
	}
}

// Members that hold the words of an answer: of chat, whose reasoning ends in the same name, and of gemini and responses.
var (
	chatTexts = [...][]byte{[]byte(`content":`), []byte(`arguments":`)}
	textName  = []byte(`"text":`)
	argsName  = []byte(`"args":`)
	callName  = []byte(`"arguments":`)
)

// texts is how many bytes the strings behind a member's name hold, as they are written. A text that speaks of the name has its quotes
// escaped.
func texts(b, name []byte) (n int64) {
	for {
		i := bytes.Index(b, name)
		if i < 0 {
			return n
		}
		b = bytes.TrimLeft(b[i+len(name):], " ")
		if len(b) == 0 || b[0] != '"' {
			continue
		}
		end := 1
		for end < len(b) && b[end] != '"' {
			if b[end] == '\\' {
				end++
			}
			end++
		}
		n += int64(min(end, len(b)) - 1)
		b = b[min(end, len(b)):]
	}
}

// saidIn is how many bytes of words a part of a gemini or responses answer holds; arguments that are an object count as they stand.
func saidIn(b []byte) int64 {
	n := texts(b, textName) + texts(b, callName)
	for rest := b; ; {
		i := bytes.Index(rest, argsName)
		if i < 0 {
			return n
		}
		rest = rest[i+len(argsName):]
		if rest = bytes.TrimLeft(rest, " "); len(rest) > 0 && rest[0] == '{' {
			n += int64(objectEnd(rest))
		}
	}
}

// objectEnd is the length of the JSON object at the beginning of b.
func objectEnd(b []byte) int {
	depth, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{':
			depth++
		case c == '}':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return len(b)
}

// End appends what has to stand before the end of a chat stream: the chunk with usage that was asked for and never came (INF-22). It
// states nothing twice.
func (m *Mender) End(dst []byte) []byte {
	if m.dialect != wire.OpenAIChat || !m.o.Usage || m.counted || m.head == nil {
		return dst
	}
	m.counted = true
	m.mended++
	w := jsonw.Writer{B: append(append(dst, "data: "...), m.head...)}
	in, out := max(m.o.Prompt, 1), max(m.said/4, 1)
	w.Key("choices").List().End().Key("usage").Open().Key("prompt_tokens").Int(in).Key("completion_tokens").Int(out).
		Key("total_tokens").Int(in + out).Close()
	return append(w.Close().B, "\n\n"...)
}

func (m *Mender) drop(kind string) {
	if m.dropped == nil {
		m.dropped = map[string]int{}
	}
	if len(m.dropped) < 64 { // their names come from outside
		m.dropped[strings.ToValidUTF8(kind[:min(len(kind), 64)], "?")]++
	}
}

// Dropped counts, by type, the events that were left out.
func (m *Mender) Dropped() map[string]int { return m.dropped }

// Mended counts the events that were changed or added.
func (m *Mender) Mended() int { return m.mended }

func emit(dst []byte, name string, data []byte) []byte {
	if name != "" {
		dst = append(append(append(dst, "event: "...), name...), '\n')
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		dst = append(append(append(dst, "data: "...), bytes.TrimRight(line, "\r")...), '\n')
	}
	return append(dst, '\n')
}

// splice sets a member of the object at a path of data (empty: data itself), unless an object stands there.
func splice(data []byte, path, name string, value func(*jsonw.Writer)) []byte {
	object := gjson.ParseBytes(data)
	if path != "" {
		object = object.Get(path)
	}
	old := object.Get(name)
	if !object.IsObject() || old.IsObject() {
		return data
	}
	w := jsonw.Writer{B: make([]byte, 0, len(data)+128)}
	if old.Exists() { // null
		w.B = append(w.B, data[:old.Index]...)
		value(&w)
		return append(w.B, data[old.Index+len(old.Raw):]...)
	}
	end := object.Index + len(object.Raw) - 1
	w.B = append(w.B, data[:end]...)
	if len(bytes.TrimSpace(data[object.Index+1:end])) > 0 {
		w.B = append(w.B, ',')
	}
	w.B = append(append(append(w.B, '"'), name...), `":`...)
	value(&w)
	return append(w.B, data[end:]...)
}

// lineBegins says whether a line of run begins with c.
func lineBegins(run []byte, c byte) bool {
	if len(run) > 0 && (run[0] == c || run[0] == 0xef) { // also behind a byte order mark
		return true
	}
	for rest := run; ; {
		i := bytes.IndexAny(rest, "\n\r")
		if i < 0 || i+1 >= len(rest) {
			return false
		}
		if rest = rest[i+1:]; rest[0] == c {
			return true
		}
	}
}
