package body

import (
	"compress/gzip"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// zstdWindow bounds the memory of one zstd decoder; the format's own recommendation for decoders is 8 MiB.
const zstdWindow = 8 << 20

// Decode returns what r holds under a Content-Encoding: none, identity, gzip or zstd (INF-15). Another one, or several,
// is ErrEncoding. Read the result with a length of -1, so that the limit holds for the decoded bytes, and close it.
// Faults of the encoding, also later ones, are ErrCorrupt.
func Decode(encoding string, r io.Reader) (io.ReadCloser, error) {
	switch strings.ToLower(strings.TrimSpace(encoding)) {
	case "", "identity":
		return io.NopCloser(r), nil
	case "gzip", "x-gzip":
		src := &source{r: r}
		z, err := gzip.NewReader(src)
		if err != nil {
			return nil, src.fault(err)
		}
		return &decoded{z, src, z.Close}, nil
	case "zstd":
		src := &source{r: r}
		z, err := zstd.NewReader(src, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(zstdWindow), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, src.fault(err)
		}
		return &decoded{z, src, func() error { z.Close(); return nil }}, nil
	}
	return nil, ErrEncoding
}

// source remembers the fault of the network, to tell it from a fault of the encoding.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

func (s *source) fault(err error) error {
	if s.err != nil {
		return s.err
	}
	return fmt.Errorf("%w: %w", ErrCorrupt, err)
}

type decoded struct {
	z     io.Reader
	src   *source
	close func() error
}

func (d *decoded) Read(p []byte) (int, error) {
	n, err := d.z.Read(p)
	if err != nil && err != io.EOF {
		err = d.src.fault(err)
	}
	return n, err
}

func (d *decoded) Close() error { return d.close() }
