package e2e_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/weirgate/weir/sdk/sdktest"
	"github.com/weirgate/weir/sdk/wire"
)

// With plugins.compile: child the program compiles a guest in a process of its own, which fills the cache (ABI-7).
func TestCompileInChild(t *testing.T) {
	t.Parallel()
	for _, e := range sdktest.Evil() {
		if e.Op != wire.OpRequest {
			continue
		}
		g := serve(t, setup{
			config: "plugins: {compile: child}\n", plugins: true, packs: map[string]string{"guest.wasm": string(e.Wasm)},
		})
		if version, fault := g.plugin("evil-" + e.Name); version != "1.0.0" || fault != "" {
			t.Errorf("version %q, fault %q\n%s", version, fault, g.log)
		}
		compiled, err := filepath.Glob(filepath.Join(g.data, "cache", "*", "*", "*"))
		if err != nil || len(compiled) == 0 {
			entries, _ := os.ReadDir(filepath.Join(g.data, "cache"))
			t.Errorf("the cache is empty: %v %v", entries, err)
		}
		return
	}
	t.Error("the kit has no executor")
}
