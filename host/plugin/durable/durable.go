// Package durable writes the small files of plugin management so that what was acknowledged is there after the process or the
// machine died (DATA-2). It owns the order of writing, syncing and renaming.
package durable

import (
	"errors"
	"os"
	"path/filepath"
)

// WriteFile replaces the file, for its owner only: other readers, also those after a crash, find the old content or the new
// one, never a part. Its folder must exist.
func WriteFile(name string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(name), ".part-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		return errors.Join(err, ignoreMissing(os.Remove(f.Name())))
	}
	return SyncFolder(filepath.Dir(name))
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// SyncFolder has the names in dir on the disk. Windows cannot sync a folder, and need not.
func SyncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if os.PathSeparator == '\\' {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// MakeFolder makes dir, for its owner only, and has its name on the disk. One that exists is left as it is.
func MakeFolder(dir string) error {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return SyncFolder(filepath.Dir(dir))
}
