package badger

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// fallocate reserves the blocks without writing them.
func fallocate(f *os.File, size int64) error {
	err := unix.Fallocate(int(f.Fd()), 0, 0, size)
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOSYS) {
		return errors.ErrUnsupported
	}
	return err
}
