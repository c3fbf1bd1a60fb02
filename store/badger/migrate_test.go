package badger

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	badgerdb "github.com/dgraph-io/badger/v4"

	"github.com/weirgate/weir/store"
)

// upper is a migration that writes the data of the documents of kind key in upper case, ten per step. It dies after steps
// steps.
func upper(to, steps int) Migration {
	left := steps
	return Migration{To: to, Name: "upper case", Step: func(txn *badgerdb.Txn, after []byte) (next []byte, err error) {
		if left--; left < 0 {
			return nil, errors.New("killed")
		}
		var docs []store.Document
		err = each(txn, []byte{prefixDocument}, func(key, value []byte) error {
			if bytes.Compare(key, after) <= 0 || len(docs) == 10 {
				return nil
			}
			doc, err := decodeDocument(key, value)
			doc.Data = append(bytes.ToUpper(doc.Data), '!')
			if bytes.HasSuffix(doc.Data, []byte("!!")) {
				doc.Data = doc.Data[:len(doc.Data)-1] // it was done before the kill
			}
			docs = append(docs, doc)
			next = append([]byte{}, key...)
			return err
		})
		if len(docs) < 10 {
			next = nil
		}
		return next, errors.Join(err, setDocuments(txn, docs))
	}}
}

func fill35(t *testing.T, dir string) {
	t.Helper()
	s := open(t, dir, small())
	for i := range 35 {
		put(t, s, fmt.Sprintf("%02d", i), "text")
	}
	closed(t, s)
}

// DATA-3: an upgrade that is cut short after any step is finished by the next start, from a backup that holds what was
// there before; the version number comes last.
func TestUpgrade(t *testing.T) {
	for _, steps := range []int{0, 2, 3, 4} {
		t.Run(fmt.Sprintf("DATA-3 cut after %d steps", steps), func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "badger")
			fill35(t, dir)
			o := small()
			if steps < 4 {
				o.Migrations = []Migration{upper(2, steps)}
				if _, err := Open(dir, o); err == nil || !strings.Contains(err.Error(), "schema 2 (upper case): killed") {
					t.Fatalf("open: %v", err)
				}
			}
			backup := dir + ".schema-1.backup"
			before, err := os.ReadFile(backup)
			if steps < 4 && (err != nil || !bytes.Contains(before, []byte("text"))) {
				t.Fatalf("backup: %d bytes, %v", len(before), err)
			}
			o.Migrations = []Migration{upper(2, 99), {To: 3, Name: "nothing", Step: func(*badgerdb.Txn, []byte) ([]byte, error) { return nil, nil }}}
			s := open(t, dir, o)
			for i := range 35 {
				wantData(t, s, fmt.Sprintf("%02d", i), "TEXT!")
			}
			if version, err := schemaOf(s.db); err != nil || version != 3 {
				t.Fatalf("schema %d, %v", version, err)
			}
			closed(t, s)
			after, err := os.ReadFile(backup)
			if err != nil || bytes.Contains(after, []byte("TEXT")) || steps < 4 && !bytes.Equal(before, after) {
				t.Fatalf("the backup is not what was there before: %d bytes, %v", len(after), err)
			}
			if exists(filepath.Dir(dir), "badger.schema-2.backup") || exists(filepath.Dir(dir), "badger.schema-1.backup.part") {
				t.Error("more backups than one")
			}
			restored(t, backup)
			older(t, dir)
		})
	}
}

// restored loads the backup into a new folder, where it has to open as the old version left it.
func restored(t *testing.T, backup string) {
	t.Helper()
	dir := t.TempDir()
	db, err := badgerdb.Open(badgerdb.DefaultOptions(dir).WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(backup)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(db.Load(f, 16), f.Close(), db.Close()); err != nil {
		t.Fatal(err)
	}
	s := open(t, dir, small())
	for i := range 35 {
		wantData(t, s, fmt.Sprintf("%02d", i), "text")
	}
	closed(t, s)
}

// older opens a folder of schema 3 with a binary that knows 1, with and without room: it is refused with one sentence and
// stays as it is.
func older(t *testing.T, dir string) {
	t.Helper()
	d, tight := newDisk(1 * mib)
	for _, o := range []Options{small(), tight} {
		_, err := Open(dir, o)
		if err == nil || !strings.Contains(err.Error(), "newer version (schema 3, this one knows 1)") || strings.Contains(err.Error(), "\n") {
			t.Errorf("an older binary: %v", err)
		}
	}
	if d.asked.Load() == 0 {
		t.Error("the free space was not asked for")
	}
}

// DATA-3, DATA-6: without room there is no upgrade, and no half one.
func TestNoUpgradeWithoutRoom(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "badger")
	fill35(t, dir)
	_, o := newDisk(90 * mib)
	o.Migrations = []Migration{upper(2, 99)}
	if _, err := Open(dir, o); err == nil || !strings.Contains(err.Error(), "make room") {
		t.Fatalf("open: %v", err)
	}
	wantData(t, open(t, dir, small()), "00", "text")
}

// A Badger folder of another program is left alone.
func TestForeignFolder(t *testing.T) {
	dir := t.TempDir()
	db, err := badgerdb.Open(badgerdb.DefaultOptions(dir).WithLogger(nil))
	if err != nil {
		t.Fatal(err)
	}
	err = db.Update(func(txn *badgerdb.Txn) error { return txn.Set([]byte("theirs"), []byte("x")) })
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir, small()); err == nil || !strings.Contains(err.Error(), "not Weir's") {
		t.Fatalf("open: %v", err)
	}
}
