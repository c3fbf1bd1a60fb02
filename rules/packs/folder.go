package packs

import (
	"bytes"
	"embed"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"
)

// folder shows the folders of parts as the files that they are parts of.
type folder struct{ of embed.FS }

// Open opens the folder itself, a pack, or one that consists of parts.
func (f folder) Open(name string) (fs.File, error) {
	if name == "." {
		return f.of.Open(name)
	}
	text, err := f.ReadFile(name)
	if err != nil {
		return nil, err
	}
	return &file{Reader: bytes.NewReader(text), info: info{name: name, size: int64(len(text))}}, nil
}

// ReadFile returns the whole text of a pack.
func (f folder) ReadFile(name string) ([]byte, error) {
	text, err := f.of.ReadFile(name)
	base, ok := strings.CutSuffix(name, ".yaml")
	if err == nil || !ok {
		return text, err
	}
	parts, missing := f.of.ReadDir(base)
	if missing != nil {
		return nil, err
	}
	for _, p := range parts { // by name, as an embedded folder lists them
		part, err := f.of.ReadFile(base + "/" + p.Name())
		if err != nil {
			return nil, err
		}
		text = append(text, part...)
	}
	return text, nil
}

// ReadDir lists the packs by name.
func (f folder) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := f.of.ReadDir(name)
	for i, e := range entries {
		if !e.IsDir() {
			continue
		}
		whole := e.Name() + ".yaml"
		text, err := f.ReadFile(whole)
		if err != nil {
			return nil, err
		}
		entries[i] = fs.FileInfoToDirEntry(info{name: whole, size: int64(len(text))})
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// file is an open pack.
type file struct {
	io.Reader
	info info
}

func (f *file) Stat() (fs.FileInfo, error) { return f.info, nil }
func (f *file) Close() error               { return nil }

// info is what is known of a pack that has parts.
type info struct {
	name string
	size int64
}

func (i info) Name() string       { return i.name }
func (i info) Size() int64        { return i.size }
func (i info) Mode() fs.FileMode  { return 0o444 }
func (i info) ModTime() time.Time { return time.Time{} }
func (i info) IsDir() bool        { return false }
func (i info) Sys() any           { return nil }
