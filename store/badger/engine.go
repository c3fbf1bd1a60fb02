package badger

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"

	badgerdb "github.com/dgraph-io/badger/v4"
	"github.com/dgraph-io/badger/v4/options"

	"github.com/weirgate/weir/store"
)

// openEngine opens Badger as DATA-7 says. complain, when not nil, hears that Badger cannot write.
func openEngine(dir string, log *slog.Logger, complain func(string), readOnly bool) (*badgerdb.DB, error) {
	if err := dropEmptyLogs(dir); err != nil {
		return nil, err
	}
	return badgerdb.Open(badgerdb.DefaultOptions(dir).
		WithReadOnly(readOnly).
		WithMemTableSize(8 << 20).
		WithNumMemtables(2).
		WithValueLogFileSize(16 << 20).
		WithBlockCacheSize(8 << 20).
		WithNumCompactors(2).
		WithCompression(options.None).
		WithDetectConflicts(false). // every writer of a key holds a lock of ours
		WithSyncWrites(false).      // documents are synced in groups, see group
		WithMetricsEnabled(false).  // they are process-wide, and two stores may be open
		WithLogger(engineLog{log, complain}))
}

// dropEmptyLogs removes logs that a kill left without a byte, between their making and their first write. Badger 4.9 does
// not open a folder that has one ("Open existing file: … err: Create a new file").
func dropEmptyLogs(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if ext := filepath.Ext(entry.Name()); ext != ".vlog" && ext != ".mem" {
			continue
		}
		if info, err := entry.Info(); err == nil && info.Size() == 0 {
			if err := os.Remove(filepath.Join(dir, entry.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// engineLog passes Badger's messages on.
type engineLog struct {
	log      *slog.Logger
	complain func(string)
}

func (l engineLog) Errorf(format string, args ...any) {
	text := l.text(format, args)
	l.log.Error("badger: " + text)
	// Badger tries again for ever when a table cannot be written, and its writers wait. These two are the messages of
	// a disk that takes no writes; others (a file that cannot be deleted) do not stop it.
	if l.complain != nil && (strings.HasPrefix(text, "error flushing memtable") || strings.HasPrefix(text, "writeRequests")) {
		l.complain(text)
	}
}

func (l engineLog) Warningf(format string, args ...any) {
	l.log.Warn("badger: " + l.text(format, args))
}

func (l engineLog) Infof(format string, args ...any) { l.log.Debug("badger: " + l.text(format, args)) }

func (l engineLog) Debugf(string, ...any) {}

func (l engineLog) text(format string, args []any) string {
	return strings.TrimSpace(fmt.Sprintf(format, args...))
}

// complain tells the maintenance that Badger cannot write.
func (s *Store) complain(text string) {
	select {
	case s.sick <- text:
	default:
	}
}

// listeners are told of each change of health, one at a time.
type listeners struct {
	mu   sync.Mutex
	next int                        // guarded by mu
	all  map[int]func(store.Health) // guarded by mu
}

// Notify has f called with each new health, until stop is called.
func (s *Store) Notify(f func(store.Health)) (stop func()) {
	l := &s.told
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.all == nil {
		l.all = map[int]func(store.Health){}
	}
	id := l.next
	l.next++
	l.all[id] = f
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.all, id)
	}
}

func (l *listeners) tell(h store.Health) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.all {
		f(h)
	}
}
