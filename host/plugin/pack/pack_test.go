package pack

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/weirgate/weir/host/plugin/binary"
)

const manifest = `{"name":"acme","version":"1.0.0","kinds":["classifier"],"summary":"\u00fcber \"quoted\""}`

func instantiate(t *testing.T, wasm []byte) api.Module {
	t.Helper()
	r := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter().WithMemoryLimitPages(512))
	t.Cleanup(func() { r.Close(context.Background()) })
	m, err := r.Instantiate(t.Context(), wasm)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func run(t *testing.T, m api.Module, name string, args ...uint64) uint64 {
	t.Helper()
	res, err := m.ExportedFunction(name).Call(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return res[0]
}

func TestPackedModuleRunsAndDescribesItself(t *testing.T) { // ABI-2.3
	for name, json := range map[string]string{"small": manifest, "several pages": `{"x":"` + strings.Repeat("a", 200_000) + `"}`} {
		t.Run("ABI-2.3 "+name, func(t *testing.T) {
			wasm, err := Pack([]byte(json), []byte("name: acme\n"))
			if err != nil {
				t.Fatal(err)
			}
			section, ok := Manifest(wasm)
			if !ok || string(section) != json {
				t.Fatalf("section weir.manifest: %q", section)
			}
			if src, ok := Source(wasm); !ok || string(src) != "name: acme\n" {
				t.Fatalf("section weir.source: %q", src)
			}
			m := instantiate(t, wasm)
			if v := run(t, m, "weir_abi"); v != 1 {
				t.Fatalf("weir_abi = %d", v)
			}
			res := run(t, m, "weir_call", 1, 0)
			said, ok := m.Memory().Read(uint32(res>>32), uint32(res))
			if !ok || !bytes.Equal(said, section) {
				t.Fatalf("describe says %q, the section %q", said, section)
			}
			if v := run(t, m, "weir_call", 20, 5); v != 0 {
				t.Fatalf("unknown op answered %d", v)
			}
		})
	}
}

func TestAlloc(t *testing.T) { // ABI-1
	wasm, err := Pack([]byte(manifest), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := Source(wasm); ok {
		t.Fatal("a source that was never given")
	}
	m := instantiate(t, wasm)
	for _, size := range []uint32{0, 1, 65536, 300_000, maxInput} {
		at := uint32(run(t, m, "weir_alloc", uint64(size)))
		if at < uint32(jsonAt+len(manifest)) || !m.Memory().Write(at, make([]byte, size)) {
			t.Fatalf("alloc(%d) = %d is not writable", size, at)
		}
	}
	if at := run(t, m, "weir_alloc", maxInput+1); at != 0 {
		t.Fatalf("alloc above the limit = %d, want 0", at)
	}
	if at := run(t, m, "weir_alloc", 0xffffffff); at != 0 {
		t.Fatalf("alloc of 4 GiB = %d, want 0", at)
	}
	if res := run(t, m, "weir_call", 1, 0); uint32(res) != uint32(len(manifest)) {
		t.Fatal("describe changed after an alloc")
	}
}

func TestPackRefuses(t *testing.T) {
	if _, err := Pack([]byte(`{"name":`), nil); err == nil {
		t.Error("packed what is not JSON")
	}
	if _, err := Pack([]byte(`"`+strings.Repeat("a", MaxManifest)+`"`), nil); err == nil {
		t.Error("packed more than describe may answer")
	}
	a, _ := Pack([]byte(manifest), nil)
	b, _ := Pack([]byte(manifest), nil)
	if !bytes.Equal(a, b) {
		t.Error("two packs of one manifest differ")
	}
}

func TestOutline(t *testing.T) { // ABI-7 step 2
	wasm, err := Pack([]byte(manifest), nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := binary.Parse(wasm)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := o.Export("weir_call"); !ok || e.Type != "(i32 i32)->(i64)" {
		t.Errorf("weir_call: %+v", e)
	}
	if o.Pages != 1 || o.Memories != 1 || o.Functions != 3 || o.Tables != 0 {
		t.Errorf("outline: %+v", o)
	}
	for n := range len(wasm) { // a file that is cut anywhere is refused or has lost an export, never more
		if cut, err := binary.Parse(wasm[:n]); err == nil && len(cut.Custom) > 0 {
			t.Fatalf("cut at %d of %d passed with a manifest", n, len(wasm))
		}
	}
}

func FuzzParse(f *testing.F) {
	wasm, _ := Pack([]byte(manifest), []byte("name: acme"))
	f.Add(wasm)
	f.Add(wasm[:8])
	f.Add([]byte("\x00asm\x0d\x00\x01\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		o, err := binary.Parse(b)
		if err == nil && len(o.Imports) > len(b) {
			t.Fatal("more imports than bytes")
		}
	})
}
