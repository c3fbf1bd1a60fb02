//go:build !unix

package plugin

import (
	"runtime/debug"
	"time"
)

// limitProcess asks the collector to keep to the limit; the parent's clock bounds the rest.
func limitProcess(memory uint64, _ time.Duration) error {
	debug.SetMemoryLimit(int64(memory / 2))
	return nil
}
