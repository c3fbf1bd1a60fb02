package gemini

import (
	"mime"
	"path"
	"strings"

	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/loss"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/repair"
	"github.com/weirgate/weir/sdk/wire"
)

// WriteRequest appends r as the body of a generateContent request (TR-2). The model and whether to stream belong to the path.
func WriteRequest(dst []byte, r *neutral.Request, t neutral.Target) ([]byte, []neutral.Note, error) {
	w := requestWriter{Writer: jsonw.Writer{B: dst}, r: r, t: t, own: r.From == wire.GeminiGenerate}
	if err := w.prepare(); err != nil {
		return dst, w.notes, err
	}
	w.Open()
	w.system()
	w.Key("contents").List()
	for i := range w.turns {
		w.turn(&w.turns[i])
	}
	w.End()
	w.tools()
	w.generation()
	w.extras("")
	w.Close()
	return w.B, w.notes, w.err
}

type requestWriter struct {
	jsonw.Writer
	r     *neutral.Request
	t     neutral.Target
	own   bool // the client spoke gemini
	lead  []neutral.Part
	turns []neutral.Turn
	notes []neutral.Note
	err   error
}

// prepare finds out what cannot be, and settles the turns.
func (w *requestWriter) prepare() error {
	hosted, err := loss.Hosted(w.r, wire.GeminiGenerate, w.t.Strict)
	if err != nil {
		return err
	}
	notes, err := loss.Fields(w.r, wire.GeminiGenerate, w.t.Strict)
	if err != nil {
		return err
	}
	w.notes, w.lead, w.turns = append(hosted, notes...), w.r.System, w.r.Turns
	if w.own {
		return nil
	}
	if err := repair.Names(w.r.Tools, repair.ToolNameGemini); err != nil {
		return err
	}
	lead, rest := w.r.Leading()
	w.lead, w.turns = lead, repair.Alternating(rest)
	return nil
}

func (w *requestWriter) note(field, what string) {
	w.notes = append(w.notes, neutral.Note{Field: field, What: what})
	if w.t.Strict && w.err == nil {
		w.err = neutral.Faultf(field, "is %s for this model, and x-weir-strict asks for every field to be kept", what)
	}
}

func (w *requestWriter) system() {
	if w.own {
		if len(w.lead) == 0 && !w.has("systemInstruction") {
			return
		}
		w.Key("systemInstruction").Open().Key("parts").List()
		for i := range w.lead {
			w.part(&w.lead[i])
		}
		w.End()
		w.extras("systemInstruction")
		w.Close()
		return
	}
	if text := repair.Joined(w.lead); text != "" {
		w.Key("systemInstruction").Open().Key("parts").List().Open().Key("text").String(text).Close().End().Close()
	}
}

// has says whether an object of the body had members that the neutral form has no word for.
func (w *requestWriter) has(under string) bool {
	for _, f := range w.r.Extra {
		if w.own && strings.HasPrefix(f.Path, under+".") {
			return true
		}
	}
	return false
}

func (w *requestWriter) extras(under string) {
	if !w.own {
		return
	}
	for _, f := range w.r.Extra {
		at, name := "", f.Path
		if i := strings.LastIndexByte(f.Path, '.'); i >= 0 {
			at, name = f.Path[:i], f.Path[i+1:]
		}
		if at == under {
			w.Key(name).Raw(f.Raw)
		}
	}
}

func (w *requestWriter) theirs(fields []neutral.Field) {
	if !w.own {
		return
	}
	for _, f := range fields {
		if f.Path != noID {
			w.Key(f.Path[strings.LastIndexByte(f.Path, '.')+1:]).Raw(f.Raw)
		}
	}
}

func (w *requestWriter) turn(t *neutral.Turn) {
	w.Open()
	role := "user"
	if t.Role == neutral.Model {
		role = "model"
	}
	if !hasMember(t.Extra, "role") {
		w.Key("role").String(role)
	}
	w.Key("parts").List()
	unsigned := !w.own && wantsSignature(w.t.Model)
	for i := range t.Parts {
		p := t.Parts[i]
		if unsigned && p.Kind == neutral.Call {
			if unsigned = false; p.Signature.Value == "" {
				p.Signature.Value = skipSignature
			}
		}
		w.part(&p)
	}
	w.End()
	w.theirs(t.Extra)
	w.Close()
}

// skipSignature stands for the signature of a call that the model did not make itself, or whose signature is lost. Google documents it
// for conversations that come from another model.
const skipSignature = "skip_thought_signature_validator"

// wantsSignature says whether a model refuses a turn whose first call is without a signature: those from gemini 3 on (TR-19).
func wantsSignature(model string) bool {
	_, version, ok := strings.Cut(model, "gemini-")
	return ok && version != "" && version[0] >= '3' && version[0] <= '9'
}

func hasMember(fields []neutral.Field, name string) bool {
	for _, f := range fields {
		if strings.HasSuffix(f.Path, "."+name) {
			return true
		}
	}
	return false
}

// id writes the id of a call or result unless it came without one.
func (w *requestWriter) id(p *neutral.Part, id string) {
	for _, f := range p.Extra {
		if f.Path == noID && w.own {
			return
		}
	}
	w.Key("id").String(id)
}

func (w *requestWriter) name(s string) string {
	if w.own {
		return s
	}
	return repair.ToolNameGemini.Map(s)
}

func (w *requestWriter) part(p *neutral.Part) {
	switch p.Kind {
	case neutral.Text, neutral.Refusal:
		w.Open().Key("text").String(p.Text)
	case neutral.Thought:
		w.Open().Key("text").String(p.Text).Key("thought").Bool(true)
	case neutral.Image, neutral.Document, neutral.Audio:
		w.media(p)
	case neutral.Call:
		w.call(p)
	case neutral.Result:
		w.result(p)
		return
	case neutral.Unknown:
		if w.own {
			w.Raw(p.Raw)
			return
		}
		w.note(p.Path, "dropped")
		return
	}
	if p.Signature.Value != "" {
		w.Key("thoughtSignature").String(p.Signature.Value)
	}
	w.theirs(p.Extra)
	w.Close()
}

func (w *requestWriter) media(p *neutral.Part) {
	m := &p.Media
	if m.URL == "" {
		w.Open().Key("inlineData").Open().Key("mimeType").String(m.Type).Key("data").String(m.Base64).Close()
		return
	}
	kind := m.Type
	if kind == "" && !w.own {
		clean, _, _ := strings.Cut(m.URL, "?")
		kind, _, _ = strings.Cut(mime.TypeByExtension(path.Ext(clean)), ";")
	}
	w.Open().Key("fileData").Open()
	if kind != "" {
		w.Key("mimeType").String(kind)
	}
	w.Key("fileUri").String(m.URL).Close()
}

func (w *requestWriter) call(p *neutral.Part) {
	w.Open().Key("functionCall").Open()
	w.id(p, p.Call.ID)
	w.Key("name").String(w.name(p.Call.Name)).Key("args")
	if p.Call.Custom {
		w.Open().Key("input").String(p.Call.Arguments).Close().Close()
		return
	}
	raw, ok := object(p.Call.Arguments)
	if !ok {
		w.notes = append(w.notes, neutral.Note{Field: p.Path, What: "arguments are no object: kept under _raw"})
	}
	w.Raw(raw).Close()
}

// result writes what a tool said as an object, and its media as parts of their own (TR-15).
func (w *requestWriter) result(p *neutral.Part) {
	res := &p.Result
	w.Open().Key("functionResponse").Open()
	w.id(p, res.ID)
	w.Key("name").String(w.name(res.Name)).Key("response")
	if w.own {
		w.Raw(res.Object).Close()
		w.theirs(p.Extra)
		w.Close()
		return
	}
	var text strings.Builder
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
	name := "output"
	if res.Error {
		name = "error"
	}
	w.Open().Key(name).String(text.String()).Close().Close().Close()
	for i := range media {
		w.part(&media[i])
	}
}
