package upstream

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// INF-26: whatever the borders of the reads, the same bytes come out, cut between events.
func TestFramesKeepBytesAndBorders(t *testing.T) {
	streams := []string{
		"data: a\n\ndata: b\n\n",
		"event: x\r\ndata: a\r\n\r\n: comment\r\n\r\ndata: ü\r\n\r\n",
		"data: a\r\rdata: b\r\r",
		"data: no blank line at the end",
		strings.Repeat("data: "+strings.Repeat("x", 5000)+"\n\n", 5),
	}
	for _, s := range streams {
		for name, r := range map[string]io.Reader{
			"whole": strings.NewReader(s), "bytes": iotest.OneByteReader(strings.NewReader(s)), "halves": iotest.HalfReader(strings.NewReader(s)),
		} {
			f := NewFrames(r, 1<<20)
			var all []byte
			for {
				run, err := f.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, run...)
				last := len(all) == len(s)
				if !last && !bytes.HasSuffix(run, []byte("\n\n")) && !bytes.HasSuffix(run, []byte("\n\r\n")) && !bytes.HasSuffix(run, []byte("\r\r")) {
					t.Errorf("%s: a run ends inside an event: %q", name, run)
				}
			}
			if string(all) != s {
				t.Errorf("%s: %q became %q", name, s, all)
			}
		}
	}
}

func TestFrameTooLarge(t *testing.T) {
	f := NewFrames(strings.NewReader(strings.Repeat("x", 100_000)), 64<<10)
	if _, err := f.Next(); !errors.Is(err, ErrFrameTooLarge) {
		t.Fatal(err)
	}
}

// INF-26: forms of lines, several data lines, a byte order mark, comments and other fields.
func TestEvents(t *testing.T) {
	in := "\xef\xbb\xbf: hello\n\nevent: one\ndata:a\ndata: b\nid: 1\nretry: 5\n\nevent: nothing\n\ndata: last"
	var got []string
	Events([]byte(in), func(e Event) bool {
		got = append(got, e.Name+"="+string(e.Data))
		return true
	})
	if want := "one=a\nb|=last"; strings.Join(got, "|") != want {
		t.Errorf("%q", got)
	}
}

func FuzzFrames(f *testing.F) {
	f.Add([]byte("data: a\n\ndata: b\r\n\r\n"), uint8(3))
	f.Fuzz(func(t *testing.T, in []byte, step uint8) {
		fr := NewFrames(&stepReader{in, int(step%7) + 1}, 1<<20)
		var all []byte
		for {
			run, err := fr.Next()
			if err != nil {
				break
			}
			all = append(all, run...)
			Events(run, func(Event) bool { return true })
		}
		if !bytes.Equal(all, in) {
			t.Fatalf("%q became %q", in, all)
		}
	})
}

type stepReader struct {
	b []byte
	n int
}

func (r *stepReader) Read(p []byte) (int, error) {
	if len(r.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), r.n)], r.b)
	r.b = r.b[n:]
	return n, nil
}
