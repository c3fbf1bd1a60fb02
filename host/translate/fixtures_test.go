package translate_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/sdk/wire"
)

// prefixes name the dialect of a recorded stream.
var prefixes = map[string]wire.Dialect{
	"chat": wire.OpenAIChat, "responses": wire.OpenAIResponses, "messages": wire.AnthropicMessages, "gemini": wire.GeminiGenerate,
}

// dialectOf is the dialect of a recorded request; empty: it is none for generation.
func dialectOf(path string) wire.Dialect {
	switch {
	case strings.HasSuffix(path, "/chat/completions"):
		return wire.OpenAIChat
	case strings.HasSuffix(path, "/responses"):
		return wire.OpenAIResponses
	case strings.Contains(path, "/messages") && !strings.Contains(path, "count_tokens"):
		return wire.AnthropicMessages
	case strings.Contains(strings.ToLower(path), "generatecontent"):
		return wire.GeminiGenerate
	}
	return ""
}

type recorded struct {
	Path string          `json:"path"`
	Body json.RawMessage `json:"body"`
}

// eachRequest calls f for the recorded requests of the dialects that there are.
func eachRequest(t *testing.T, f func(t *testing.T, d wire.Dialect, c neutral.Codec, body []byte)) {
	t.Helper()
	files, err := filepath.Glob("testdata/requests/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no recorded requests", err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var r recorded
		if err := json.Unmarshal(b, &r); err != nil {
			t.Fatal(file, err)
		}
		path, _, _ := strings.Cut(r.Path, "?")
		d := dialectOf(path)
		c, ok := translate.Codec(d)
		if !ok {
			continue
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) { f(t, d, c, r.Body) })
	}
}

// TR-1: what is read and written in one dialect is the same body.
func TestIdentity(t *testing.T) {
	eachRequest(t, func(t *testing.T, _ wire.Dialect, c neutral.Codec, body []byte) {
		r, err := c.ReadRequest(body)
		if err != nil {
			t.Fatal(err)
		}
		out, notes, err := c.WriteRequest(nil, r, neutral.Target{Model: r.Model, Strict: true})
		if err != nil || len(notes) > 0 {
			t.Fatalf("notes %v, error %v", notes, err)
		}
		if diff := cmp.Diff(value(t, body), value(t, out)); diff != "" {
			t.Errorf("(-read +written)\n%s", diff)
		}
	})
}

// value is JSON with its numbers as they were written.
func value(t *testing.T, b []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	return v
}

// TR-26: a recorded stream tells the same as the plain answer of the same name.
func TestStreamsTellTheAnswer(t *testing.T) {
	for prefix, d := range prefixes {
		c, ok := translate.Codec(d)
		if !ok {
			continue
		}
		files, _ := filepath.Glob("testdata/streams/" + prefix + "-*.sse")
		for _, file := range files {
			plain, err := os.ReadFile(strings.TrimSuffix(file, ".sse") + ".json")
			if err != nil {
				continue // cut or broken on purpose
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".sse"), func(t *testing.T) {
				want, err := c.ReadAnswer(plain)
				if err != nil {
					t.Fatal(err)
				}
				got, failed := collect(t, c, file)
				if failed != nil {
					t.Fatalf("failed with %s", failed)
				}
				if diff := cmp.Diff(comparable(want), comparable(&got)); diff != "" {
					t.Errorf("(-plain +stream)\n%s", diff)
				}
			})
		}
	}
}

// comparable leaves out what a stream tells otherwise: ids of the transport and the time.
func comparable(a *neutral.Answer) neutral.Answer {
	out := *a
	out.Created = 0
	return out
}

// collect reads a recorded stream into one answer.
func collect(t *testing.T, c neutral.Codec, file string) (neutral.Answer, []byte) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var into neutral.Collector
	var failed []byte
	r := c.NewReader()
	emit := func(e *neutral.Event) {
		if e.Kind == neutral.Failed {
			failed = bytes.Clone(e.Raw)
		}
		into.Take(e)
	}
	for _, e := range eventsOf(string(b)) {
		if err := r.Read([]byte(e.name), []byte(e.data), emit); err != nil {
			t.Fatalf("%s: %v", e.data, err)
		}
	}
	r.End(true, emit)
	return into.Answer(), failed
}

type sse struct{ name, data string }

// eventsOf splits a stream as INF-26 says.
func eventsOf(s string) (out []sse) {
	s = strings.TrimPrefix(s, "\ufeff")
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	for _, block := range strings.Split(s, "\n\n") {
		var e sse
		var data []string
		for _, line := range strings.Split(block, "\n") {
			name, v, _ := strings.Cut(line, ":")
			v = strings.TrimPrefix(v, " ")
			switch name {
			case "event":
				e.name = v
			case "data":
				data = append(data, v)
			}
		}
		if len(data) > 0 {
			e.data = strings.Join(data, "\n")
			out = append(out, e)
		}
	}
	return out
}

// INF-21, INF-22, TR-26: what is written as a stream of a dialect reads as the same answer again, and so does what is written whole.
func TestAnswersComeBack(t *testing.T) {
	for prefix, d := range prefixes {
		c, ok := translate.Codec(d)
		if !ok {
			continue
		}
		files, _ := filepath.Glob("testdata/streams/" + prefix + "-*.json")
		for _, file := range files {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".json"), func(t *testing.T) {
				plain, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				want, err := c.ReadAnswer(plain)
				if err != nil {
					t.Fatal(err)
				}
				told := neutral.Told{ID: "gw-1", Model: "asked", Created: 5, Usage: true, Prompt: 9, Request: &neutral.Request{}}
				again, err := c.ReadAnswer(c.WriteAnswer(nil, want, told))
				if err != nil {
					t.Fatal(err)
				}
				same(t, "plain", want, again)
				var text []byte
				w := c.NewWriter(told)
				neutral.Play(want, func(e *neutral.Event) { text = w.Write(text, e) })
				var into neutral.Collector
				r := c.NewReader()
				for _, e := range eventsOf(string(text)) {
					if err := r.Read([]byte(e.name), []byte(e.data), into.Take); err != nil {
						t.Fatalf("%s: %v", e.data, err)
					}
				}
				r.End(true, into.Take)
				got := into.Answer()
				same(t, "stream", want, &got)
			})
		}
	}
}

func same(t *testing.T, how string, want, got *neutral.Answer) {
	t.Helper()
	w, g := comparable(want), comparable(got)
	if g.ID != "gw-1" || g.Model != "asked" {
		t.Errorf("TR-8: %s: id %q, model %q", how, g.ID, g.Model)
	}
	w.ID, w.Model, g.ID, g.Model = "", "", "", ""
	if !w.Usage.Stated() { // estimated, never zero (INF-22)
		if g.Usage.Input <= 0 || g.Usage.Output <= 0 {
			t.Errorf("%s: usage %+v", how, g.Usage)
		}
		w.Usage, g.Usage = neutral.Usage{}, neutral.Usage{}
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("%s (-want +got)\n%s", how, diff)
	}
}
