package gemini

import (
	"github.com/weirgate/weir/host/translate/jsonw"
	"github.com/weirgate/weir/host/translate/neutral"
)

// Writer writes the chunks of a streamGenerateContent answer (INF-21): calls are never split over chunks. Not for concurrent use.
type Writer struct {
	told  neutral.Told
	ended bool
	said  int64
}

// NewWriter returns a writer for one stream.
func NewWriter(t neutral.Told) *Writer { return &Writer{told: t} }

// Write appends the chunks of one neutral event.
func (w *Writer) Write(dst []byte, e *neutral.Event) []byte {
	switch e.Kind {
	case neutral.Delta:
		w.said += int64(len(e.Text))
		if e.Part.Kind != neutral.Call && e.Text != "" {
			return w.chunk(dst, &neutral.Part{Kind: e.Part.Kind, Text: e.Text})
		}
	case neutral.Close:
		switch {
		case e.Part.Kind == neutral.Call:
			return w.chunk(dst, &e.Part)
		case e.Part.Signature.Value != "":
			return w.chunk(dst, &neutral.Part{Kind: e.Part.Kind, Signature: e.Part.Signature})
		}
	case neutral.Finished:
		return w.finish(dst, e)
	case neutral.Beat: // never a comment (INF-24, INF-25)
		j := jsonw.Writer{B: append(dst, "data: "...)}
		j.Open().Key("candidates").List().End()
		return w.end(&j)
	case neutral.Begin, neutral.Open, neutral.Sign, neutral.Counted, neutral.Failed, neutral.Foreign:
	}
	return dst
}

// end writes the members that every chunk has.
func (w *Writer) end(j *jsonw.Writer) []byte {
	j.Key("modelVersion").String(w.told.Model).Key("responseId").String(w.told.ID).Close()
	return append(j.B, "\n\n"...)
}

func (w *Writer) chunk(dst []byte, p *neutral.Part) []byte {
	j := jsonw.Writer{B: append(dst, "data: "...)}
	j.Open().Key("candidates").List().Open().Key("content").Open().Key("parts").List()
	writePart(&j, p)
	j.End().Key("role").String("model").Close().Key("index").Int(0).Close().End()
	return w.end(&j)
}

func (w *Writer) finish(dst []byte, e *neutral.Event) []byte {
	if w.ended {
		return dst
	}
	w.ended = true
	j := jsonw.Writer{B: append(dst, "data: "...)}
	j.Open().Key("candidates").List().Open().Key("content").Open().Key("parts").List().Open().Key("text").String("").Close().End()
	j.Key("role").String("model").Close().Key("finishReason").String(stopWord(e.Stop)).Key("index").Int(0).Close().End().Key("usageMetadata")
	writeUsage(&j, stated(e.Usage, w.told.Prompt, w.said))
	return w.end(&j)
}
