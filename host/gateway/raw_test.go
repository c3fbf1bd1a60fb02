package gateway_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/dispatch"
	"github.com/weirgate/weir/host/gateway"
	"github.com/weirgate/weir/sdk/wire"
)

// served is a door whose provider has every raw endpoint but rerank.
func served(t *testing.T, change func(*gateway.Options)) *door {
	t.Helper()
	dialects := map[string]wire.Dialect{}
	for _, p := range []string{"/v1/embeddings", "/v1/images/generations", "/v1/images/edits", "/v1/audio/transcriptions", "/v1/audio/translations",
		"/v1/audio/speech", "/v1/moderations"} {
		dialects[p] = wire.RawDialect
	}
	snap, faults := catalog.Build(catalog.Sources{
		Described: []catalog.Described{{Plugin: "acme", Builtin: true, Providers: []wire.Provider{{
			ID: "acme", BaseURL: "https://acme.example/v1", Auth: wire.AuthAPIKey, Models: []wire.Model{{ID: "large"}}, Dialects: dialects}}}},
		File: &catalog.Input{Name: "weir.yaml", Connections: []catalog.Entry[catalog.ConnectionInput]{
			{Object: catalog.ConnectionInput{ID: "c1", Provider: "acme", APIKey: "k"}}}},
	})
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	return open(t, func(o *gateway.Options) {
		o.Snapshot = func() *catalog.Snapshot { return snap }
		if change != nil {
			change(o)
		}
	})
}

// INF-7: raw endpoints are chosen by the body's model and are never translated.
func TestRawRoutes(t *testing.T) {
	d := served(t, nil)
	for _, path := range []string{"/v1/embeddings", "/v1/images/generations", "/v1/audio/speech", "/v1/moderations"} {
		d.calls = nil
		resp, text := d.send("POST", path, `{"model":"acme/large","input":"hi"}`)
		if resp.StatusCode != 200 || len(d.calls) != 1 {
			t.Errorf("%s: %d %s", path, resp.StatusCode, text)
			continue
		}
		if c := d.calls[0]; c.Endpoint != path || c.Dialect != wire.RawDialect || c.Model != "acme/large" || c.Form != nil {
			t.Errorf("%s: %+v", path, c)
		}
	}
	if resp, text := d.send("POST", "/v1/rerank", `{"model":"acme/large"}`); resp.StatusCode != 404 || !strings.Contains(text, "acme, which has no /v1/rerank") {
		t.Errorf("a provider without the endpoint: %d %s", resp.StatusCode, text)
	}
	if resp, _ := d.send("GET", "/v1/embeddings", ""); resp.StatusCode != 405 || resp.Header.Get("Allow") == "" {
		t.Errorf("GET: %d", resp.StatusCode)
	}
}

// upload is a form with a file of size bytes before or behind the field model.
func upload(t *testing.T, size int, fileFirst bool) (body []byte, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	file := func() {
		f, err := w.CreateFormFile("file", "model.wav")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = f.Write(bytes.Repeat([]byte("\r\n--not the border\r\n\r\n"), size/22+1)[:size])
	}
	if fileFirst {
		file()
	}
	_ = w.WriteField("response_format", "")
	_ = w.WriteField("model", "acme/large")
	if !fileFirst {
		file()
	}
	_ = w.Close()
	return b.Bytes(), w.FormDataContentType()
}

// INF-7: the model of a form is in a field, wherever it stands; what is above 1 MiB is streamed.
func TestForms(t *testing.T) {
	d := served(t, nil)
	var sent []byte
	d.do = func(c *dispatch.Call, out dispatch.Sink) *dispatch.Trail {
		sent = append([]byte{}, c.Form.Head...)
		if c.Form.Rest != nil {
			rest, err := io.ReadAll(c.Form.Rest)
			if err != nil {
				t.Error(err)
			}
			sent = append(sent, rest...)
		}
		if got := string(c.Form.Head[c.Form.From:c.Form.To]); got != "acme/large" || c.Model != got {
			t.Errorf("model %q, %q", got, c.Model)
		}
		tr := &dispatch.Trail{Committed: true, Status: 200}
		out.Commit(200, http.Header{}, tr)
		return tr
	}
	for _, size := range []int{0, 100, 1 << 20, 3 << 20} {
		for _, fileFirst := range []bool{false, true} {
			text, kind := upload(t, size, fileFirst)
			d.calls = nil
			resp, said := d.send("POST", "/v1/audio/transcriptions", string(text), "Content-Type", kind)
			if resp.StatusCode != 200 || len(d.calls) != 1 {
				t.Fatalf("%d bytes: %d %s", size, resp.StatusCode, said)
			}
			f := d.calls[0].Form
			if !bytes.Equal(sent, text) || f.Size != int64(len(text)) || f.Type != kind {
				t.Errorf("%d bytes: the body was changed", size)
			}
			if kept := f.Rest == nil; kept != (len(text) <= 1<<20) {
				t.Errorf("%d bytes, file first %v: kept %v", size, fileFirst, kept)
			}
		}
	}
}

// INF-7, INF-17: forms without a model, and above the limit.
func TestRefusedForms(t *testing.T) {
	d := served(t, func(o *gateway.Options) { o.MaxBody = 2 << 20 })
	text, kind := upload(t, 3<<20, true)
	if resp, said := d.send("POST", "/v1/images/edits", string(text), "Content-Type", kind); resp.StatusCode != 413 {
		t.Errorf("too large: %d %s", resp.StatusCode, said)
	}
	text, kind = upload(t, 10, true)
	bare := bytes.Replace(text, []byte(`name="model"`), []byte(`name="modal"`), 1)
	if resp, said := d.send("POST", "/v1/images/edits", string(bare), "Content-Type", kind); resp.StatusCode != 400 || !strings.Contains(said, "form field model") {
		t.Errorf("without a model: %d %s", resp.StatusCode, said)
	}
	if len(d.calls) > 0 {
		t.Error("something was dispatched")
	}
}

// INF-10: a key is taken from each of the four places on every route.
func TestKeyOnAllRoutes(t *testing.T) {
	d := open(t, nil, catalog.KeyInput{ID: "laptop", Key: clientKey})
	bare := `{"contents":[{"parts":[{"text":"hi"}]}]}`
	for path, body := range map[string]string{
		"/v1/chat/completions": chat, "/v1/responses": chat, "/v1/messages": chat, "/v1beta/models/acme/large:generateContent": bare,
		"/v1/messages/count_tokens": chat, "/v1/responses/input_tokens": chat, "/v1beta/models/acme/large:countTokens": bare,
	} {
		for _, place := range []string{"X-Api-Key", "X-Goog-Api-Key", "Authorization", ""} {
			at, header := path, []string{place, clientKey}
			switch place {
			case "Authorization":
				header[1] = "Bearer " + clientKey
			case "":
				at, header = path+"?key="+clientKey, nil
			}
			if resp, text := d.send("POST", at, body, header...); resp.StatusCode != 200 {
				t.Errorf("%s with %v: %d %s", path, header, resp.StatusCode, text)
			}
		}
		if resp, _ := d.send("POST", path, body); resp.StatusCode != 401 {
			t.Errorf("%s without a key: %d", path, resp.StatusCode)
		}
	}
}

// INF-18: the id of a request stands in every answer, on messages routes under their own name too, whatever the upstream called it.
func TestRequestIDs(t *testing.T) {
	d := open(t, nil)
	d.do = func(_ *dispatch.Call, out dispatch.Sink) *dispatch.Trail {
		tr := &dispatch.Trail{Committed: true, Status: 200}
		out.Commit(200, http.Header{"Request-Id": {"upstream"}}, tr)
		return tr
	}
	resp, _ := d.send("POST", "/v1/messages", chat)
	if id := resp.Header.Get("X-Request-Id"); id == "" || resp.Header.Get("Request-Id") != id {
		t.Error(resp.Header)
	}
	for _, path := range []string{"/v1/messages/count_tokens", "/v1/messages"} {
		resp, _ = d.send("POST", path, `{"model":"nobody/knows"}`)
		if id := resp.Header.Get("X-Request-Id"); id == "" || resp.Header.Get("Request-Id") != id {
			t.Errorf("%s: %v", path, resp.Header)
		}
	}
}

// INF-1: ?beta=true is taken on both routes of messages.
func TestBeta(t *testing.T) {
	d := open(t, nil)
	d.send("POST", "/v1/messages?beta=true", chat)
	d.send("POST", "/v1/messages", chat)
	d.send("POST", "/v1/chat/completions?beta=true", chat)
	d.send("POST", "/v1/messages/count_tokens?beta=true", chat)
	if len(d.calls) != 3 || !d.calls[0].Beta || d.calls[1].Beta || d.calls[2].Beta || len(d.counted) != 1 || !d.counted[0].Beta {
		t.Error("beta was not read as it stands")
	}
}
