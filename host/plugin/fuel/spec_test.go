package fuel

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// ABI-7: over the modules of the WebAssembly test suites that wazero carries, valid and not, the rewriter judges as wazero
// does. They are read from where the go command keeps wazero; without them there is nothing to do.
func TestSuitesABI7(t *testing.T) {
	dir, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		t.Skip("no go command, or no module cache")
	}
	var all, accepted int
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(dir)), "internal", "integration_test"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".wasm") {
			return err
		}
		if raced && all%10 > 0 {
			all++
			return nil
		}
		wasm, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		all++
		t.Run(filepath.Base(path), func(t *testing.T) {
			checkRewrite(t, wasm)
			if _, _, err := Rewrite(wasm, Options{}); err == nil {
				accepted++
			}
		})
		return nil
	})
	if err != nil {
		t.Skip(err)
	}
	t.Logf("%d of %d are accepted", accepted, all)
}
