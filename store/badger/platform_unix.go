//go:build linux || darwin || freebsd

package badger

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/weirgate/weir/store"
)

// freeSpace returns what an ordinary user may still write where dir is.
func freeSpace(dir string) (uint64, error) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return uint64(st.Bavail) * uint64(st.Bsize), nil //nolint:unconvert // the types differ between platforms
}

// allocated returns what a file takes on the disk.
func allocated(info fs.FileInfo) int64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(st.Blocks) * 512 //nolint:unconvert // the types differ between platforms
	}
	return info.Size()
}

// lockFile takes the folder for this process. Badger locks it too, but gives it back while the store is degraded.
func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the store's folder: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		owner, _ := os.ReadFile(name)
		_ = f.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock the store's folder: %w", err)
		}
		return nil, lockedBy(name, string(owner))
	}
	// Who has the lock is told for people; that it is written is not needed.
	_ = f.Truncate(0)
	_, _ = fmt.Fprintf(f, "%d\n", os.Getpid())
	return f, nil
}

func lockedBy(name, owner string) error {
	who := "another process"
	if pid := strings.TrimSpace(owner); pid != "" {
		who = "process " + pid
	}
	return fmt.Errorf("the folder %s is %w by %s: stop it, or give another folder", filepath.Dir(name), store.ErrLocked, who)
}

func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
