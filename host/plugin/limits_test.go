package plugin

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/host/plugin/fuel"
	"github.com/weirgate/weir/sdk/wire"
)

// The table of ABI-8: default and maximum by config.
func TestTableOfLimits(t *testing.T) {
	type row struct {
		ops            []string
		fuel, mostFuel int64
		wall, mostWall time.Duration
	}
	for _, r := range []row{
		{[]string{"plan", "respond", "describe", "configure", "initialize", "example"}, 20e6, 200e6, 5 * time.Second, 30 * time.Second},
		{[]string{"on_request", "on_response", "restate", "classify"}, 2e6, 20e6, 100 * time.Millisecond, time.Second},
		{[]string{"on_event", "on_end"}, 200e3, 2e6, 100 * time.Millisecond, time.Second},
	} {
		for _, name := range r.ops {
			var op wire.Op
			for _, b := range budgets {
				if b.name == name {
					op = b.op
				}
			}
			usual := Limits{}.resolve()
			most := Limits{Fuel: map[string]int64{name: 1 << 50}, WallMS: map[string]int64{name: 1 << 40}}.resolve()
			if usual.fuel[op] != r.fuel || usual.wall[op] != r.wall || most.fuel[op] != r.mostFuel || most.wall[op] != r.mostWall {
				t.Errorf("ABI-8 %s: %d %s, at most %d %s", name, usual.fuel[op], usual.wall[op], most.fuel[op], most.wall[op])
			}
			ok := Limits{Fuel: map[string]int64{name: r.mostFuel}, WallMS: map[string]int64{name: r.mostWall.Milliseconds()}}
			over := Limits{Fuel: map[string]int64{name: r.mostFuel + 1}, WallMS: map[string]int64{name: 0}}
			if err := ok.Check(); err != nil {
				t.Errorf("ABI-8 the maximum of %s: %v", name, err)
			}
			if err := over.Check(); err == nil || !strings.Contains(err.Error(), "limits.fuel."+name) || !strings.Contains(err.Error(), "limits.wall_ms."+name) {
				t.Errorf("ABI-8 above the maximum of %s: %v", name, err)
			}
		}
	}
	if l := (Limits{}).resolve(); l.pages != 512 || l.bodyKiB != 64 {
		t.Errorf("ABI-8: %d pages, %d KiB", l.pages, l.bodyKiB)
	}
	if l := (Limits{MemoryMiB: 999, BodyKiB: 999}).resolve(); l.pages != 4096 || l.bodyKiB != 512 {
		t.Errorf("ABI-8: at most %d pages, %d KiB", l.pages, l.bodyKiB)
	}
	if err := (Limits{MemoryMiB: 257, BodyKiB: 513, Fuel: map[string]int64{"sing": 1}}).Check(); err == nil || strings.Count(err.Error(), "limits.") != 3 {
		t.Errorf("all faults at once: %v", err)
	}
	if l := (Limits{MemoryMiB: 64}).resolve().lowered(wire.Limits{MemoryMiB: 16, Fuel: map[string]int64{"plan": 7, "classify": 1 << 40}}); l.pages != 256 ||
		l.fuel[wire.OpPlan] != 7 || l.fuel[wire.OpClassify] != 2e6 {
		t.Errorf("ABI-2 a manifest only lowers: %+v", l)
	}
}

// What an operator allows one plugin, no other gets (ABI-8), though a module has no name before it was asked.
func TestLimitsOfOneName(t *testing.T) {
	o := Options{Settings: map[string]Settings{"acme": {Limits: Limits{MemoryMiB: 64}}}}
	large := module{manifest: hookManifest, pages: 1024, call: codeGrow}
	v, f := loadFile(t, o, "a.wasm", large.wasm())
	if f != nil {
		t.Fatal(f)
	}
	if v.guest.limits.pages != 1024 {
		t.Errorf("%d pages", v.guest.limits.pages)
	}
	other := large
	other.manifest = strings.Replace(hookManifest, "acme", "other", 1)
	if _, f := loadFile(t, o, "a.wasm", other.wasm()); f == nil || f.Code != CodeMemoryLimit || !strings.Contains(f.Message, "32 MiB") {
		t.Errorf("another plugin: %v", f)
	}
	if _, f := loadFile(t, o, "a.wasm", module{manifest: hookManifest, pages: 1025}.wasm()); f == nil || f.Code != CodeMemoryLimit || f.Step != StepPrecheck {
		t.Errorf("above what anybody may have: %v", f)
	}
}

// A function above 64 KiB needs body_kib and the compiler apart (ABI-10); without both it is refused.
func TestLargeFunctions(t *testing.T) {
	large := module{manifest: hookManifest, call: append(bytes.Repeat([]byte{0x41, 1, 0x1a}, 30_000), codeZero...)}
	raised := Options{Settings: map[string]Settings{"acme": {Limits: Limits{BodyKiB: 128}}}}
	apart := raised
	apart.Compile, apart.Child = CompileInChild, child(t, "")
	for _, c := range []struct {
		name string
		o    Options
		says string
	}{
		{"by default", Options{}, "at most 65536"},
		{"raised, but in this process", raised, "plugins.compile"},
		{"raised and apart", apart, ""},
	} {
		_, f := loadFile(t, c.o, "a.wasm", large.wasm())
		if c.says == "" && f != nil || c.says != "" && (f == nil || f.Step != StepPrecheck || !strings.Contains(f.Message, c.says)) {
			t.Errorf("ABI-10 %s: %v", c.name, f)
		}
	}
	other := large
	other.manifest = strings.Replace(hookManifest, "acme", "other", 1)
	if _, f := loadFile(t, apart, "a.wasm", other.wasm()); f == nil || f.Code != string(fuel.BodyTooLarge) || f.Step != StepValidate {
		t.Errorf("ABI-10 another plugin: %v", f)
	}
}
