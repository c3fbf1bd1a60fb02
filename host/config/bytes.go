package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/host/document"
)

// Bytes is a size, written as 256MiB or as a number of bytes.
type Bytes int64

var units = []struct {
	suffix string
	bytes  float64
}{
	{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
	{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1},
}

// UnmarshalText reads a size.
func (b *Bytes) UnmarshalText(text []byte) error {
	s := strings.ToLower(strings.TrimSpace(string(text)))
	factor := 1.0
	for _, u := range units {
		if rest, ok := strings.CutSuffix(s, u.suffix); ok {
			s, factor = strings.TrimSpace(rest), u.bytes
			break
		}
	}
	n, err := strconv.ParseFloat(s, 64)
	if size := n * factor; err == nil && size >= 0 && size < math.MaxInt64 && size == math.Trunc(size) {
		*b = Bytes(size)
		return nil
	}
	return errors.New("is not a size; write one such as 256MiB")
}

// readMillis reads what the API has as milliseconds and the file as a duration (OBJ-1).
func readMillis(n *document.Node) (catalog.Millis, error) {
	d, err := time.ParseDuration(strings.TrimSpace(n.Text))
	if n.Kind != document.Text || err != nil {
		return 0, errors.New("must be a duration such as 30s or 10m")
	}
	if d%time.Millisecond != 0 {
		return 0, errors.New("must be whole milliseconds")
	}
	return catalog.Millis(d.Milliseconds()), nil
}
