package trust

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/weirgate/weir/host/plugin/durable"
)

// FileName is the lock file's name in the data folder.
const FileName = "plugins.lock.json"

// Entry is one digest that the operator accepted, and what was granted to it. Grants belong to name and digest (PLG-16).
type Entry struct {
	Name     string          `json:"name"`
	Version  string          `json:"version"`
	ABI      string          `json:"abi"`
	SHA256   string          `json:"sha256"` // of the file, hex
	Size     int             `json:"size"`
	Source   string          `json:"source"`
	Granted  json.RawMessage `json:"granted"`
	SignedBy string          `json:"signed_by"` // id of the key, empty: nobody that is trusted
}

// Lock is the lock file. A change that was acknowledged is on the disk. Safe for concurrent use.
type Lock struct {
	path string // empty: kept in memory only

	mu      sync.Mutex
	entries []Entry     // guarded by mu; never changed in place
	seen    os.FileInfo // of the file as it was read or written last, nil: there was none; guarded by mu
}

type lockFile struct {
	Format  int     `json:"format"`
	Plugins []Entry `json:"plugins"`
}

// OpenLock reads the lock file of a data folder, empty: none is kept. A file that is not there is an empty lock; one that
// cannot be read is an error, since grants and trust would be lost with it.
func OpenLock(dir string) (*Lock, error) {
	if dir == "" {
		return &Lock{}, nil
	}
	l := &Lock{path: filepath.Join(dir, FileName)}
	if err := l.read(); err != nil {
		return nil, err
	}
	return l, nil
}

// read needs mu held, or nobody else.
func (l *Lock) read() error {
	l.seen, _ = os.Stat(l.path)
	b, err := os.ReadFile(l.path)
	if errors.Is(err, os.ErrNotExist) {
		l.entries = nil
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the plugin lock file: %w", err)
	}
	var f lockFile
	if err := json.Unmarshal(b, &f); err != nil || f.Format != 1 {
		return fmt.Errorf("the plugin lock file %s is damaged or of a later version; restore it, or move it away and add the plugins again", l.path)
	}
	l.entries = f.Plugins
	return nil
}

// Follow reads the file again when somebody else changed it, and says whether it did. With an error what was read before still
// counts, until the file changes once more.
func (l *Lock) Follow() (changed bool, err error) {
	if l.path == "" {
		return false, nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now, _ := os.Stat(l.path)
	if same(now, l.seen) {
		return false, nil
	}
	before := l.entries
	if err := l.read(); err != nil {
		l.entries = before
		return false, err
	}
	return true, nil
}

func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && os.SameFile(a, b)
}

// Find returns the entry of a name and digest.
func (l *Lock) Find(name, digest string) (Entry, bool) {
	return l.first(func(e Entry) bool { return e.Name == name && e.SHA256 == digest })
}

// Has says whether the digest stands in the lock under any name.
func (l *Lock) Has(digest string) bool {
	_, ok := l.first(func(e Entry) bool { return e.SHA256 == digest })
	return ok
}

func (l *Lock) first(is func(Entry) bool) (Entry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.IndexFunc(l.entries, is); i >= 0 {
		return l.entries[i], true
	}
	return Entry{}, false
}

// Named are the entries of a name in the order in which they were added.
func (l *Lock) Named(name string) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	var list []Entry
	for _, e := range l.entries {
		if e.Name == name {
			list = append(list, e)
		}
	}
	return list
}

// Put adds an entry, in place of the one of its name and digest.
func (l *Lock) Put(e Entry) error {
	return l.change(func(list []Entry) []Entry {
		for i := range list {
			if list[i].Name == e.Name && list[i].SHA256 == e.SHA256 {
				list[i] = e
				return list
			}
		}
		return append(list, e)
	})
}

// Keep removes the entries of a name whose digests are not wanted any more.
func (l *Lock) Keep(name string, wanted func(digest string) bool) error {
	return l.change(func(list []Entry) []Entry {
		return slices.DeleteFunc(list, func(e Entry) bool { return e.Name == name && !wanted(e.SHA256) })
	})
}

// change writes the file and then takes the change.
func (l *Lock) change(how func([]Entry) []Entry) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	next := how(slices.Clone(l.entries))
	if l.path != "" {
		sorted := slices.Clone(next)
		slices.SortStableFunc(sorted, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
		b, err := json.MarshalIndent(lockFile{Format: 1, Plugins: sorted}, "", "  ")
		if err == nil {
			err = errors.Join(durable.MakeFolder(filepath.Dir(l.path)), durable.WriteFile(l.path, append(b, '\n')))
		}
		if err != nil {
			return fmt.Errorf("write the plugin lock file: %w", err)
		}
		l.seen, _ = os.Stat(l.path)
	}
	l.entries = next
	return nil
}
