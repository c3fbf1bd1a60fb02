// Package shelf keeps the plugins that were put through the API: each version's bytes under its digest, and an index of which
// one is in force, which one is a candidate, and which modes were set (PLG-4, PLG-10). It owns that folder; what was acknowledged
// is there after the process died (DATA-2). It knows nothing of what is inside of a plugin.
package shelf

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weirgate/weir/host/plugin/durable"
)

// MaxVersions is how many versions of a name are kept (PLG-15).
const MaxVersions = 10

// Record is one version.
type Record struct {
	Digest  string    `json:"digest"` // sha256 of the bytes as they were put, hex
	Version string    `json:"version"`
	YAML    bool      `json:"yaml,omitempty"` // the source of a pack
	Size    int       `json:"size"`
	AddedAt time.Time `json:"addedAt"`
	Signed  bool      `json:"signed,omitempty"` // its signature is kept beside it
}

// Plugin is what is kept of a name.
type Plugin struct {
	Versions  []Record `json:"versions"`            // in the order in which they came into force, the newest last
	Active    string   `json:"active,omitempty"`    // digest of the one in force, empty: only a candidate is kept
	Candidate *Record  `json:"candidate,omitempty"` // runs in shadow
}

// Find returns the version with the digest, false when it is not kept.
func (p Plugin) Find(digest string) (Record, bool) {
	if i := slices.IndexFunc(p.Versions, func(r Record) bool { return r.Digest == digest }); i >= 0 {
		return p.Versions[i], true
	}
	return Record{}, false
}

// Before is the version that was in force before the active one.
func (p Plugin) Before() (Record, bool) {
	i := slices.IndexFunc(p.Versions, func(r Record) bool { return r.Digest == p.Active })
	if i < 1 {
		return Record{}, false
	}
	return p.Versions[i-1], true
}

// Activate makes the record the newest version and the one in force. Beyond MaxVersions the oldest are forgotten.
func (p *Plugin) Activate(r Record) {
	p.Versions = slices.DeleteFunc(p.Versions, func(v Record) bool { return v.Digest == r.Digest })
	p.Versions = append(p.Versions, r)
	p.Versions = p.Versions[max(0, len(p.Versions)-MaxVersions):]
	p.Active = r.Digest
}

// Index is the table of contents. Names are those of ABI-2, so that they are safe as names of folders.
type Index struct {
	Format  int               `json:"format"`
	Plugins map[string]Plugin `json:"plugins"`
	Modes   map[string]string `json:"modes"` // by plugin name, of any origin
}

// Shelf is the folder. Safe for concurrent use.
type Shelf struct {
	dir string // empty: everything is kept in memory

	mu    sync.Mutex
	index Index             // guarded by mu
	files map[string][]byte // in place of a folder, guarded by mu
}

const indexName = "index.json"

// Open reads the folder, empty: none, and everything ends with the process. A folder that is not there is an empty shelf.
func Open(dir string) (*Shelf, error) {
	s := &Shelf{dir: dir, files: map[string][]byte{}, index: Index{Format: 1}}
	s.index.init()
	if dir == "" {
		return s, nil
	}
	b, err := os.ReadFile(filepath.Join(dir, indexName))
	if errors.Is(err, os.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the index of the plugins put through the API: %w", err)
	}
	if err := json.Unmarshal(b, &s.index); err != nil || s.index.Format != 1 {
		return nil, fmt.Errorf("%s is damaged or of a later version; restore it, or move the folder away and put the plugins again", filepath.Join(dir, indexName))
	}
	s.index.init()
	s.sweep()
	return s, nil
}

func (i *Index) init() {
	if i.Plugins == nil {
		i.Plugins = map[string]Plugin{}
	}
	if i.Modes == nil {
		i.Modes = map[string]string{}
	}
}

// Index returns a copy of the table of contents.
func (s *Shelf) Index() Index {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.index.clone()
}

func (i Index) clone() Index {
	out := Index{Format: 1}
	b, _ := json.Marshal(i) // texts, numbers and times always encode
	_ = json.Unmarshal(b, &out)
	out.init()
	return out
}

func fileOf(name string, r Record) string {
	if r.YAML {
		return filepath.Join(name, r.Digest+".yaml")
	}
	return filepath.Join(name, r.Digest+".wasm")
}

func signatureOf(name string, r Record) string { return filepath.Join(name, r.Digest+".minisig") }

// Write keeps the bytes of a version. It counts once Change has it in the index.
func (s *Shelf) Write(name string, r Record, module, signature []byte) error {
	if s.dir != "" {
		for _, dir := range []string{s.dir, filepath.Join(s.dir, name)} {
			if err := durable.MakeFolder(dir); err != nil {
				return err
			}
		}
	}
	if err := s.write(fileOf(name, r), module); err != nil {
		return err
	}
	if !r.Signed {
		return nil
	}
	return s.write(signatureOf(name, r), signature)
}

func (s *Shelf) write(file string, content []byte) error {
	if s.dir != "" {
		return durable.WriteFile(filepath.Join(s.dir, file), content)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[file] = bytes.Clone(content)
	return nil
}

// Read returns the bytes and the signature, if any, of a version. Bytes that are not those of the digest are an error.
func (s *Shelf) Read(name string, r Record) (module, signature []byte, err error) {
	if module, err = s.read(fileOf(name, r)); err != nil {
		return nil, nil, err
	}
	if sum := sha256.Sum256(module); hex.EncodeToString(sum[:]) != r.Digest {
		return nil, nil, fmt.Errorf("the kept file %s was changed; put the plugin again", fileOf(name, r))
	}
	if r.Signed {
		signature, err = s.read(signatureOf(name, r))
	}
	return module, signature, err
}

func (s *Shelf) read(file string) ([]byte, error) {
	if s.dir != "" {
		return os.ReadFile(filepath.Join(s.dir, file))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b, ok := s.files[file]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return b, nil
}

// Change writes a new index and then takes it; files that it does not name any more are removed. An error changed nothing.
func (s *Shelf) Change(how func(*Index)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	next := s.index.clone()
	how(&next)
	if s.dir != "" {
		b, err := json.MarshalIndent(next, "", "  ")
		if err == nil {
			err = errors.Join(durable.MakeFolder(s.dir), durable.WriteFile(filepath.Join(s.dir, indexName), append(b, '\n')))
		}
		if err != nil {
			return fmt.Errorf("write the index of plugins: %w", err)
		}
	}
	s.index = next
	s.sweep()
	return nil
}

// sweep removes the files of versions that are not kept. What cannot be removed now is tried again at the next change. It needs
// mu held, or nobody else.
func (s *Shelf) sweep() {
	kept := map[string]bool{indexName: true}
	for name, p := range s.index.Plugins {
		list := p.Versions
		if p.Candidate != nil {
			list = append(slices.Clone(list), *p.Candidate)
		}
		for _, r := range list {
			kept[fileOf(name, r)], kept[signatureOf(name, r)] = true, r.Signed || kept[signatureOf(name, r)]
		}
	}
	for file := range s.files {
		if !kept[file] {
			delete(s.files, file)
		}
	}
	if s.dir == "" {
		return
	}
	names, _ := filepath.Glob(filepath.Join(s.dir, "*", "*"))
	for _, path := range names {
		if file, err := filepath.Rel(s.dir, path); err == nil && !kept[file] && ours(filepath.Base(path)) {
			_ = os.Remove(path)
		}
	}
	folders, _ := os.ReadDir(s.dir)
	for _, d := range folders {
		if _, ok := s.index.Plugins[d.Name()]; d.IsDir() && !ok {
			_ = os.Remove(filepath.Join(s.dir, d.Name())) // fails while it holds something
		}
	}
}

// ours says whether the name is one that this package gives: what a person laid into the folder is left alone.
func ours(name string) bool {
	digest, _, _ := strings.Cut(name, ".")
	return len(digest) == 2*sha256.Size || strings.HasPrefix(name, ".part-")
}
