package dispatch

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/translate/neutral"
)

const tale = "The weir holds the water back: 42 liters of it, \"quoted\", და ქართული, 🌊 waves, letters like tt and ll.\n\n" +
	"    for i := range 10 {\n        fmt.Println(i)\n    }\n\nAnd so it goes, on and on, and on, until the very last line."

// told is what a client reads when an answer that was cut behind old is gone on with by the text of pieces.
func told(old string, pieces []string) (string, bool) {
	r := &resumption{stitch: stitch{old: []byte(old)}, open: true}
	text := old
	emit := func(e *neutral.Event) {
		if e.Kind == neutral.Delta {
			text += e.Text
		}
	}
	r.take(&neutral.Event{Kind: neutral.Begin}, emit)
	r.take(&neutral.Event{Kind: neutral.Open}, emit)
	for _, p := range pieces {
		r.take(&neutral.Event{Kind: neutral.Delta, Text: p}, emit)
	}
	r.take(&neutral.Event{Kind: neutral.Close}, emit)
	r.take(&neutral.Event{Kind: neutral.Finished, Stop: neutral.StopEnd, Usage: neutral.NoUsage()}, emit)
	return text, !r.stitch.refused
}

// STM-45: cut at every byte offset of a fixed answer, the text is identical: whether the model goes on exactly there, behind the white
// space that it was not shown, from its last two words, or from the beginning.
func TestStitch(t *testing.T) {
	for cut := 1; cut <= len(tale); cut++ {
		old := tale[:cut]
		shown := strings.TrimRight(old, blanks)
		ways := map[string]string{"exactly": tale[len(shown):], "from the beginning": tale}
		if words := strings.LastIndexByte(strings.TrimRight(shown, "."), ' '); words > 0 {
			if at := strings.LastIndexByte(shown[:words], ' ') + 1; at > 0 && len(shown)-at >= 8 {
				ways["from the last words"] = tale[at:]
			}
		}
		for name, more := range ways {
			for _, size := range []int{1, 3, 7, 1000} {
				var pieces []string
				for rest := more; len(rest) > 0; {
					n := min(size, len(rest))
					pieces = append(pieces, rest[:n])
					rest = rest[n:]
				}
				if got, ok := told(old, pieces); !ok || got != tale {
					t.Fatalf("cut at %d, %s in pieces of %d: %t %q", cut, name, size, ok, got)
				}
			}
		}
	}
}

// STM-44: an answer that begins anew and then differs does not go on with the old one, and nothing of it is told.
func TestStitchRefuses(t *testing.T) {
	if got, ok := told("It was a dark and stormy night in the old mill", []string{"It was a dark and ", "stormy day."}); ok || got != "It was a dark and stormy night in the old mill" {
		t.Errorf("%t %q", ok, got)
	}
}

// STM-45: what was told is never lost or changed, and behind it stands a tail of the new answer, however it comes in pieces.
func TestStitchProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		letters := rapid.StringMatching(`[ab \n]{1,40}`)
		old, more := letters.Draw(t, "old"), letters.Draw(t, "more")
		whole, ok := told(old, []string{more})
		var pieces []string
		for rest := more; len(rest) > 0; {
			n := rapid.IntRange(1, len(rest)).Draw(t, "n")
			pieces = append(pieces, rest[:n])
			rest = rest[n:]
		}
		again, same := told(old, pieces)
		if !strings.HasPrefix(whole, old) || !strings.HasSuffix(more, whole[len(old):]) || again != whole || same != ok {
			t.Fatalf("%q and %q: %q %t, in pieces %q: %q %t", old, more, whole, ok, pieces, again, same)
		}
	})
}
