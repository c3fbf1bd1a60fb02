package host_test

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/weirgate/weir/"

// mayImport is the picture of the dependencies: for each package (and those below it) the packages of this module that it
// may import. Arrows never turn back. A new package needs a row; a new arrow needs a reason.
var mayImport = map[string][]string{
	"sdk/wire":        {},
	"sdk":             {"sdk/wire"},
	"sdk/internal":    {"sdk/wire", "rules"},                                                                              // natively only: a plugin's tables run under go test (ABI-12)
	"sdk/sdktest":     {"sdk/internal", "sdk/wire", "rules", "host/document", "host/plugin/fuel", "host/plugin/manifest"}, // judges as a host does
	"store":           {},
	"store/internal":  {"store"},
	"store/memory":    {"store", "store/internal"},
	"store/badger":    {"store", "store/internal", "store/memory"},
	"store/storetest": {"store"},
	"rules/internal":  {"sdk/wire"},
	"rules/hint":      {"rules/internal"},
	"rules":           {"sdk/wire", "rules/hint", "rules/internal"},
	"rules/packs":     {},
	"plugins":         {"rules/packs"},
	"plugins/demo":    {"sdk", "sdk/wire"},
	"host/document":   {},
	"host/settings":   {"host/document", "rules/operator"},                     // it says what is wrong with an operator's rules
	"host/catalog":    {"host/document", "host/settings", "sdk/wire", "store"}, // it reads and writes its own documents
	"host/config":     {"host/document", "host/settings", "host/catalog", "sdk/wire"},
	"host/vault":      {"store"},
	"host/resilience": {"host/catalog", "host/settings", "sdk/wire", "store"},
	"host/route":      {"host/catalog", "sdk/wire"},
	"host/allow":      {},
	"host/body":       {"sdk/wire"},
	"host/translate":  {"host/document", "sdk/wire"},
	"host/dialect":    {"sdk/wire"},
	"host/observe":    {"sdk/wire"},
	"host/record":     {"store"},
	"host/plugin":     {"host/allow", "host/catalog", "host/document", "rules", "sdk/wire"},
	"host/upstream":   {"host/allow", "host/body", "host/catalog", "sdk/wire"},
	"host/dispatch":   {"host/body", "host/catalog", "host/dialect", "host/origin", "host/resilience", "host/route", "host/settings", "host/translate", "host/upstream", "rules", "sdk/wire", "store"},
	"host/errorlog":   {"host/dispatch", "host/settings", "rules", "sdk/wire", "store"},
	"host/ledger":     {"host/dispatch", "host/pricing", "host/settings", "host/translate", "store"},
	"host/pricing":    {"host/translate", "sdk/wire"},
	"host/quota":      {},
	"host/origin":     {},
	"host/signatures": {"store"},
	"host/gateway":    {"host/body", "host/catalog", "host/dialect", "host/dispatch", "host/upstream", "sdk/wire"}, // upstream: how events are cut
	"host/manage":     {"host/catalog", "host/document", "host/errorlog", "host/ledger", "host/observe", "host/plugin", "host/pricing", "host/quota", "host/record", "host/resilience", "host/settings", "rules/operator", "sdk/wire", "store"},
	"host/devkit":     {"host/catalog", "host/dispatch", "host/document", "host/plugin", "rules", "sdk/sdktest", "sdk/wire"}, // builds Go guests as the kit does
	"host":            {"host", "plugins", "rules", "sdk/wire", "store", "store/badger", "store/memory"},
	"cmd/weir":        {"host", "sdk/wire", "store"},
	"cmd/bench":       {},
	"cmd/clients":     {},
	"cmd/faults":      {}, // it speaks to the program as anybody would
	"cmd/sdktest":     {"sdk/sdktest"},
	"examples":        {"host", "rules", "sdk", "store"},
}

// pure packages may not reach the network, a driver or a logger.
var pure = []string{"host/resilience", "host/route", "rules", "host/catalog", "sdk/wire"}

var worldly = []string{
	"net/http", "log", "log/slog", "os", "github.com/dgraph-io", "github.com/tetratelabs", "github.com/extism", "github.com/gorilla",
}

// onlyIn says where a heavy dependency may be imported.
var onlyIn = map[string][]string{
	"github.com/tetratelabs/wazero": {"host/plugin", "sdk/sdktest"}, // the kit has a sandbox of its own: it does not believe the host
	"github.com/extism":             {"host/plugin/extism"},
	"github.com/dgraph-io":          {"store/badger"},
	"github.com/gorilla/mux":        {"host", "host/gateway", "host/manage"},
	"github.com/prometheus":         {"host/observe"},
	"github.com/spf13":              {"cmd/weir"},
}

func TestArchitecture(t *testing.T) {
	for dir, imports := range importsOf(t, "..") {
		owner, allowed := rowFor(dir)
		if owner == "" {
			t.Errorf("package %s has no row in the picture", dir)
			continue
		}
		for _, imp := range imports {
			own, inside := strings.CutPrefix(imp, module)
			if inside && !within(own, owner) && !slices.ContainsFunc(allowed, func(a string) bool { return within(own, a) }) {
				t.Errorf("%s imports %s, which the picture does not allow", dir, own)
			}
			for heavy, places := range onlyIn {
				if within(imp, heavy) && !slices.ContainsFunc(places, func(p string) bool { return dir == p || p != "host" && within(dir, p) }) {
					t.Errorf("%s imports %s, which belongs to %v", dir, imp, places)
				}
			}
			if slices.ContainsFunc(pure, func(p string) bool { return within(dir, p) }) && slices.Contains(worldly, imp) {
				t.Errorf("%s is pure but imports %s", dir, imp)
			}
		}
	}
}

// Every package says in one sentence what it owns.
func TestEveryPackageHasAComment(t *testing.T) {
	documented := map[string]bool{}
	eachFile(t, "..", func(dir string, path string) {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		documented[dir] = documented[dir] || f.Doc != nil
	})
	for dir, ok := range documented {
		if !ok {
			t.Errorf("package %s has no package comment", dir)
		}
	}
}

// rowFor finds the most exact row.
func rowFor(dir string) (string, []string) {
	for d := dir; d != "."; d = filepath.Dir(d) {
		if row, ok := mayImport[d]; ok {
			return d, row
		}
	}
	return "", nil
}

func within(path, parent string) bool {
	return path == parent || strings.HasPrefix(path, parent+"/")
}

func importsOf(t *testing.T, root string) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	eachFile(t, root, func(dir, path string) {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		if out[dir] == nil {
			out[dir] = []string{}
		}
		for _, imp := range f.Imports {
			name, err := strconv.Unquote(imp.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			out[dir] = append(out[dir], name)
		}
	})
	return out
}

// eachFile calls visit for each Go file that is not a test, with its folder relative to root.
func eachFile(t *testing.T, root string, visit func(dir, path string)) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if name := d.Name(); path != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "devtools" || name == "bin") {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != root {
				return fs.SkipDir // a module of its own, which this one does not contain
			}
			return nil
		}
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			rel, err := filepath.Rel(root, filepath.Dir(path))
			if err != nil {
				return err
			}
			visit(filepath.ToSlash(rel), path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
