package translate_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/translate"
	"github.com/weirgate/weir/host/translate/neutral"
)

// stopping is the way of a chat client with stop sequences to an upstream of responses.
func stopping(t rapid.TB, stops string) *translate.Way {
	r, err := translate.Read(named["chat"], []byte(bodyOf("chat", `"stop":`+stops)))
	if err != nil {
		t.Fatal(err)
	}
	w, err := translate.NewWay(r, named["responses"], neutral.Target{Model: "up"}, neutral.Told{ID: "id", Model: "m", Request: r})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func saying(texts ...string) (events [][2]string) {
	whole := strings.Join(texts, "")
	add := func(kind, members string) {
		events = append(events, [2]string{kind, `{"type":"` + kind + `",` + members + `}`})
	}
	add("response.created", `"response":{"id":"x","status":"in_progress","output":[]}`)
	add("response.output_item.added", `"output_index":0,"item":{"id":"i","type":"message","role":"assistant","content":[]}`)
	add("response.content_part.added", `"item_id":"i","output_index":0,"content_index":0,"part":{"type":"output_text","text":""}`)
	for _, text := range texts {
		add("response.output_text.delta", fmt.Sprintf(`"item_id":"i","output_index":0,"content_index":0,"delta":%q`, text))
	}
	item := fmt.Sprintf(`{"id":"i","type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}`, whole)
	add("response.output_item.done", `"output_index":0,"item":`+item)
	add("response.completed", `"response":{"id":"x","status":"completed","output":[`+item+`],"usage":{"input_tokens":3,"output_tokens":4}}`)
	return events
}

// TR-9: stop sequences are watched for where the upstream has no word for them: a stream and a document end before the first one, however
// the text is cut into pieces, with the usage that the upstream states.
func TestStopTowardsResponses(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[abE]{0,12}`).Draw(t, "text")
		stop := rapid.SampledFrom([]string{`"E"`, `["ab","Ea"]`, `["aab"]`, `""`}).Draw(t, "stop")
		want, reason := text, "stop"
		at := -1
		for _, s := range gjson.Parse(`[` + strings.Trim(stop, "[]") + `]`).Array() {
			if i := strings.Index(text, s.Str); s.Str != "" && i >= 0 && (at < 0 || i < at) {
				at = i
			}
		}
		if at >= 0 {
			want = text[:at]
		}
		var pieces []string
		for rest := text; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		s := stopping(t, stop).Stream()
		var out []byte
		var err error
		for _, e := range saying(pieces...) {
			if out, err = s.Event(out, []byte(e[0]), []byte(e[1])); err != nil {
				t.Fatal(err)
			}
		}
		out = s.End(out, true)
		got, finish := "", ""
		for line := range strings.Lines(string(out)) {
			data := gjson.Parse(strings.TrimPrefix(strings.TrimSpace(line), "data: "))
			got += data.Get("choices.0.delta.content").Str
			if f := data.Get("choices.0.finish_reason").Str; f != "" {
				finish = f
			}
		}
		if got != want || finish != reason || s.Usage().Output != 4 {
			t.Fatalf("%q of %q at %s: %q %q %+v", got, text, stop, want, finish, s.Usage())
		}
		if text == "" {
			return
		}
		events := saying(text)
		whole := gjson.Get(events[len(events)-1][1], "response").Raw
		doc, _, err := stopping(t, stop).Answer(nil, []byte(whole))
		if err != nil || gjson.GetBytes(doc, "choices.0.message.content").Str != want {
			t.Fatalf("%v %s", err, doc)
		}
	})
}
