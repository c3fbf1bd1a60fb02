package chat

import (
	"strings"

	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/loss"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/repair"
	"github.com/weirgate/weir/sdk/wire"
)

// WriteRequest appends r as the body of a chat completion request (TR-2).
func WriteRequest(dst []byte, r *neutral.Request, t neutral.Target) ([]byte, []neutral.Note, error) {
	w := requestWriter{Writer: jsonw.Writer{B: dst}, r: r, t: t, own: r.From == wire.OpenAIChat}
	hosted, err := loss.Hosted(r, wire.OpenAIChat, t.Strict)
	if err != nil {
		return dst, nil, err
	}
	if err := repair.Names(r.Tools, repair.ToolName); err != nil && !w.own {
		return dst, nil, err
	}
	notes, err := loss.Fields(r, wire.OpenAIChat, t.Strict)
	if err != nil {
		return dst, notes, err
	}
	w.notes = append(hosted, notes...)
	w.Open()
	w.head()
	w.Key("messages").List()
	w.system()
	turns := r.Turns
	if !w.own {
		turns = repair.Called(turns)
	}
	for i := range turns {
		w.turn(&turns[i])
	}
	w.End()
	w.tools()
	w.sampling()
	w.thinking()
	w.format()
	if w.own {
		w.extras(r.Extra, "")
	}
	w.Close()
	return w.B, w.notes, w.err
}

type requestWriter struct {
	jsonw.Writer
	r     *neutral.Request
	t     neutral.Target
	own   bool // the client spoke chat
	notes []neutral.Note
	err   error
}

func (w *requestWriter) note(field, what string) {
	w.notes = append(w.notes, neutral.Note{Field: field, What: what})
	if w.t.Strict && w.err == nil && what != "" {
		w.err = neutral.Faultf(field, "is %s for this model, and x-weir-strict asks for every field to be kept", what)
	}
}

// id and name are those of calls and tools as chat takes them (TR-7, TR-13).
func (w *requestWriter) id(s string) string {
	if w.own {
		return s
	}
	return repair.CallIDOpenAI.Map(s)
}

func (w *requestWriter) name(s string) string {
	if w.own {
		return s
	}
	return repair.ToolName.Map(s)
}

func (w *requestWriter) head() {
	model := w.t.Model
	if model == "" {
		model = w.r.Model
	}
	w.Key("model").String(model)
	if w.r.Stream {
		w.Key("stream").Bool(true)
	}
	if w.r.Stream && (w.r.UsageInStream || !w.own) { // others always tell usage (TR-2)
		w.Key("stream_options").Open().Key("include_usage").Bool(true)
		if w.own {
			w.extras(w.r.Extra, "stream_options")
		}
		w.Close()
	}
}

// extras writes the members of a path that were read and have no word in the neutral form.
func (w *requestWriter) extras(fields []neutral.Field, under string) {
	for _, f := range fields {
		at, name := "", f.Path
		if i := strings.LastIndexByte(f.Path, '.'); i >= 0 {
			at, name = f.Path[:i], f.Path[i+1:]
		}
		if at == under {
			w.Key(name).Raw(f.Raw)
		}
	}
}

// own extras of a turn, part or tool: only their last names matter.
func (w *requestWriter) theirs(fields []neutral.Field) {
	if !w.own {
		return
	}
	for _, f := range fields {
		w.Key(f.Path[strings.LastIndexByte(f.Path, '.')+1:]).Raw(f.Raw)
	}
}

// system writes what another dialect keeps apart as one first message, its parts joined by a blank line (TR-11).
func (w *requestWriter) system() {
	if len(w.r.System) == 0 {
		return
	}
	texts := make([]string, 0, len(w.r.System))
	for _, p := range w.r.System {
		if p.Text != "" {
			texts = append(texts, p.Text)
		}
	}
	if len(texts) > 0 {
		w.Open().Key("role").String("system").Key("content").String(strings.Join(texts, "\n\n")).Close()
	}
}

// turn writes one turn as one message or several: results are messages of their own and stand first (TR-10).
func (w *requestWriter) turn(t *neutral.Turn) {
	rest := make([]neutral.Part, 0, len(t.Parts))
	var results []neutral.Part // their media follow as a user turn (TR-15)
	for i := range t.Parts {
		switch p := &t.Parts[i]; {
		case p.Kind == neutral.Result && t.Role == neutral.User:
			results = append(results, *p)
		case p.Kind == neutral.Unknown && !w.own:
			w.note(p.Path, "dropped")
		default:
			rest = append(rest, *p)
		}
	}
	for i := range results {
		if left := w.result(&results[i], t); len(left) > 0 {
			rest = append(left, rest...)
		}
	}
	if len(rest) == 0 && (len(results) > 0 || !w.own) {
		return
	}
	w.Open()
	w.Key("role").String(roleName(t.Role))
	if t.Name != "" {
		w.Key("name").String(t.Name)
	}
	if t.Role == neutral.Model {
		w.model(rest)
	} else {
		w.Key("content")
		w.content(rest, t.Plain)
	}
	w.theirs(t.Extra)
	w.Close()
}

func roleName(r neutral.Role) string {
	switch r {
	case neutral.Model:
		return "assistant"
	case neutral.System:
		return "system"
	case neutral.Developer:
		return "developer"
	case neutral.User:
	}
	return "user"
}

// model writes the parts of an assistant message.
func (w *requestWriter) model(parts []neutral.Part) {
	var spoken []neutral.Part
	var calls []*neutral.Part
	thought := ""
	refusal := ""
	for i := range parts {
		switch p := &parts[i]; p.Kind {
		case neutral.Thought:
			thought += p.Text
		case neutral.Call:
			calls = append(calls, p)
		case neutral.Refusal:
			if p.Type == "refusal" {
				spoken = append(spoken, *p)
				continue
			}
			refusal += p.Text
		default:
			spoken = append(spoken, *p)
		}
	}
	if thought != "" && w.own { // a thought goes only back to where it came from (TR-18)
		w.Key("reasoning_content").String(thought)
	}
	switch {
	case len(spoken) > 0:
		w.Key("content")
		w.content(spoken, len(spoken) == 1 && spoken[0].Kind == neutral.Text && (!w.own || spoken[0].Type == ""))
	case !w.own:
		w.Key("content").Null()
	}
	if refusal != "" {
		w.Key("refusal").String(refusal)
	}
	if len(calls) == 0 {
		return
	}
	w.Key("tool_calls").List()
	for _, p := range calls {
		kind, text := "function", "arguments"
		if p.Call.Custom {
			kind, text = "custom", "input"
		}
		args := p.Call.Arguments
		if args == "" && !p.Call.Custom && !w.own {
			args = "{}" // TR-14
		}
		w.Open().Key("id").String(w.id(p.Call.ID)).Key("type").String(kind)
		w.Key(kind).Open().Key("name").String(w.name(p.Call.Name)).Key(text).String(args).Close()
		w.theirs(p.Extra)
		w.Close()
	}
	w.End()
}

// content writes parts as one bare text or as a list.
func (w *requestWriter) content(parts []neutral.Part, plain bool) {
	if plain && len(parts) == 1 || !w.own && allText(parts) && len(parts) == 1 {
		w.String(parts[0].Text)
		return
	}
	w.List()
	for i := range parts {
		w.part(&parts[i])
	}
	w.End()
}

func allText(parts []neutral.Part) bool {
	for i := range parts {
		if parts[i].Kind != neutral.Text {
			return false
		}
	}
	return true
}

func (w *requestWriter) part(p *neutral.Part) {
	switch p.Kind {
	case neutral.Text, neutral.Thought:
		w.Open().Key("type").String("text").Key("text").String(p.Text)
	case neutral.Refusal:
		w.Open().Key("type").String("refusal").Key("refusal").String(p.Text)
	case neutral.Image:
		w.Open().Key("type").String("image_url").Key("image_url").Open().Key("url").String(address(&p.Media))
		if p.Media.Detail != "" {
			w.Key("detail").String(p.Media.Detail)
		}
		w.Close()
	case neutral.Audio:
		format := strings.TrimPrefix(p.Media.Type, "audio/")
		w.Open().Key("type").String("input_audio").Key("input_audio").Open().Key("data").String(p.Media.Base64).Key("format").String(format).Close()
	case neutral.Document:
		if p.Media.URL != "" {
			w.note(p.Path, "dropped")
			return
		}
		name := p.Media.Name
		if name == "" {
			name = "document"
		}
		w.Open().Key("type").String("file").Key("file").Open()
		w.Key("file_data").String(address(&p.Media)).Key("filename").String(name).Close()
	case neutral.Unknown:
		w.Raw(p.Raw)
		return
	case neutral.Call, neutral.Result:
		return
	}
	w.theirs(p.Extra)
	w.Close()
}

// address is media as a URL.
func address(m *neutral.Media) string {
	if m.URL != "" {
		return m.URL
	}
	return "data:" + m.Type + ";base64," + m.Base64
}

// result writes what a tool said as a message of its own and returns the media that chat does not take there (TR-15).
func (w *requestWriter) result(p *neutral.Part, t *neutral.Turn) (media []neutral.Part) {
	res := &p.Result
	w.Open().Key("role").String("tool").Key("tool_call_id").String(w.id(res.ID))
	if res.Name != "" && w.own {
		w.Key("name").String(res.Name)
	}
	w.Key("content")
	if w.own {
		w.content(res.Parts, res.Plain)
		w.theirs(t.Extra)
		w.Close()
		return nil
	}
	var text strings.Builder
	if res.Error {
		text.WriteString("Error: ")
	}
	for i := range res.Parts {
		switch q := &res.Parts[i]; q.Kind {
		case neutral.Text:
			text.WriteString(q.Text)
		case neutral.Image, neutral.Document:
			media = append(media, *q)
		default:
			w.note(q.Path, "dropped")
		}
	}
	w.String(text.String()).Close()
	return media
}
