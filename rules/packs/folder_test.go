package packs_test

import (
	"io/fs"
	"strings"
	"testing"

	"github.com/weirgate/weir/rules/packs"
)

// ABI-2.3: a pack in parts is read as one file, and no part is a pack of its own.
func TestPartsAreOnePack(t *testing.T) {
	names, err := fs.Glob(packs.Files, "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if !strings.HasSuffix(name, ".yaml") {
			t.Errorf("%s is no pack", name)
		}
	}
	text, err := fs.ReadFile(packs.Files, "generic.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"name: generic\n", "\nrules:\n", "\nexamples:\n"} {
		if strings.Count("\n"+string(text), want) != 1 {
			t.Errorf("%q does not stand there once", want)
		}
	}
	f, err := packs.Files.Open("generic.yaml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if s, err := f.Stat(); err != nil || s.Size() != int64(len(text)) {
		t.Errorf("opened it has %v bytes, %v", s, err)
	}
	for _, name := range []string{"nothing.yaml", "generic", "generic/10-restate.yaml.x"} {
		if _, err := packs.Files.Open(name); err == nil {
			t.Errorf("%s can be opened", name)
		}
	}
}
