package badger

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	badgerdb "github.com/dgraph-io/badger/v4"
)

// Migration brings a folder from schema To-1 to To (DATA-3). A kill may come at any instant, and the migration then runs
// again from its beginning, so a step must find out what is left to do.
type Migration struct {
	To   int
	Name string // for the log
	// Step does one transaction's worth of work. after is nil at first, then what the step before returned as next; a nil
	// next is the end. A transaction takes about 1.2 MB.
	Step func(txn *badgerdb.Txn, after []byte) (next []byte, err error)
}

// Migrations returns the migrations of this version. Schema 1 is the first, so there are none yet.
func Migrations() []Migration { return []Migration{} }

// schema is the version that this binary writes.
func (s *Store) schema() int {
	version := 1
	for _, m := range s.o.Migrations {
		version = max(version, m.To)
	}
	return version
}

// migrate brings the folder to the present schema: first a backup beside it, then every step, the version number last.
func (s *Store) migrate(db *badgerdb.DB) error {
	have, err := schemaOf(db)
	if err != nil {
		return err
	}
	want := s.schema()
	switch {
	case have == want:
		return nil
	case have > want:
		return s.newer(have)
	case have == 0:
		return setSchema(db, want)
	}
	if err := s.backUp(db, have); err != nil {
		return fmt.Errorf("back the store up before upgrading it from schema %d to %d: %w", have, want, err)
	}
	for _, m := range s.o.Migrations {
		if m.To <= have {
			continue
		}
		s.o.Log.Info("the store is upgraded", "schema", m.To, "migration", m.Name)
		if err := runSteps(db, m); err != nil {
			return fmt.Errorf("upgrade the store to schema %d (%s): %w", m.To, m.Name, err)
		}
	}
	return nil
}

func runSteps(db *badgerdb.DB, m Migration) error {
	for after, more := []byte(nil), true; more; {
		var next []byte
		err := db.Update(func(txn *badgerdb.Txn) (err error) {
			next, err = m.Step(txn, after)
			return err
		})
		if err != nil {
			return err
		}
		after, more = next, next != nil
	}
	if err := db.Sync(); err != nil {
		return err
	}
	return setSchema(db, m.To)
}

// schemaOf returns the schema of the folder, 0 when it is new.
func schemaOf(db *badgerdb.DB) (version int, err error) {
	err = db.View(func(txn *badgerdb.Txn) error {
		n, err := getNumber(txn, metaSchema)
		if version = int(n); err != nil || n > 0 {
			return err
		}
		it := txn.NewIterator(badgerdb.IteratorOptions{})
		defer it.Close()
		if it.Rewind(); it.Valid() {
			return errors.New("the folder holds a database that is not Weir's: give another folder")
		}
		return nil
	})
	return version, err
}

func setSchema(db *badgerdb.DB, version int) error {
	err := db.Update(func(txn *badgerdb.Txn) error { return txn.Set(metaSchema, number(uint64(version))) })
	return errors.Join(err, db.Sync())
}

// checkSchema refuses to read what this binary does not understand.
func (s *Store) checkSchema(db *badgerdb.DB) error {
	have, err := schemaOf(db)
	switch want := s.schema(); {
	case err != nil:
		return err
	case have > want:
		return s.newer(have)
	case have != 0 && have < want:
		return fmt.Errorf("the store in %s has to be upgraded from schema %d to %d, and there is too little room for it: make room there", s.dir, have, want)
	}
	return nil
}

func (s *Store) newer(have int) error {
	return fmt.Errorf("the store in %s was written by a newer version (schema %d, this one knows %d): start that version, or restore the backup beside the folder", s.dir, have, s.schema())
}

// backUp writes the whole store beside its folder, unless an upgrade that was cut short has done so already: then the
// folder is no longer as it was.
func (s *Store) backUp(db *badgerdb.DB, schema int) error {
	name := fmt.Sprintf("%s.schema-%d.backup", filepath.Clean(s.dir), schema)
	if _, err := os.Stat(name); err == nil {
		return nil
	}
	part := name + ".part"
	f, err := os.OpenFile(part, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(writeBackup(db, f), f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(part))
	}
	if err := os.Rename(part, name); err != nil {
		return err
	}
	s.o.Log.Info("the store was backed up before its upgrade", "file", name)
	return syncFolder(filepath.Dir(name))
}

func writeBackup(db *badgerdb.DB, w io.Writer) error {
	b := bufio.NewWriter(w)
	if _, err := db.Backup(b, 0); err != nil {
		return err
	}
	return b.Flush()
}
