package observe

import (
	"encoding/base64"
	"fmt"
	"io"
	"strconv"
	"sync/atomic"
)

// RequestIDs makes ids of requests: a random prefix of this host and a counter, with URL-safe letters only (OBS-4). An id
// costs one small allocation. Safe for concurrent use.
type RequestIDs struct {
	prefix string
	count  atomic.Uint64
}

// NewRequestIDs reads nine bytes of random for the prefix.
func NewRequestIDs(random io.Reader) (*RequestIDs, error) {
	var b [9]byte
	if _, err := io.ReadFull(random, b[:]); err != nil {
		return nil, fmt.Errorf("reading random bytes for request ids: %w", err)
	}
	return &RequestIDs{prefix: base64.RawURLEncoding.EncodeToString(b[:]) + "-"}, nil
}

// Next returns an id that this host has not given out before.
func (r *RequestIDs) Next() string {
	var b [32]byte
	return string(strconv.AppendUint(append(b[:0], r.prefix...), r.count.Add(1), 36))
}
