package sdk

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// What a guest links of the sdk is small: none of the packages that would double it, and nothing of the gateway (ABI-12).
func TestGuestImports(t *testing.T) {
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", ".")
	list.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0", "GOFLAGS=")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	deps := strings.Fields(string(out))
	if !slices.Contains(deps, "github.com/weirgate/weir/sdk/wire") {
		t.Fatalf("the list is not that of a guest: %v", deps)
	}
	for _, p := range deps {
		own := strings.HasPrefix(p, "github.com/weirgate/weir/")
		switch {
		case own && p != "github.com/weirgate/weir/sdk" && p != "github.com/weirgate/weir/sdk/wire",
			slices.Contains([]string{"encoding/json", "fmt", "regexp", "reflect", "time", "sync", "os", "net/http"}, p):
			t.Errorf("a guest links %s", p)
		}
	}
}
