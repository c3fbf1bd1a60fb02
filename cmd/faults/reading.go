package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// answer is what a client got.
type answer struct {
	status   int
	header   http.Header
	raw      string
	text     string
	model    string
	failed   bool // an error event, or an error document
	ended    bool // the dialect's end mark
	broken   bool // the connection broke
	finishes int  // reasons to end that were stated
	input    int
	output   int
	took     time.Duration
}

// document holds what both dialects say, in answers and in events.
type document struct {
	Type    string
	Model   string
	Error   json.RawMessage
	Content []struct{ Text string }
	Choices []struct {
		Message struct{ Content string }
		Delta   struct{ Content string }
		Finish  *string `json:"finish_reason"`
	}
	Message struct {
		Model string
		Usage usage
	}
	Delta struct {
		Text   string
		Reason string `json:"stop_reason"`
	}
	Usage usage
}

type usage struct {
	Prompt     int `json:"prompt_tokens"`
	Completion int `json:"completion_tokens"`
	Input      int `json:"input_tokens"`
	Output     int `json:"output_tokens"`
}

// ask sends one request and reads its answer to the end.
func (d *spoken) ask(ctx context.Context, gateway, model string, stream bool) answer {
	began := time.Now()
	a := answer{}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, gateway+d.path, strings.NewReader(d.body(model, stream)))
	if err != nil {
		a.broken = true
		return a
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		a.broken, a.took = true, time.Since(began)
		return a
	}
	defer resp.Body.Close() //nolint:errcheck // read to its end
	a.status, a.header = resp.StatusCode, resp.Header
	b, err := io.ReadAll(resp.Body)
	a.broken, a.raw, a.took = err != nil, string(b), time.Since(began)
	if strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		a.events()
	} else {
		a.take("", a.raw)
	}
	return a
}

// events reads a stream.
func (a *answer) events() {
	s := bufio.NewScanner(strings.NewReader(a.raw))
	s.Buffer(nil, 1<<20)
	name := ""
	for s.Scan() {
		switch line := s.Text(); {
		case line == "":
			name = ""
		case strings.HasPrefix(line, "event: "):
			name = line[len("event: "):]
		case line == "data: [DONE]":
			a.ended = true
		case strings.HasPrefix(line, "data: "):
			a.take(name, line[len("data: "):])
		}
	}
}

// take reads one document.
func (a *answer) take(name, data string) {
	var d document
	if err := json.Unmarshal([]byte(data), &d); err != nil {
		a.text += "<" + err.Error() + ">"
		return
	}
	a.failed = a.failed || name == "error" || len(d.Error) > 0 && string(d.Error) != "null"
	a.ended = a.ended || d.Type == "message_stop"
	a.model = first(a.model, d.Model, d.Message.Model)
	for _, c := range d.Choices {
		a.text += c.Message.Content + c.Delta.Content
		if c.Finish != nil {
			a.finishes++
		}
	}
	for _, c := range d.Content {
		a.text += c.Text
	}
	a.text += d.Delta.Text
	if d.Delta.Reason != "" {
		a.finishes++
	}
	for _, u := range []usage{d.Usage, d.Message.Usage} {
		a.input = max(a.input, u.Prompt, u.Input)
		a.output = max(a.output, u.Completion, u.Output)
	}
}

func first(words ...string) string {
	for _, w := range words {
		if w != "" {
			return w
		}
	}
	return ""
}

// whole says whether the client got one whole answer, and what is wrong with it.
func (a *answer) whole() error {
	switch {
	case a.broken:
		return fmt.Errorf("the connection broke after %s", a.took.Round(time.Millisecond))
	case a.status != http.StatusOK:
		return fmt.Errorf("status %d: %.200s", a.status, a.raw)
	case a.failed:
		return fmt.Errorf("an error: %.300s", a.raw[max(0, len(a.raw)-300):])
	case a.text != text(0, tokens):
		return fmt.Errorf("the text is %q", a.text)
	}
	return nil
}

// stream is whole for a stream: it also ended properly, once.
func (a *answer) stream() error {
	switch {
	case a.whole() != nil:
		return a.whole()
	case !a.ended:
		return fmt.Errorf("no end mark: %q", a.raw[max(0, len(a.raw)-200):])
	case a.finishes != 1:
		return fmt.Errorf("%d reasons to end", a.finishes)
	}
	return nil
}

// honest says whether a stream that was cut behind n tokens ended in one error event, with nothing repeated and no proper end.
func (a *answer) honest(n int) error {
	switch {
	case a.broken:
		return fmt.Errorf("the connection broke")
	case a.ended || a.finishes > 0:
		return fmt.Errorf("a clean end of half an answer")
	case !a.failed:
		return fmt.Errorf("no error event: %q", a.raw[max(0, len(a.raw)-200):])
	case a.text != text(0, n):
		return fmt.Errorf("the text is %q", a.text)
	}
	return nil
}
