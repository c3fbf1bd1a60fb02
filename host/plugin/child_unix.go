//go:build unix

package plugin

import (
	"runtime/debug"
	"syscall"
	"time"
)

// limitProcess bounds what this process may use. The memory is what it writes to, not what it reserves: Go reserves much.
func limitProcess(memory uint64, cpu time.Duration) error {
	debug.SetMemoryLimit(int64(memory / 2))
	if err := syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: memory, Max: memory}); err != nil {
		return err
	}
	seconds := uint64(cpu.Seconds())
	return syscall.Setrlimit(syscall.RLIMIT_CPU, &syscall.Rlimit{Cur: seconds, Max: seconds})
}
