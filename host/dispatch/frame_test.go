package dispatch

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/upstream"
)

// What a guest is asked about is what the stream reader sees, and events that pass leave every byte as it came.
func FuzzFrames(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "event: x\r\ndata: a\r\ndata:b\r\n\r\n", "\xef\xbb\xbfdata: a\r\r: beat\n\nid: 1\n\n", "data\n\ndata: [DONE]", "\n\n\r\n", "event: a\nevent: b\ndata:\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, run []byte) {
		var want, got []string
		upstream.Events(run, func(e upstream.Event) bool {
			want = append(want, e.Name+"|"+string(e.Data))
			return true
		})
		h := hookedStream{}
		at := 0
		for at < len(run) {
			fr := h.frame(run[at:], at == 0)
			if len(fr.raw) == 0 {
				t.Fatal("no progress")
			}
			if fr.has {
				got = append(got, string(fr.name)+"|"+string(fr.data))
			}
			at += len(fr.raw)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%q: asked about %q, the reader sees %q", run, got, want)
		}
	})
}

// An event that a guest wrote is read again as it was meant, one event, whatever line breaks are in its data.
func TestFramesAreReadAgain(t *testing.T) { // ABI-5
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[a-z._]{0,10}`).Draw(t, "name")
		data := rapid.SliceOf(rapid.SampledFrom([]byte("ab: \r\n\t{}"))).Draw(t, "data")
		var h hookedStream
		b := appendFrame(nil, []byte(name), data)
		f := h.frame(b, true)
		want := strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(string(data))
		if len(f.raw) != len(b) || string(f.name) != name || string(f.data) != want || !bytes.HasSuffix(b, []byte("\n\n")) {
			t.Fatalf("%q of %q %q: read as %q %q", b, name, data, f.name, f.data)
		}
	})
}
