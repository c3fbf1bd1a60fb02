package body

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/zstd"
)

func noise(n int) []byte {
	b := make([]byte, n)
	r := rand.NewChaCha8([32]byte{byte(n)})
	_, _ = r.Read(b)
	return b
}

// INF-17: the limit holds exactly, whether or not the length is known beforehand.
func TestRead(t *testing.T) {
	for _, n := range []int{0, 1, 1000, smallMax - 1, smallMax, smallMax + 1, 100 << 10, firstPart, firstPart + 1, 5 << 20} {
		want := noise(n)
		for _, length := range []int64{int64(n), -1} {
			for name, r := range map[string]io.Reader{"whole": bytes.NewReader(want), "with EOF": iotest.DataErrReader(bytes.NewReader(want)), "halves": iotest.HalfReader(bytes.NewReader(want))} {
				b, err := Read(r, length, int64(n))
				if err != nil {
					t.Fatalf("%d bytes, length %d, %s: %v", n, length, name, err)
				}
				if !bytes.Equal(b.Bytes(), want) || b.Len() != n {
					t.Errorf("%d bytes, length %d, %s: other bytes came back", n, length, name)
				}
				b.Release()
			}
			if n == 0 {
				continue
			}
			if _, err := Read(bytes.NewReader(want), length, int64(n)-1); !errors.Is(err, ErrTooLarge) {
				t.Errorf("%d bytes, length %d: %v, want ErrTooLarge", n, length, err)
			}
		}
		if _, err := Read(bytes.NewReader(want), int64(n)+1, 32<<20); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("%d bytes, one more promised: %v", n, err)
		}
	}
}

func TestReadStopsAtTheLimit(t *testing.T) {
	src := &counter{r: zeros{}}
	if _, err := Read(src, -1, 1<<20); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
	if src.n > 1<<20+1 {
		t.Errorf("%d bytes were read with a limit of 1 MiB", src.n)
	}
	if _, err := Read(iotest.ErrReader(errors.New("no read is needed")), 101, 100); !errors.Is(err, ErrTooLarge) {
		t.Error(err)
	}
}

// A client that promises 32 MiB and sends nothing must not cost 32 MiB.
func TestReadTrustsNoClaim(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Read(strings.NewReader("x"), 32<<20, 32<<20); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 4<<20 {
		t.Errorf("%d bytes were allocated", got)
	}
}

func TestReadFails(t *testing.T) {
	gone := errors.New("gone")
	for _, length := range []int64{10, 2 << 20, -1} {
		if _, err := Read(io.MultiReader(strings.NewReader("{}"), iotest.ErrReader(gone)), length, 32<<20); !errors.Is(err, gone) {
			t.Errorf("length %d: %v", length, err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

type counter struct {
	r io.Reader
	n int
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.r.Read(p)
	c.n += n
	return n, err
}

func gzipped(b []byte) []byte {
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	_, _ = z.Write(b)
	_ = z.Close()
	return out.Bytes()
}

func zstandard(b []byte) []byte {
	z, _ := zstd.NewWriter(nil)
	return z.EncodeAll(b, nil)
}

// INF-15: gzip and zstd are decoded, the limit holds for what comes out, others are refused.
func TestDecode(t *testing.T) {
	text := bytes.Repeat([]byte(`{"model":"m"}`), 5000)
	for enc, packed := range map[string][]byte{"": text, "identity": text, "gzip": gzipped(text), "GZIP": gzipped(text), "x-gzip": gzipped(text), "zstd": zstandard(text)} {
		t.Run("INF-15 "+enc, func(t *testing.T) {
			get := func(in io.Reader, limit int) ([]byte, error) {
				r, err := Decode(enc, in)
				if err != nil {
					return nil, err
				}
				defer r.Close()
				b, err := Read(r, -1, int64(limit))
				if err != nil {
					return nil, err
				}
				return b.Bytes(), nil
			}
			got, err := get(bytes.NewReader(packed), len(text))
			if err != nil || !bytes.Equal(got, text) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if _, err := get(bytes.NewReader(packed), len(text)-1); !errors.Is(err, ErrTooLarge) {
				t.Errorf("%v, want ErrTooLarge", err)
			}
			lost := errors.New("lost")
			if _, err := get(io.MultiReader(bytes.NewReader(packed[:len(packed)/2]), iotest.ErrReader(lost)), len(text)); !errors.Is(err, lost) || errors.Is(err, ErrCorrupt) {
				t.Errorf("a fault of the network became %v", err)
			}
			if enc == "" || enc == "identity" {
				return
			}
			for _, bad := range [][]byte{packed[:len(packed)-3], []byte("neither of both"), {}} {
				if _, err := get(bytes.NewReader(bad), len(text)); !errors.Is(err, ErrCorrupt) && len(bad) > 0 {
					t.Errorf("%d corrupt bytes: %v", len(bad), err)
				}
			}
		})
	}
	for _, enc := range []string{"br", "deflate", "gzip, gzip", "compress"} {
		if _, err := Decode(enc, bytes.NewReader(text)); !errors.Is(err, ErrEncoding) {
			t.Errorf("%s: %v", enc, err)
		}
	}
}

func TestDecodeBomb(t *testing.T) {
	for enc, packed := range map[string][]byte{"gzip": gzipped(make([]byte, 8<<20)), "zstd": zstandard(make([]byte, 8<<20))} {
		r, err := Decode(enc, bytes.NewReader(packed))
		if err != nil {
			t.Fatal(err)
		}
		src := &counter{r: r}
		if _, err := Read(src, -1, 1<<20); !errors.Is(err, ErrTooLarge) {
			t.Errorf("%s: %v", enc, err)
		}
		if src.n > 1<<20+1 {
			t.Errorf("%s: %d bytes were unpacked", enc, src.n)
		}
		r.Close()
	}
}

func large(model string) string {
	return `{"model":"` + model + `","messages":[{"role":"user","content":"` + strings.Repeat("words and words ", 6000) + `"}],"stream":true}`
}

// A transport that still reads the first attempt's body is not disturbed by the second attempt, nor by other requests
// that use the pool after the release.
func TestPayloadOutlivesTheBuffer(t *testing.T) {
	for name, text := range map[string]string{"small": `{"model":"a","x":[1,2,3,4,5,6,7,8,9]}`, "large": large("a")} {
		t.Run(name, func(t *testing.T) {
			b := read(t, text)
			var wg sync.WaitGroup
			for _, model := range []string{"b", "much-longer-" + strings.Repeat("n", 100), "", "c"} {
				p, err := compile(t, set("model", `"`+model+`"`)).Apply(b)
				if err != nil {
					t.Fatal(err)
				}
				want := strings.Replace(text, `"a"`, `"`+model+`"`, 1)
				body := p.Body()
				wg.Go(func() {
					runtime.Gosched()
					got, err := io.ReadAll(iotest.HalfReader(body))
					if err != nil || string(got) != want {
						t.Errorf("attempt %s: %v, other bytes came out", model[:min(5, len(model))], err)
					}
					body.Close()
				})
			}
			b.Release()
			for range 20 {
				other := read(t, strings.Replace(text, `"a"`, `"z"`, 1))
				p, err := compile(t, set("model", `"other"`)).Apply(other)
				if err != nil {
					t.Fatal(err)
				}
				p.Body().Close()
				other.Release()
			}
			wg.Wait()
		})
	}
}

// In place means that no byte of the long stretch moves: the same memory, attempt after attempt.
func TestInPlace(t *testing.T) {
	for name, text := range map[string]string{"model first": large("a"), "model last": `{"messages":["` + strings.Repeat("w ", 20000) + `"],"model":"a"}`} {
		t.Run(name, func(t *testing.T) {
			b := read(t, text)
			at := &b.blk.buf[frontRoom+b.n/2]
			for _, model := range []string{`"longer-than-before"`, `""`, `"` + strings.Repeat("m", 90) + `"`} {
				p, err := compile(t, set("model", model), set("new", "1"), del("stream")).Apply(b)
				if err != nil {
					t.Fatal(err)
				}
				if p.blk != b.blk || &b.blk.buf[frontRoom+b.n/2] != at {
					t.Errorf("%s was a copy", model)
				}
				p.Body().Close()
			}
			if string(b.Bytes()) != text || &b.blk.buf[frontRoom+b.n/2] != at {
				t.Error("the original did not come back in place")
			}
			p, err := compile(t, set("model", `"`+strings.Repeat("m", len(b.blk.buf)-b.n)+`"`)).Apply(b)
			if err != nil || p.blk == b.blk {
				t.Errorf("%v, or a name longer than the room was put in place", err)
			}
		})
	}
}

func TestPooledBody(t *testing.T) {
	b := read(t, large("a"))
	p := b.Payload()
	body := p.Body()
	if n := b.blk.refs.Load(); n != 2 {
		t.Errorf("%d references, want the handler's and the body's", n)
	}
	var out bytes.Buffer
	if n, err := body.(io.WriterTo).WriteTo(&out); n != p.Len() || err != nil || out.String() != large("a") {
		t.Errorf("WriteTo: %d, %v", n, err)
	}
	body.Close()
	body.Close()
	if n := b.blk.refs.Load(); n != 1 {
		t.Errorf("%d references after two Close", n)
	}
	if _, err := body.Read(make([]byte, 1)); err == nil {
		t.Error("a closed body was read")
	}
	if _, err := body.(io.WriterTo).WriteTo(&out); err == nil {
		t.Error("a closed body was written")
	}
	q := b.Payload()
	q.Discard()
	if !b.blk.exclusive() {
		t.Error("a discarded payload still counts")
	}
}

// HTTP/2 closes a body while a write is under way: the memory must wait for it.
func TestPooledBodyClosedDuringWrite(t *testing.T) {
	b := read(t, large("a"))
	body := b.Payload().Body()
	blk := b.blk
	_, err := body.(io.WriterTo).WriteTo(writerFunc(func(p []byte) (int, error) {
		body.Close()
		if blk.refs.Load() != 2 {
			t.Error("the block was given back while it is read")
		}
		return len(p), nil
	}))
	if err != nil || blk.refs.Load() != 1 {
		t.Errorf("%v, %d references", err, blk.refs.Load())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
