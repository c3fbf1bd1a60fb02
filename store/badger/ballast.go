package badger

import (
	"crypto/rand"
	"errors"
	"os"
)

// allocate makes a file that really takes size bytes of the disk.
func allocate(name string, size int64) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	err = fallocate(f, size)
	if errors.Is(err, errors.ErrUnsupported) {
		err = fill(f, size)
	}
	return errors.Join(err, f.Close())
}

// fill writes what no file system can compress or leave out.
func fill(f *os.File, size int64) error {
	block := make([]byte, 1<<20)
	for size > 0 {
		n := min(size, int64(len(block)))
		if _, err := rand.Read(block[:n]); err != nil {
			return err
		}
		if _, err := f.Write(block[:n]); err != nil {
			return err
		}
		size -= n
	}
	return nil
}
