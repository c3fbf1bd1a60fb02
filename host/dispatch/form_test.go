package dispatch_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/host/body"
	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/sdk/wire"
)

const transcriptions = "/v1/audio/transcriptions"

// form sends a multipart body of which only head is in memory.
func (b *bench) form(head, rest string) (*client, *dispatch.Trail) {
	b.t.Helper()
	text := `{"model":"acme/m"}`
	buf, err := body.Read(strings.NewReader(text), int64(len(text)), 1<<20)
	if err != nil {
		b.t.Fatal(err)
	}
	defer buf.Release()
	scan, err := buf.Scan()
	if err != nil {
		b.t.Fatal(err)
	}
	from := strings.Index(head, "acme/m")
	f := &dispatch.Form{Type: "multipart/form-data; boundary=x", Head: []byte(head), From: from, To: from + len("acme/m"), Size: int64(len(head) + len(rest))}
	if rest != "" {
		f.Rest = strings.NewReader(rest)
	}
	c := &client{}
	return c, b.d.Do(b.t.Context(), &dispatch.Call{
		RequestID: "req-1", Endpoint: transcriptions, Dialect: wire.RawDialect, Catalog: b.snap, Route: b.direct(), Model: "acme/m",
		Body: buf, Scan: scan, Header: http.Header{}, Form: f,
	}, c)
}

const head = "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nacme/m\r\n--x--\r\n"

// INF-7: a form that is kept goes to the next account after a failure, under the upstream's name of the model and with its own type.
func TestFormIsRepeated(t *testing.T) {
	b := newBench(t).speaks(wire.RawDialect, transcriptions, "/audio/transcriptions")
	b.with("a", fails(500, `{"error":{"message":"down"}}`)).with("b", func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Content-Type"); got != "multipart/form-data; boundary=x" {
			t.Errorf("Content-Type %q", got)
		}
		w.Header().Set("Content-Type", "audio/mpeg")
		_, _ = w.Write([]byte{0xff, 0xfb, 0, 1})
	})
	c, _ := b.form(head, "")
	if c.status != 200 || c.body.String() != "\xff\xfb\x00\x01" || c.header.Get("Content-Type") != "audio/mpeg" {
		t.Errorf("%d %q %v", c.status, c.body.String(), c.header)
	}
	want := strings.Replace(head, "acme/m", "m", 1)
	if !slices.Equal(b.bodies, []string{want, want}) {
		t.Errorf("%q", b.bodies)
	}
}

// INF-7: what is not kept is sent once; the failure of that one provider is the answer.
func TestLongFormIsSentOnce(t *testing.T) {
	b := newBench(t).speaks(wire.RawDialect, transcriptions, "/audio/transcriptions")
	b.with("a", fails(500, `{"error":{"message":"down"}}`)).with("b", answers)
	_, trail := b.form(head, "the rest")
	if trail.Failure == nil || trail.Failure.Status != 500 || !slices.Equal(b.seen(), []string{"a"}) {
		t.Errorf("%+v", trail.Failure)
	}
	if !strings.HasSuffix(b.bodies[0], "\r\nthe rest") {
		t.Errorf("%q", b.bodies)
	}
}

// INF-7: an account that could not be reached took nothing, so that the body can still go to another.
func TestLongFormAfterARefusedConnection(t *testing.T) {
	b := newBench(t).speaks(wire.RawDialect, transcriptions, "/audio/transcriptions")
	b.with("a", answers).with("b", answers)
	b.prov.Connections[0].BaseURL = "http://127.0.0.1:1/v1"
	c, _ := b.form(head, "the rest")
	if c.status != 200 || !slices.Equal(b.seen(), []string{"b"}) {
		t.Errorf("%d %s", c.status, c.body.String())
	}
}

// INF-7: a provider without the endpoint is passed over.
func TestRawWithoutTheEndpoint(t *testing.T) {
	b := newBench(t).speaks(wire.OpenAIChat, "/v1/chat/completions", "/chat/completions").with("a", answers)
	other := &catalog.Provider{ID: "other", BaseURL: b.prov.BaseURL, Category: catalog.Local, Auth: wire.AuthAPIKey,
		Dialects: map[string]wire.Dialect{"/v1/embeddings": wire.RawDialect}}
	other.Connections = []*catalog.Connection{{ID: "o", Provider: "other", AuthType: wire.AuthAPIKey, Active: true,
		Secrets: map[string]catalog.Secret{"api_key": catalog.NewSecret("o")}}}
	b.by["o"] = answers
	rt := &catalog.Route{Kind: catalog.KindCombo, Name: "c", Targets: []catalog.RouteTarget{
		{Key: "acme/m", Provider: b.prov, Model: "m"}, {Key: "other/m", Provider: other, Model: "m"}}}
	text := `{"model":"c","input":"x"}`
	buf, err := body.Read(strings.NewReader(text), int64(len(text)), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	defer buf.Release()
	scan, err := buf.Scan()
	if err != nil {
		t.Fatal(err)
	}
	c := &client{}
	b.d.Do(t.Context(), &dispatch.Call{RequestID: "r", Endpoint: "/v1/embeddings", Dialect: wire.RawDialect, Catalog: b.snap, Route: rt, Model: "c",
		Body: buf, Scan: scan, Header: http.Header{}}, c)
	if c.status != 200 || !slices.Equal(b.seen(), []string{"o"}) {
		t.Errorf("%d %s", c.status, c.body.String())
	}
}

// INF-7: the events of a raw endpoint pass as they come; their end is the end.
func TestRawEvents(t *testing.T) {
	b := newBench(t).speaks(wire.RawDialect, "/v1/audio/speech", "/audio/speech").with("a", streams("data: {\"type\":\"speech.audio.delta\"}", "data: {\"type\":\"speech.audio.done\"}"))
	c, trail := b.ask(wire.RawDialect, "/v1/audio/speech", `{"model":"acme/m","input":"hi"}`, false)
	if want := "data: {\"type\":\"speech.audio.delta\"}\n\ndata: {\"type\":\"speech.audio.done\"}\n\n"; c.body.String() != want || trail.Failure != nil || trail.Partial {
		t.Errorf("%q %+v", c.body.String(), trail.Failure)
	}
}

// INF-1: ?beta=true goes on to an upstream of messages, and changes nothing else.
func TestBetaIsForwarded(t *testing.T) {
	var query string
	b := newBench(t).messages().with("a", func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.RawQuery
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, messagesAnswer)
	})
	for _, beta := range []bool{true, false} {
		text := `{"model":"acme/large","max_tokens":5,"messages":[{"role":"user","content":"hi"}]}`
		buf, err := body.Read(strings.NewReader(text), int64(len(text)), 1<<20)
		if err != nil {
			t.Fatal(err)
		}
		scan, err := buf.Scan()
		if err != nil {
			t.Fatal(err)
		}
		b.d.Do(t.Context(), &dispatch.Call{RequestID: "r", Endpoint: "/v1/messages", Dialect: wire.AnthropicMessages, Catalog: b.snap, Route: b.direct(),
			Model: "acme/large", Body: buf, Scan: scan, Header: http.Header{}, Beta: beta}, &client{})
		buf.Release()
		if want := map[bool]string{true: "beta=true"}[beta]; query != want {
			t.Errorf("beta %v: %q", beta, query)
		}
	}
}

// INF-22, INF-23: an upstream of the client's own dialect that leaves out usage and adds events of its own is put right on the way.
func TestMendedStream(t *testing.T) {
	odd := "event: gateway.note\ndata: {\"type\":\"gateway.note\"}"
	bare := strings.Replace(start, `,"usage":{"input_tokens":5,"output_tokens":1}`, "", 1)
	for _, beta := range []string{"", "context-1m"} {
		b := newBench(t).messages().with("a", streams(bare, opened, odd, delta, closed, stopped))
		header := []string{}
		if beta != "" {
			header = []string{"Anthropic-Beta", beta}
		}
		c, trail := b.ask(wire.AnthropicMessages, "/v1/messages", `{"model":"acme/large","max_tokens":5,"stream":true,"messages":[{"role":"user","content":"hi"}]}`, true, header...)
		got := c.body.String()
		if !strings.Contains(got, `"usage":{"input_tokens":23,"output_tokens":1}`) || !strings.HasSuffix(got, stop+"\n\n") {
			t.Error(got)
		}
		if strings.Contains(got, "gateway.note") != (beta != "") {
			t.Errorf("beta %q: %s", beta, got)
		}
		if len(trail.Notes) == 0 {
			t.Error("nothing was noted")
		}
	}
}
