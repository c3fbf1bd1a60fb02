package badger

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/windows"

	"github.com/weirgate/weir/store"
)

// freeSpace returns what this user may still write where dir is.
func freeSpace(dir string) (free uint64, err error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, err
	}
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, &fs.PathError{Op: "free space", Path: dir, Err: err}
	}
	return free, nil
}

func allocated(info fs.FileInfo) int64 { return info.Size() }

// lockFile takes the folder for this process. Badger locks it too, but gives it back while the store is degraded.
func lockFile(name string) (*os.File, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the store's folder: %w", err)
	}
	const how = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	if err := windows.LockFileEx(windows.Handle(f.Fd()), how, 0, 1, 0, &windows.Overlapped{}); err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("the folder %s is %w by another process: stop it, or give another folder", filepath.Dir(name), store.ErrLocked)
	}
	return f, nil
}

// syncFolder does nothing: Windows keeps folder entries itself.
func syncFolder(string) error { return nil }
