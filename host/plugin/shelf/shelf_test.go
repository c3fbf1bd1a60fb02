package shelf

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func record(content string) Record {
	sum := sha256.Sum256([]byte(content))
	return Record{Digest: hex.EncodeToString(sum[:]), Version: "1.0.0", Size: len(content), AddedAt: time.Unix(1790000000, 0).UTC()}
}

func put(t *testing.T, s *Shelf, name, content string) Record {
	t.Helper()
	rec := record(content)
	if err := s.Write(name, rec, []byte(content), nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Change(func(i *Index) {
		p := i.Plugins[name]
		p.Activate(rec)
		i.Plugins[name] = p
	}); err != nil {
		t.Fatal(err)
	}
	return rec
}

// What was acknowledged is there when nothing but the folder is left (PLG-10, DATA-2).
func TestKeptOverAKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "plugins")
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	one, two := put(t, s, "acme", "one"), put(t, s, "acme", "two")
	signed := record("three")
	signed.Signed, signed.YAML = true, true
	if err := s.Write("acme", signed, []byte("three"), []byte("signature")); err != nil {
		t.Fatal(err)
	}
	if err := s.Change(func(i *Index) {
		p := i.Plugins["acme"]
		p.Candidate = &signed
		i.Plugins["acme"] = p
		i.Modes["other"] = "off"
	}); err != nil {
		t.Fatal(err)
	}
	// A kill between the file and the index leaves a file that nobody knows.
	if err := s.Write("acme", record("lost"), []byte("lost"), nil); err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(s.Index(), again.Index()); d != "" {
		t.Error(d)
	}
	p := again.Index().Plugins["acme"]
	if before, ok := p.Before(); !ok || before.Digest != one.Digest || p.Active != two.Digest || again.Index().Modes["other"] != "off" {
		t.Errorf("%+v", p)
	}
	module, signature, err := again.Read("acme", *p.Candidate)
	if string(module) != "three" || string(signature) != "signature" || err != nil {
		t.Errorf("%q %q %v", module, signature, err)
	}
	if _, _, err := again.Read("acme", record("lost")); err == nil {
		t.Error("a file that was never acknowledged is still there")
	}
}

func TestTenVersions(t *testing.T) { // PLG-15
	for _, dir := range []string{"", t.TempDir()} {
		s, err := Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		first := put(t, s, "acme", "0")
		for i := range MaxVersions {
			put(t, s, "acme", fmt.Sprint(i+1))
		}
		p := s.Index().Plugins["acme"]
		if _, kept := p.Find(first.Digest); kept || len(p.Versions) != MaxVersions {
			t.Errorf("%d versions are kept", len(p.Versions))
		}
		if _, _, err := s.Read("acme", first); err == nil {
			t.Error("the bytes of a forgotten version are still kept")
		}
		if again := put(t, s, "acme", "5"); s.Index().Plugins["acme"].Active != again.Digest || len(s.Index().Plugins["acme"].Versions) != MaxVersions {
			t.Error("a version that is put again is kept twice")
		}
		if err := s.Change(func(i *Index) { delete(i.Plugins, "acme") }); err != nil {
			t.Fatal(err)
		}
		if dir != "" {
			if _, err := os.Stat(filepath.Join(dir, "acme")); !os.IsNotExist(err) {
				t.Errorf("the folder of a removed plugin is still there: %v", err)
			}
		}
	}
}

func TestDamage(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	rec := put(t, s, "acme", "one")
	note := filepath.Join(dir, "acme", "note.txt")
	if err := os.WriteFile(note, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "acme", rec.Digest+".wasm"), []byte("evil"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.Read("acme", rec); err == nil || !strings.Contains(err.Error(), "changed") {
		t.Errorf("PLG-11: changed bytes are read: %v", err)
	}
	put(t, s, "acme", "two")
	if _, err := os.Stat(note); err != nil {
		t.Errorf("a file of somebody else was removed: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, indexName), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "restore it") {
		t.Errorf("a damaged index: %v", err)
	}
}

func TestFailedWriteChangesNothing(t *testing.T) { // DATA-2
	dir := filepath.Join(t.TempDir(), "plugins")
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file where the folder should be
		t.Fatal(err)
	}
	if err := s.Change(func(i *Index) { i.Modes["a"] = "off" }); err == nil || len(s.Index().Modes) != 0 {
		t.Errorf("%v %v", err, s.Index().Modes)
	}
}
