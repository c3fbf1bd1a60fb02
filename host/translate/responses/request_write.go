package responses

import (
	"strings"

	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/loss"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/repair"
	"github.com/weirgate/weir/sdk/wire"
)

// WriteRequest appends r as the body of a Responses request (TR-2).
func WriteRequest(dst []byte, r *neutral.Request, t neutral.Target) ([]byte, []neutral.Note, error) {
	w := requestWriter{Writer: jsonw.Writer{B: dst}, r: r, t: t, own: r.From == wire.OpenAIResponses}
	if err := w.prepare(); err != nil {
		return dst, w.notes, err
	}
	w.Open().Key("model").String(w.model())
	if len(r.System) > 0 {
		text := r.System[0].Text
		if !r.SystemPlain {
			text = repair.Joined(r.System)
		}
		w.Key("instructions").String(text)
	}
	w.input()
	w.tools()
	w.sampling()
	w.reasoning()
	w.text()
	if w.own {
		w.extras("")
	} else {
		w.Key("store").Bool(false) // the conversation is the client's
	}
	w.Close()
	return w.B, w.notes, w.err
}

type requestWriter struct {
	jsonw.Writer
	r     *neutral.Request
	t     neutral.Target
	own   bool // the client spoke responses
	turns []neutral.Turn
	notes []neutral.Note
	err   error
}

// prepare finds out what cannot be, and settles the turns.
func (w *requestWriter) prepare() error {
	hosted, err := loss.Hosted(w.r, wire.OpenAIResponses, w.t.Strict)
	if err != nil {
		return err
	}
	notes, err := loss.Fields(w.r, wire.OpenAIResponses, w.t.Strict)
	if err != nil {
		return err
	}
	w.notes, w.turns = append(hosted, notes...), w.r.Turns
	if w.own {
		return nil
	}
	if err := repair.Names(w.r.Tools, repair.ToolName); err != nil {
		return err
	}
	w.turns = repair.Called(w.r.Turns)
	return nil
}

func (w *requestWriter) note(field, what string) {
	w.notes = append(w.notes, neutral.Note{Field: field, What: what})
	if w.t.Strict && w.err == nil {
		w.err = neutral.Faultf(field, "is %s for this model, and x-weir-strict asks for every field to be kept", what)
	}
}

func (w *requestWriter) model() string {
	if w.t.Model != "" {
		return w.t.Model
	}
	return w.r.Model
}

func (w *requestWriter) input() {
	w.Key("input")
	if w.own && len(w.turns) == 1 && w.turns[0].Plain && w.turns[0].Path == "input" {
		w.String(w.turns[0].Parts[0].Text)
		return
	}
	w.List()
	for i := range w.turns {
		w.turn(&w.turns[i])
	}
	w.End()
}

// turn writes one turn as items: a message of its text and media, and its calls, results and thoughts beside it, in their order.
func (w *requestWriter) turn(t *neutral.Turn) {
	var spoken []neutral.Part
	flush := func() {
		if len(spoken) > 0 {
			w.message(t, spoken)
		}
		spoken = nil
	}
	for i := range t.Parts {
		p := &t.Parts[i]
		switch p.Kind {
		case neutral.Call:
			flush()
			w.call(t, p)
		case neutral.Result:
			flush()
			w.result(t, p)
		case neutral.Thought:
			flush()
			w.thought(p)
		case neutral.Unknown:
			if !w.own {
				w.note(p.Path, "dropped")
				continue
			}
			if strings.HasSuffix(p.Path, "]") && strings.Contains(p.Path, ".content[") {
				spoken = append(spoken, *p)
				continue
			}
			w.Raw(p.Raw)
		default:
			spoken = append(spoken, *p)
		}
	}
	flush()
	if w.own && len(t.Parts) == 0 {
		w.message(t, nil)
	}
}

func (w *requestWriter) theirs(fields []neutral.Field) {
	if !w.own {
		return
	}
	for _, f := range fields {
		w.Key(f.Path[strings.LastIndexByte(f.Path, '.')+1:]).Raw(f.Raw)
	}
}

// extras writes the members of the body, or of one of its objects, that the neutral form has no word for.
func (w *requestWriter) extras(under string) {
	if !w.own {
		return
	}
	for _, f := range w.r.Extra {
		at, name := "", f.Path
		if i := strings.LastIndexByte(f.Path, '.'); i >= 0 {
			at, name = f.Path[:i], f.Path[i+1:]
		}
		if at == under && name != "tool_choice" {
			w.Key(name).Raw(f.Raw)
		}
	}
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

func (w *requestWriter) message(t *neutral.Turn, parts []neutral.Part) {
	w.Open()
	if !w.own {
		w.Key("type").String("message")
	}
	w.Key("role").String(roleName(t.Role)).Key("content")
	w.content(parts, t.Plain, t.Role == neutral.Model)
	w.theirs(t.Extra)
	w.Close()
}

func (w *requestWriter) content(parts []neutral.Part, plain, model bool) {
	if plain && len(parts) == 1 {
		w.String(parts[0].Text)
		return
	}
	w.List()
	for i := range parts {
		w.part(&parts[i], model)
	}
	w.End()
}

func (w *requestWriter) part(p *neutral.Part, model bool) {
	switch p.Kind {
	case neutral.Text:
		kind := "input_text"
		switch {
		case w.own && p.Type != "":
			kind = p.Type
		case model:
			kind = "output_text"
		}
		w.Open().Key("type").String(kind).Key("text").String(p.Text)
	case neutral.Refusal:
		w.Open().Key("type").String("refusal").Key("refusal").String(p.Text)
	case neutral.Image:
		w.Open().Key("type").String("input_image").Key("image_url").String(address(&p.Media))
		if p.Media.Detail != "" {
			w.Key("detail").String(p.Media.Detail)
		}
	case neutral.Document:
		w.Open().Key("type").String("input_file")
		if p.Media.URL != "" {
			w.Key("file_url").String(p.Media.URL)
		} else {
			name := p.Media.Name
			if name == "" && !w.own {
				name = "document"
			}
			if name != "" {
				w.Key("filename").String(name)
			}
			w.Key("file_data").String(address(&p.Media))
		}
	case neutral.Audio:
		if w.err == nil {
			w.err = neutral.Faultf(p.Path, "audio is nothing that this model takes; leave it out, or ask for another model")
		}
		return
	default:
		w.Raw(p.Raw)
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

func (w *requestWriter) call(t *neutral.Turn, p *neutral.Part) {
	kind, text, args := "function_call", "arguments", p.Call.Arguments
	if p.Call.Custom {
		kind, text = "custom_tool_call", "input"
	} else if args == "" && !w.own {
		args = "{}" // TR-14
	}
	w.Open().Key("type").String(kind).Key("call_id").String(w.id(p.Call.ID)).Key("name").String(w.name(p.Call.Name)).Key(text).String(args)
	w.theirs(t.Extra)
	w.Close()
}

func (w *requestWriter) result(t *neutral.Turn, p *neutral.Part) {
	res := &p.Result
	kind := "function_call_output"
	if res.Custom {
		kind = "custom_tool_call_output"
	}
	w.Open().Key("type").String(kind).Key("call_id").String(w.id(res.ID)).Key("output")
	parts, plain := res.Parts, res.Plain
	if !w.own {
		parts, plain = w.said(res)
	}
	w.content(parts, plain, false)
	w.theirs(t.Extra)
	w.Close()
}

// said is a result as this dialect has it: text, or text with images; an error says so (TR-15).
func (w *requestWriter) said(res *neutral.ToolResult) (parts []neutral.Part, plain bool) {
	var text strings.Builder
	if res.Error {
		text.WriteString("Error: ")
	}
	var media []neutral.Part
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
	if len(media) == 0 {
		return []neutral.Part{{Text: text.String()}}, true
	}
	if text.Len() > 0 {
		parts = append(parts, neutral.Part{Text: text.String()})
	}
	return append(parts, media...), false
}

// thought writes an item reasoning, which only goes back to where it came from (TR-18).
func (w *requestWriter) thought(p *neutral.Part) {
	if w.own && p.Raw != nil {
		w.Raw(p.Raw)
		return
	}
	w.Open().Key("type").String("reasoning").Key("id").String(itemID("rs", p.Signature.Value)).Key("summary").List()
	if p.Text != "" {
		w.Open().Key("type").String("summary_text").Key("text").String(p.Text).Close()
	}
	w.End()
	if p.Signature.Value != "" {
		w.Key("encrypted_content").String(p.Signature.Value)
	}
	w.Close()
}
