package durable

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWriteFile(t *testing.T) { // DATA-2
	dir := filepath.Join(t.TempDir(), "a", "b")
	if err := MakeFolder(dir); err != nil {
		t.Fatal(err)
	}
	if err := MakeFolder(dir); err != nil {
		t.Errorf("a folder that is there: %v", err)
	}
	name := filepath.Join(dir, "f")
	for _, text := range []string{"one", "a longer two", ""} {
		if err := WriteFile(name, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(name); err != nil || string(b) != text {
			t.Errorf("%q %v", b, err)
		}
	}
	info, err := os.Stat(name)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
}

// A write that fails leaves the old content and nothing else behind.
func TestFailedWrite(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "f")
	if err := os.Mkdir(name, 0o700); err != nil { // a folder where the file should be
		t.Fatal(err)
	}
	if err := WriteFile(name, []byte("x")); err == nil {
		t.Error("a folder was replaced by a file")
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
	if err := WriteFile(filepath.Join(dir, "gone", "f"), nil); err == nil {
		t.Error("a folder that is not there was written to")
	}
}
