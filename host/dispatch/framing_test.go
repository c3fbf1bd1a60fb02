package dispatch

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/resilience"
	"github.com/weirgate/weir/host/settings"
	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/translate/neutral"
	"github.com/weirgate/weir/host/upstream"
	"github.com/weirgate/weir/rules"
	"github.com/weirgate/weir/sdk/wire"
	"github.com/weirgate/weir/store"
)

// stage runs recorded streams through the pump alone, without a network: what an upstream of one dialect sends, to a client of another.
type stage struct {
	d      *Dispatcher
	snap   *catalog.Snapshot
	target catalog.Target
}

func newStage() *stage {
	return &stage{
		d: New(Options{
			Ladder: resilience.NewLadder(), Journal: func(...store.Event) {}, Meter: noMeter{}, Redact: func(s string) string { return s }, Now: time.Now,
		}),
		snap: &catalog.Snapshot{Settings: &settings.Values{
			ReadinessTimeout: time.Minute, StreamIdleTimeout: time.Minute, ContentStall: -1, Heartbeat: time.Minute,
			Streams: settings.Streams{MaxEventBytes: 16 << 20, HoldMaxBytes: 4 << 20},
		}},
		target: catalog.Target{Provider: &catalog.Provider{ID: "acme"}, Connection: &catalog.Connection{ID: "a"}, Model: "m", Requested: "acme/m"},
	}
}

type noMeter struct{}

func (noMeter) Attempt(string, wire.Reason) {}
func (noMeter) Fallback(wire.Reason)        {}
func (noMeter) Refused(string)              {}
func (noMeter) Restated(string)             {}

// noOpinion is a set of plugins whose judges have none.
type noOpinion struct{}

func (noOpinion) Acquire() PluginSet                           { return noOpinion{} }
func (noOpinion) Release()                                     {}
func (noOpinion) Executor(*catalog.Provider) (Executor, error) { return nil, ErrPluginUnavailable }
func (noOpinion) Judge(*catalog.Provider) Judge                { return noOpinion{} }
func (noOpinion) Restate(context.Context, *rules.Reply) (wire.Restatement, bool) {
	return wire.Restatement{}, false
}
func (noOpinion) Classify(context.Context, *rules.Reply) (wire.Verdict, bool) {
	return wire.Verdict{}, false
}

// seen is what a client got.
type seen struct {
	bytes.Buffer
	status int
}

func (s *seen) Commit(status int, _ http.Header, _ *Trail) { s.status = status }
func (s *seen) Write(p []byte) error                       { _, _ = s.Buffer.Write(p); return nil }
func (s *seen) Flush() error                               { return nil }

var asks = map[wire.Dialect]string{
	wire.OpenAIChat:        `{"model":"x","stream":true,"stream_options":{"include_usage":true},"messages":[{"role":"user","content":"hi"}]}`,
	wire.AnthropicMessages: `{"model":"x","stream":true,"max_tokens":9,"messages":[{"role":"user","content":"hi"}]}`,
	wire.OpenAIResponses:   `{"model":"x","stream":true,"input":"hi"}`,
	wire.GeminiGenerate:    `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`,
}

// show pumps a stream and returns what the client got, and what became of the request.
func (s *stage) show(t testing.TB, from, to wire.Dialect, r io.Reader) (*seen, *Trail) {
	t.Helper()
	buf, err := body.Read(strings.NewReader(asks[to]), int64(len(asks[to])), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer buf.Release()
	scan, err := buf.Scan()
	if err != nil {
		t.Fatal(err)
	}
	out := &seen{}
	trail := &Trail{Began: time.Now(), Usage: neutral.NoUsage()}
	run := &run{d: s.d, out: out, t: trail, plugins: noOpinion{}, c: &Call{
		RequestID: "req-1", Dialect: to, Catalog: s.snap, Route: &catalog.Route{Kind: catalog.KindDirect}, Model: "acme/m", Stream: true, Body: buf, Scan: scan,
	}}
	ticket, _ := s.d.Ladder.Admit(run.at(), s.target)
	a := &attempt{
		r: run, target: s.target, ticket: ticket, began: time.Now(), firstAt: time.Now(), usage: neutral.NoUsage(), spent: neutral.NoUsage(),
		prep: &upstream.Prepared{Dialect: from, Native: true}, resp: &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(r)},
	}
	if err := a.findWay(); err != nil {
		t.Fatal(err)
	}
	actx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	a.cancel = cancel
	a.clock.start(cancel, 0)
	defer a.clock.stop()
	a.stream(t.Context(), actx)
	return out, trail
}

// recorded are the streams that were recorded from providers.
func recorded(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../translate/testdata/streams/*.sse")
	if err != nil || len(files) < 30 {
		t.Fatal(files, err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		all[strings.TrimSuffix(filepath.Base(f), ".sse")] = b
	}
	return all
}

func dialectOf(name string) wire.Dialect {
	word, _, _ := strings.Cut(name, "-")
	return map[string]wire.Dialect{
		"chat": wire.OpenAIChat, "messages": wire.AnthropicMessages, "responses": wire.OpenAIResponses, "gemini": wire.GeminiGenerate,
	}[word]
}

// events are what a client sees of a stream: names and data, without comments, and without white space in the JSON.
func events(b []byte) (out []string) {
	upstream.Events(masked(bytes.Clone(b)), func(e upstream.Event) bool {
		var tight bytes.Buffer
		if json.Compact(&tight, e.Data) != nil {
			tight.Reset()
			tight.Write(bytes.TrimSpace(e.Data))
		}
		out = append(out, e.Name+"|"+tight.String())
		return true
	})
	return out
}

// answerIn is the answer that a client of a dialect reads.
func answerIn(d wire.Dialect, b []byte) neutral.Answer {
	codec, _ := translate.Codec(d)
	var c neutral.Collector
	r := codec.NewReader()
	upstream.Events(b, func(e upstream.Event) bool {
		_ = r.Read([]byte(e.Name), e.Data, func(e *neutral.Event) { c.Take(e) })
		return true
	})
	r.End(true, func(e *neutral.Event) { c.Take(e) })
	return c.Answer()
}

// framings are the same stream in odd forms (INF-26).
func framings(b []byte) map[string][]byte {
	b = bytes.TrimPrefix(bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")), []byte("\xef\xbb\xbf"))
	b = bytes.ReplaceAll(b, []byte("\r"), []byte("\n"))
	swap := func(from, to string) []byte { return bytes.ReplaceAll(b, []byte(from), []byte(to)) }
	return map[string][]byte{
		"LF": b, "CRLF": swap("\n", "\r\n"), "CR": swap("\n", "\r"), "no space": swap("\ndata: ", "\ndata:"), "byte order mark": append([]byte("\xef\xbb\xbf"), b...),
		"lines": swap("\ndata: {", "\ndata: {\ndata: "), "ids": swap("\n\n", "\nid: 7\nretry: 10\n\n"), "comments": swap("\n\n", "\n\n: beat\n\n"), "no last blank line": bytes.TrimRight(b, "\n"),
	}
}

// STM-63, INF-26: every recorded stream, in every odd framing, read byte by byte and cut between any two reads, gives the client of each
// dialect the same events, the same usage and the same end.
func TestRecordedStreamsInAnyFraming(t *testing.T) {
	s := newStage()
	for name, b := range recorded(t) {
		from := dialectOf(name)
		for to := range asks {
			plain, first := s.show(t, from, to, bytes.NewReader(framings(b)["LF"]))
			want := events(plain.Bytes())
			check := func(what string, r io.Reader) {
				t.Helper()
				out, trail := s.show(t, from, to, r)
				if d := cmp.Diff(want, events(out.Bytes())); d != "" {
					t.Fatalf("%s to %s, %s: %s", name, to, what, d)
				}
				if trail.Usage != first.Usage || trail.Partial != first.Partial || out.status != plain.status || len(trail.Attempts) != len(first.Attempts) {
					t.Fatalf("%s to %s, %s: %+v, not %+v", name, to, what, trail, first)
				}
			}
			for how, framed := range framings(b) {
				if how == "no last blank line" && strings.Contains(name, "cut") || (first.Estimated || !first.Usage.Stated()) && to == from {
					continue // the half event behind it may parse; an estimate of the usage goes by the bytes that came
				}
				check(how, bytes.NewReader(framed))
				if to == from && len(how) < 5 {
					check(how+" byte by byte", iotest.OneByteReader(bytes.NewReader(framed)))
				}
			}
		}
	}
}

// STM-63: every position of a split of an answer in chat and in messages, and many of the others, in the client's own dialect and in
// another one.
func TestEverySplitOfRecordedStreams(t *testing.T) {
	t.Parallel()
	s := newStage()
	for name, b := range recorded(t) {
		from := dialectOf(name)
		step := 1
		switch {
		case name == "chat-text", name == "messages-text":
		case strings.HasSuffix(name, "-text"):
			step = 11
		default:
			step = 499
		}
		other := wire.OpenAIChat
		if from == other {
			other = wire.AnthropicMessages
		}
		for _, to := range []wire.Dialect{from, other} {
			plain, first := s.show(t, from, to, bytes.NewReader(b))
			for i := 1; i < len(b); i += step {
				out, trail := s.show(t, from, to, io.MultiReader(bytes.NewReader(b[:i]), bytes.NewReader(b[i:])))
				if !bytes.Equal(masked(out.Bytes()), masked(plain.Bytes())) || trail.Usage != first.Usage || trail.Partial != first.Partial {
					t.Fatalf("%s to %s split at %d:\n%s\nnot\n%s", name, to, i, out, plain)
				}
			}
			if step == 1 {
				step = 61
			}
		}
	}
}

// masked is a stream without the second in which it was told.
func masked(b []byte) []byte {
	b = bytes.ReplaceAll(b, []byte(`"created_at": `), []byte(`"created_at":`))
	for _, member := range []string{`"created":`, `"created_at":`} {
		for at := 0; ; {
			i := bytes.Index(b[at:], []byte(member))
			if i < 0 {
				break
			}
			at += i + len(member)
			for k := at; k < len(b) && b[k] >= '0' && b[k] <= '9'; k++ {
				b[k] = '1'
			}
		}
	}
	return b
}

// SCN-11, INF-35: cut at any byte, a stream ends with an error event or, before its first word, with a failure; a proper end is told only
// for the whole answer, and what was told is never more than its beginning.
func TestEveryCutOfRecordedStreams(t *testing.T) {
	t.Parallel()
	s := newStage()
	for name, b := range recorded(t) {
		from := dialectOf(name)
		for _, to := range []wire.Dialect{from, wire.OpenAIChat, wire.AnthropicMessages} {
			plain, first := s.show(t, from, to, bytes.NewReader(b))
			whole := textOf(answerIn(to, plain.Bytes()))
			for i := 0; i < len(b); i += 197 {
				out, trail := s.show(t, from, to, io.MultiReader(bytes.NewReader(b[:i]), iotest.ErrReader(io.ErrUnexpectedEOF)))
				got := textOf(answerIn(to, out.Bytes()))
				switch {
				case !strings.HasPrefix(whole, got):
					t.Fatalf("%s to %s cut at %d: %q is no beginning of %q", name, to, i, got, whole)
				case out.status == 0:
					if trail.Committed || out.Len() > 0 {
						t.Fatalf("%s to %s cut at %d: %s", name, to, i, out)
					}
				case !trail.Partial && (got != whole || first.Partial):
					t.Fatalf("%s to %s cut at %d: a clean end of half an answer: %s", name, to, i, out)
				case trail.Partial && !bytes.Contains(out.Bytes(), []byte(`"error"`)):
					t.Fatalf("%s to %s cut at %d: no error event: %s", name, to, i, out)
				}
			}
		}
	}
}

func textOf(a neutral.Answer) string {
	var b strings.Builder
	for i := range a.Parts {
		b.WriteString(a.Parts[i].Text)
	}
	return b.String()
}

// SCN-14: an event of 8 MiB passes, and one above the limit is an explicit error; what is held for it is bounded.
func TestLargeEvents(t *testing.T) {
	s := newStage()
	event := func(n int) string {
		return `data: {"choices":[{"index":0,"delta":{"content":"` + strings.Repeat("x", n) + `"}}]}` + "\n\n"
	}
	end := `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n" +
		`data: {"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}` + "\n\ndata: [DONE]\n\n"
	out, trail := s.show(t, wire.OpenAIChat, wire.OpenAIChat, strings.NewReader(event(8<<20)+end))
	if trail.Partial || out.Len() != len(event(8<<20)+end) {
		t.Errorf("%d bytes, %+v", out.Len(), trail)
	}
	s.snap.Settings.Streams.MaxEventBytes = 1 << 20
	_, trail = s.show(t, wire.OpenAIChat, wire.OpenAIChat, strings.NewReader(event(1<<20)+end))
	if trail.Committed || len(trail.Attempts) != 1 || trail.Attempts[0].Status != 502 {
		t.Errorf("%+v", trail)
	}
	out, trail = s.show(t, wire.OpenAIChat, wire.OpenAIChat, strings.NewReader(event(5)+event(1<<20)+end))
	if !trail.Partial || trail.Failure.Code != "stream_frame_too_large" || !strings.Contains(trail.Failure.Message, "1048576") || strings.Contains(out.String(), "[DONE]") {
		t.Errorf("%+v", trail.Failure)
	}
}
