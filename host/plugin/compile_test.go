package plugin

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/weirgate/weir/host/plugin/fuel"
	"github.com/weirgate/weir/sdk/wire"
)

// childMode has the test program be the process that compiles.
const childMode = "WEIR_TEST_COMPILE_CHILD"

func TestMain(m *testing.M) {
	switch os.Getenv(childMode) {
	case "":
	case "slow":
		time.Sleep(time.Minute)
	case "eat":
		_ = limitProcess(64<<20, time.Minute)
		for kept := [][]byte{}; ; kept = append(kept, bytes.Repeat([]byte{1}, 1<<20)) {
			if len(kept) > 1<<12 {
				os.Exit(0)
			}
		}
	case "spin":
		_ = limitProcess(childMemory, time.Second)
		for began := time.Now(); time.Since(began) < time.Minute; {
		}
		os.Exit(0)
	case "die":
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(2)
	default:
		if err := CompileChild(os.Stdin, os.Args[len(os.Args)-1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// child is a command of that kind; behaviour is empty for a good one.
func child(t testing.TB, behaviour string) Child {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if behaviour == "" {
		behaviour = "good"
	}
	return func() *exec.Cmd {
		cmd := exec.Command(self, "compile")
		cmd.Env = append(os.Environ(), childMode+"="+behaviour)
		return cmd
	}
}

func TestCompileInAChild(t *testing.T) { // ABI-7 step 4
	good := module{manifest: hookManifest, answer: `{"reason":"overloaded"}`}
	t.Run("it fills the cache", func(t *testing.T) {
		dir := t.TempDir()
		v, f := loadFile(t, Options{Compile: CompileInChild, Child: child(t, ""), CacheDir: dir}, "a.wasm", good.wasm())
		if f != nil {
			t.Fatal(f)
		}
		said := ""
		if err := v.guest.call(t.Context(), wire.OpClassify, nil, func(out []byte) error { said = string(out); return nil }); err != nil || said != good.answer {
			t.Errorf("%s, %v", said, err)
		}
		if n := cached(t, filepath.Join(dir, v.code)); n != 1 {
			t.Errorf("%d files in the cache", n)
		}
	})
	t.Run("without a cache", func(t *testing.T) {
		if _, f := loadFile(t, Options{Compile: CompileInChild, Child: child(t, "")}, "a.wasm", good.wasm()); f != nil {
			t.Error(f)
		}
	})
	t.Run("PLG-14 one that dies", func(t *testing.T) {
		_, f := loadFile(t, Options{Compile: CompileInChild, Child: child(t, "die")}, "a.wasm", good.wasm())
		if f == nil || f.Code != CodeCompile || !strings.Contains(f.Message, "out of memory") {
			t.Error(f)
		}
	})
	t.Run("PLG-14 one that takes too long", func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer stop()
		began := time.Now()
		r := New(Options{Compile: CompileInChild, Child: child(t, "slow")})
		_, f := r.loader().load(ctx, source{origin: OriginFolder, file: "a.wasm", bytes: good.wasm()})
		if f == nil || f.Code != CodeCompileTimeout || time.Since(began) > 30*time.Second {
			t.Errorf("%v after %s", f, time.Since(began))
		}
	})
	t.Run("one that does not start", func(t *testing.T) {
		missing := func() *exec.Cmd { return exec.Command(filepath.Join(t.TempDir(), "nothing")) }
		if _, f := loadFile(t, Options{Compile: CompileInChild, Child: missing}, "a.wasm", good.wasm()); f == nil || f.Code != CodeCompile {
			t.Error(f)
		}
	})
}

// cached counts the files of compiled code.
func cached(t testing.TB, dir string) int {
	t.Helper()
	n := 0
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return n
}

// The cache is keyed by the metered bytes (ABI-7): custom sections, which the rewriter drops, change the digest of the plugin and
// not that of its code.
func TestCacheKey(t *testing.T) {
	dir := t.TempDir()
	one := module{manifest: hookManifest}.wasm()
	two := append(bytes.Clone(one), 0, 5, 1, 'x', 1, 2, 3)
	three := module{manifest: hookManifest, pages: 5}.wasm()
	a, f := loadFile(t, Options{CacheDir: dir}, "a.wasm", one)
	b, g := loadFile(t, Options{CacheDir: dir}, "b.wasm", two)
	c, h := loadFile(t, Options{CacheDir: dir}, "c.wasm", three)
	if f != nil || g != nil || h != nil {
		t.Fatal(f, g, h)
	}
	if a.digest == b.digest || a.code != b.code || a.code == c.code || a.code == a.digest {
		t.Errorf("digests %.8s %.8s %.8s, code %.8s %.8s %.8s", a.digest, b.digest, c.digest, a.code, b.code, c.code)
	}
	metered, _, err := fuel.Rewrite(one, fuel.Options{})
	if err != nil || digestOf(metered) != a.code {
		t.Errorf("the key %.8s is not the digest of the metered bytes, %v", a.code, err)
	}
	if err := pruneCache(dir, func(d string) bool { return d == c.code }); err != nil {
		t.Error(err)
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 || left[0].Name() != c.code {
		t.Errorf("left after pruning: %v", left)
	}
}

// Modules that only metering finds out, through the loader (ABI-7 step 3).
func TestUnmeterable(t *testing.T) {
	refuels := append(append([]byte{0x42}, signed(1<<40)...), 0x24, 1, 0x42, 0) // global.set 1: there is only 0 before metering
	for name, c := range map[string]struct {
		m    module
		code fuel.Code
	}{
		"ABI-7 a module that names the fuel global": {module{manifest: hookManifest, call: refuels}, fuel.IndexOutOfRange},
		"ABI-7 one that exports it":                 {module{manifest: hookManifest, exportsFuel: true}, fuel.FuelExported},
		"ABI-7 an unknown opcode":                   {module{manifest: hookManifest, call: []byte{0xff, 0x42, 0}}, fuel.OpcodeUnknown},
		"ABI-7 SIMD":                                {module{manifest: hookManifest, call: append([]byte{0xfd, 0x0c}, make([]byte, 16)...)}, fuel.SIMD},
		"ABI-7 nesting":                             {module{manifest: hookManifest, call: nested(501)}, fuel.NestingTooDeep},
	} {
		_, f := loadFile(t, Options{}, "a.wasm", c.m.wasm())
		if f == nil || f.Step != StepPrecheck || f.Code != string(c.code) || !strings.Contains(f.Message, "function") && c.code != fuel.FuelExported {
			t.Errorf("%s: %v", name, f)
		}
	}
}

func nested(n int) []byte {
	return append(append(bytes.Repeat([]byte{0x02, 0x40}, n), bytes.Repeat([]byte{0x0b}, n)...), 0x42, 0)
}
