package plugin

import (
	"os"
	"path/filepath"
	"testing"
)

// ABI-10: the example plugins of each earlier version of the ABI load, as the loader's that they were made for, and pass their own
// examples; none of them is lost.
func TestGolden(t *testing.T) {
	want := map[string]string{
		"abi-1.0/classifier.wasm": loaderRaw, "abi-1.0/relay.wasm": loaderRaw, "abi-1.0/harbor.wasm": loaderRaw, "abi-1.0/bay.wasm": loaderExtism,
		"abi-1.0/acme.yaml": loaderPack, "abi-1.0/acme-quirks.yaml": loaderPack,
	}
	files, err := filepath.Glob("testdata/golden/*/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name, err := filepath.Rel("testdata/golden", file)
		if err != nil {
			t.Fatal(err)
		}
		name = filepath.ToSlash(name)
		loader, ok := want[name]
		delete(want, name)
		t.Run("ABI-10 "+name, func(t *testing.T) {
			b, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			v, f := loadFile(t, Options{RequireExamples: filepath.Ext(file) == ".wasm"}, filepath.Base(file), b)
			switch {
			case !ok:
				t.Error("it is not in the list; a golden file has a loader that it is for")
			case f != nil:
				t.Error(f)
			case v.loader != loader:
				t.Errorf("it went through the loader %s, not %s", v.loader, loader)
			}
		})
	}
	for name := range want {
		t.Errorf("%s is lost", name)
	}
}
