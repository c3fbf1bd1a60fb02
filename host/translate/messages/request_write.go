package messages

import (
	"slices"
	"strings"

	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/loss"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/translate/repair"
	"github.com/weirgate/weir/sdk/wire"
)

// WriteRequest appends r as the body of a messages request (TR-2).
func WriteRequest(dst []byte, r *neutral.Request, t neutral.Target) ([]byte, []neutral.Note, error) {
	w := requestWriter{Writer: jsonw.Writer{B: dst}, r: r, t: t, own: r.From == wire.AnthropicMessages}
	hosted, err := loss.Hosted(r, wire.AnthropicMessages, t.Strict)
	if err != nil {
		return dst, nil, err
	}
	if err := repair.Names(r.Tools, repair.ToolNameMessages); err != nil && !w.own {
		return dst, nil, err
	}
	notes, err := loss.Fields(r, wire.AnthropicMessages, t.Strict)
	if err != nil {
		return dst, notes, err
	}
	w.notes = append(hosted, notes...)
	w.plan()
	w.Open().Key("model").String(w.model())
	w.Key("max_tokens").Int(w.limit)
	w.system()
	w.Key("messages").List()
	for i := range w.turns {
		w.turn(&w.turns[i], i == len(w.turns)-1)
	}
	w.End()
	w.tools()
	w.sampling()
	w.thinking()
	w.metadata()
	w.extras("")
	w.Close()
	return w.B, w.notes, w.err
}

type requestWriter struct {
	jsonw.Writer
	r      *neutral.Request
	t      neutral.Target
	own    bool // the client spoke messages
	lead   []neutral.Part
	turns  []neutral.Turn
	limit  int64
	budget int64 // tokens of thinking; 0: off
	notes  []neutral.Note
	err    error
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

const (
	defaultLimit = 8192 // TR-16
	minBudget    = 1024 // the least that the API takes
	overBudget   = 1024 // how much an answer may have beside its thinking
)

// plan settles what several members depend on: the turns, the limit and the budget of thinking (TR-16, TR-17).
func (w *requestWriter) plan() {
	w.lead, w.turns = w.r.System, w.r.Turns
	if !w.own {
		var rest []neutral.Turn
		w.lead, rest = w.r.Leading()
		w.turns = repair.Alternating(rest)
	}
	switch {
	case w.r.MaxOutput != nil:
		w.limit = *w.r.MaxOutput
	case w.t.MaxOutput > 0:
		w.limit = w.t.MaxOutput
	default:
		w.limit = defaultLimit
	}
	if w.own {
		return
	}
	level := w.r.Reasoning.Level()
	if level == "" || level == "none" {
		return
	}
	if !w.t.Thinks {
		w.note("reasoning", "dropped")
		return
	}
	budget, ok := w.r.Reasoning.Tokens(w.t.MaxOutput)
	if !ok {
		budget, _ = neutral.Reasoning{Effort: level}.Tokens(w.t.MaxOutput)
	}
	w.budget = max(budget, minBudget)
	if top := w.t.MaxOutput; top > 0 && w.budget >= top {
		w.budget = max(top-overBudget, minBudget)
	}
	if w.limit <= w.budget {
		w.limit = w.budget + overBudget
	}
}

// system writes what leads the conversation (TR-11) and asks for JSON where the client did (TR-24).
func (w *requestWriter) system() {
	parts := w.lead
	if w.own {
		if len(parts) == 0 {
			return
		}
		w.Key("system")
		if w.r.SystemPlain {
			w.String(parts[0].Text)
			return
		}
		w.List()
		for i := range parts {
			w.block(&parts[i])
		}
		w.End()
		return
	}
	text := repair.Joined(parts)
	if w.r.Format.Kind == neutral.FormatJSON {
		text = strings.TrimPrefix(text+"\n\nAnswer with a single JSON value and nothing else.", "\n\n")
	}
	if text == "" {
		return
	}
	w.Key("system")
	if !w.t.Marks {
		w.String(text)
		return
	}
	w.List().Open().Key("type").String("text").Key("text").String(text)
	w.mark()
	w.Close().End()
}

// mark sets a cache mark (TR-25).
func (w *requestWriter) mark() {
	w.Key("cache_control").Open().Key("type").String("ephemeral").Close()
}

func (w *requestWriter) turn(t *neutral.Turn, last bool) {
	role := "user"
	switch t.Role {
	case neutral.Model:
		role = "assistant"
	case neutral.System, neutral.Developer:
		role = "system"
	case neutral.User:
	}
	w.Open().Key("role").String(role).Key("content")
	if t.Plain && len(t.Parts) == 1 && t.Parts[0].Kind == neutral.Text {
		text := t.Parts[0].Text
		if last && role == "assistant" && !w.own {
			text = strings.TrimRight(text, " \t\r\n") // TR-10
		}
		w.String(text)
	} else {
		w.List()
		for i := range t.Parts {
			p := t.Parts[i]
			if last && role == "assistant" && !w.own && i == len(t.Parts)-1 && p.Kind == neutral.Text {
				p.Text = strings.TrimRight(p.Text, " \t\r\n")
			}
			w.block(&p)
		}
		w.End()
	}
	w.theirs(t.Extra)
	w.Close()
}

// theirs writes again what the neutral form has no word for, within the dialect.
func (w *requestWriter) theirs(fields []neutral.Field) {
	if !w.own {
		return
	}
	for _, f := range fields {
		w.Key(f.Path[strings.LastIndexByte(f.Path, '.')+1:]).Raw(f.Raw)
	}
}

// extras writes those of the body itself, or of one of its objects.
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

// has says whether an object of the body had members that the neutral form has no word for.
func (w *requestWriter) has(under string) bool {
	return w.own && slices.ContainsFunc(w.r.Extra, func(f neutral.Field) bool { return strings.HasPrefix(f.Path, under+".") })
}

// block writes one content block.
func (w *requestWriter) block(p *neutral.Part) {
	switch p.Kind {
	case neutral.Text, neutral.Refusal:
		w.Open().Key("type").String("text").Key("text").String(p.Text)
	case neutral.Image, neutral.Document:
		if !w.media(p) {
			return
		}
	case neutral.Thought:
		w.thought(p)
	case neutral.Call:
		w.call(p)
	case neutral.Result:
		w.result(p)
	case neutral.Unknown:
		if !w.own {
			w.note(p.Path, "dropped")
			return
		}
		w.Raw(p.Raw)
		return
	case neutral.Audio:
		w.fail(p.Path, "audio is nothing that this model takes; leave it out, or ask for another model")
		return
	}
	if p.CacheMark != nil && w.own {
		w.Key("cache_control").Raw(p.CacheMark)
	}
	w.theirs(p.Extra)
	w.Close()
}

func (w *requestWriter) fail(path, message string) {
	if w.err == nil {
		w.err = neutral.Faultf(path, "%s", message)
	}
}

// imageTypes are what the API takes (TR-21).
var imageTypes = []string{"image/jpeg", "image/png", "image/gif", "image/webp"}

func (w *requestWriter) media(p *neutral.Part) bool {
	kind := "image"
	if p.Kind == neutral.Document {
		kind = "document"
	}
	m := &p.Media
	switch {
	case w.own || m.URL != "":
	case p.Kind == neutral.Image && !slices.Contains(imageTypes, m.Type):
		w.fail(p.Path, "images of the type "+m.Type+" are not taken by this model; send jpeg, png, gif or webp")
		return false
	case p.Kind == neutral.Document && m.Type != "application/pdf":
		w.fail(p.Path, "documents of the type "+m.Type+" are not taken by this model; send a PDF or plain text")
		return false
	}
	w.Open().Key("type").String(kind).Key("source").Open()
	if m.URL != "" {
		w.Key("type").String("url").Key("url").String(m.URL)
	} else {
		w.Key("type").String("base64").Key("media_type").String(m.Type).Key("data").String(m.Base64)
	}
	w.Close()
	if m.Name != "" && p.Kind == neutral.Document {
		w.Key("title").String(m.Name)
	}
	return true
}

func (w *requestWriter) thought(p *neutral.Part) {
	if p.Signature.Redacted {
		w.Open().Key("type").String("redacted_thinking").Key("data").String(p.Signature.Value)
		return
	}
	w.Open().Key("type").String("thinking").Key("thinking").String(p.Text).Key("signature").String(p.Signature.Value)
}

func (w *requestWriter) call(p *neutral.Part) {
	c := &p.Call
	w.Open().Key("type").String("tool_use")
	if w.own {
		w.Key("id").String(c.ID).Key("name").String(c.Name).Key("input").Raw([]byte(c.Arguments))
		return
	}
	w.Key("id").String(repair.CallID.Map(c.ID)).Key("name").String(repair.ToolNameMessages.Map(c.Name)).Key("input")
	if c.Custom {
		w.Open().Key("input").String(c.Arguments).Close()
		return
	}
	raw, ok := object(c.Arguments)
	if !ok {
		w.notes = append(w.notes, neutral.Note{Field: p.Path, What: "arguments are no object: kept under _raw"})
	}
	w.Raw(raw)
}

func (w *requestWriter) result(p *neutral.Part) {
	res := &p.Result
	id := res.ID
	if !w.own {
		id = repair.CallID.Map(id)
	}
	w.Open().Key("type").String("tool_result").Key("tool_use_id").String(id)
	switch {
	case res.Plain && len(res.Parts) == 1:
		w.Key("content").String(res.Parts[0].Text)
	case res.Parts != nil || !w.own:
		w.Key("content").List()
		for i := range res.Parts {
			w.block(&res.Parts[i])
		}
		w.End()
	}
	if res.Error {
		w.Key("is_error").Bool(true)
	}
}
