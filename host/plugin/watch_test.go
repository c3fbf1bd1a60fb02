package plugin

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgate/weir/host/catalog"
	"github.com/weirgate/weir/sdk/wire"
)

// eventually waits until f holds; a change must be in force within a second of the last write (PLG-1). The bound is wider
// for machines that run other tests at the same time.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for began := time.Now(); !f(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > 5*time.Second {
			t.Fatal("not within the time:", what)
		}
	}
}

// says is the reason that the plugins in force give for a 403 of acme.
func says(r *Runtime) string {
	s := r.Acquire()
	defer s.Release()
	v, _ := judge(s, "acme").Classify(context.Background(), failed("acme", "m", 403, "x"))
	return string(v.Reason)
}

func reasoned(reason string) string {
	return "name: acme-rules\nversion: 1.0.0\nkinds: [classifier]\nrules:\n- {id: r, status: [403], then: {reason: " + reason + "}}\n"
}

func byFile(r *Runtime, file string) Status {
	for _, s := range r.List() {
		if s.File == file {
			return s
		}
	}
	return Status{}
}

func TestFolder(t *testing.T) { // PLG-1, PLG-2
	t.Parallel()
	var mu sync.Mutex
	var events []string
	changes := 0
	dir := filepath.Join(t.TempDir(), "plugins")
	r := started(t, Options{Dir: dir,
		OnEvent:  func(e Event) { mu.Lock(); events = append(events, e.Kind); mu.Unlock() },
		OnChange: func() { mu.Lock(); changes++; mu.Unlock() },
	})
	if len(r.List()) != 0 {
		t.Fatalf("%+v", r.List())
	}
	if err := os.Mkdir(dir, 0o700); err != nil { // a folder that is made later is watched, too
		t.Fatal(err)
	}
	file := filepath.Join(dir, "a.yaml")
	write(t, file, reasoned("overloaded"))
	eventually(t, "PLG-1 loaded", func() bool { return says(r) == "overloaded" })

	began := time.Now()
	write(t, file, reasoned("quota_exhausted"))
	eventually(t, "PLG-1 replaced", func() bool { return says(r) == "quota_exhausted" })
	if took := time.Since(began); took < stillFor {
		t.Errorf("PLG-1: taken after %s, before the file was still for %s", took, stillFor)
	}

	write(t, file, "name: acme-rules\nversion: 1.0.0\nkinds: [classifier]\nrules:\n- {id: r, status: [403], then: {reason: nonsense}}\n")
	eventually(t, "PLG-2 the fault shows", func() bool { return byFile(r, "a.yaml").Fault != nil })
	st := byFile(r, "a.yaml")
	if says(r) != "quota_exhausted" || st.State != StateActive || st.Fault.Step != StepValidate || st.Fault.Line != 5 || st.Name != "acme-rules" {
		t.Errorf("PLG-2: a broken version replaced a good one: %q %+v", says(r), st)
	}

	write(t, file, reasoned("model_not_found"))
	eventually(t, "PLG-2 mended", func() bool { return says(r) == "model_not_found" })
	if f := byFile(r, "a.yaml").Fault; f != nil {
		t.Errorf("the fault stays: %v", f)
	}

	write(t, filepath.Join(dir, ".hidden.yaml"), reasoned("banned"))
	write(t, filepath.Join(dir, "a.yaml.swp"), reasoned("banned"))
	write(t, filepath.Join(dir, "b.wasm"), "no wasm")
	eventually(t, "b.wasm is refused", func() bool { return byFile(r, "b.wasm").Fault != nil })
	if st := byFile(r, "b.wasm"); st.State != StateRejected || st.Name != "b.wasm" || len(r.List()) != 2 {
		t.Errorf("PLG-2: %+v", r.List())
	}

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	eventually(t, "PLG-1 removed", func() bool { return says(r) == "" && len(r.List()) == 1 })
	mu.Lock()
	defer mu.Unlock()
	want := "plugin.loaded plugin.loaded plugin.rejected plugin.loaded plugin.rejected plugin.removed"
	if got := strings.Join(events, " "); got != want {
		t.Errorf("events\n got %s\nwant %s", got, want)
	}
	if changes != 4 { // three good versions and the removal
		t.Errorf("%d changes", changes)
	}
}

func TestHalfWrittenFileIsNotTried(t *testing.T) { // PLG-1
	t.Parallel()
	var rejected, loaded atomic.Int32
	dir := t.TempDir()
	r := started(t, Options{Dir: dir, OnEvent: func(e Event) {
		if e.Kind == "plugin.rejected" {
			rejected.Add(1)
		} else {
			loaded.Add(1)
		}
	}})
	f, err := os.Create(filepath.Join(dir, "a.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, part := range strings.SplitAfter(reasoned("overloaded"), "e") { // each part alone is no pack
		if _, err := f.WriteString(part); err != nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	eventually(t, "PLG-1 loaded", func() bool { return says(r) == "overloaded" })
	if rejected.Load() != 0 || loaded.Load() != 1 {
		t.Errorf("PLG-1: tried %d times while it was written, loaded %d times", rejected.Load(), loaded.Load())
	}
}

func TestSwappedLinks(t *testing.T) { // PLG-1: how a ConfigMap is mounted
	t.Parallel()
	dir := t.TempDir()
	put := func(version, text string) {
		if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, version, "a.yaml"), text)
		if err := os.Symlink(version, filepath.Join(dir, "..tmp")); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(filepath.Join(dir, "..tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
	}
	put("..1", reasoned("overloaded"))
	if err := os.Symlink("..data/a.yaml", filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	r := started(t, Options{Dir: dir})
	if says(r) != "overloaded" {
		t.Fatal("PLG-1: not loaded at the start", r.List())
	}
	put("..2", reasoned("quota_exhausted"))
	eventually(t, "PLG-1 the swap is seen", func() bool { return says(r) == "quota_exhausted" })
}

func TestNames(t *testing.T) { // PLG-16, PLG-14
	t.Parallel()
	dir := t.TempDir()
	r := started(t, Options{Dir: dir, Builtins: []Builtin{{Name: "acme-rules", YAML: []byte(reasoned("overloaded"))}}})
	file := filepath.Join(dir, "mine.yaml")
	write(t, file, reasoned("quota_exhausted"))
	r.Rescan(t.Context())
	list := r.List()
	if says(r) != "quota_exhausted" || list[0].State != StateDisabled || list[1].State != StateActive {
		t.Errorf("PLG-16: the folder does not win: %q %+v", says(r), list)
	}
	write(t, filepath.Join(dir, "other.yaml"), reasoned("banned"))
	r.Rescan(t.Context())
	if st := byFile(r, "other.yaml"); st.Fault == nil || st.Fault.Code != CodeNameTaken || says(r) != "quota_exhausted" {
		t.Errorf("ABI-2: a second plugin of one name from one place: %+v", st)
	}
	write(t, filepath.Join(dir, "kind.yaml"), "name: acme-rules\nversion: 1.0.0\nkinds: [restatement]\n")
	os.Remove(filepath.Join(dir, "other.yaml"))
	os.Remove(file)
	r.Rescan(t.Context())
	if st := byFile(r, "kind.yaml"); st.Fault == nil || st.Fault.Code != CodeNameTaken {
		t.Errorf("PLG-14: a name that is taken by another kind: %+v", st)
	}
	if list := r.List(); says(r) != "overloaded" || list[0].State != StateActive {
		t.Errorf("PLG-16: the built-in one does not take over again: %q %+v", says(r), list)
	}
	r.Configure(t.Context(), map[string]string{"acme-rules": ModeOff}, nil)
	if list := r.List(); says(r) != "" || list[0].State != StateDisabled || list[0].Mode != ModeOff {
		t.Errorf("PLG-4: off: %q %+v", says(r), list)
	}
}

// 16 busy clients while versions come and go: no call fails, each ends with the set that it began with, and what was
// replaced is closed (PLG-1, PLG-3, RUL-15).
func TestReloadUnderLoad(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	guestManifest := `{"name":"%s","version":"1.0.%d","kinds":["executor"],"hooks":["plan"],"providers":[{"id":"acme","base_url":"https://x.example"}]}`
	guest := func(n int) string {
		return string(module{manifest: fmt.Sprintf(guestManifest, "acme", n), answer: fmt.Sprintf(`{"url":"{{connection.base_url}}/%d"}`, n)}.wasm())
	}
	swap := func(name, text string) {
		write(t, filepath.Join(dir, ".tmp"), text)
		if err := os.Rename(filepath.Join(dir, ".tmp"), filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	swap("rules.yaml", reasoned("overloaded"))
	swap("guest.wasm", guest(0))
	r := New(Options{Dir: dir, CacheDir: t.TempDir()})
	if err := r.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var calls atomic.Int64
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			for ctx.Err() == nil {
				s := r.Acquire()
				e, err := s.Executor(&catalog.Provider{ID: "acme", Plugin: "acme", Executor: "acme"})
				if err != nil {
					t.Error("PLG-3:", err)
				} else if p, err := e.Plan(context.Background(), wire.PlanQuery{Provider: "acme"}, wire.AuthAPIKey); err != nil || e.v.manifest.Version[4:] != p.URL[len(p.URL)-len(e.v.manifest.Version[4:]):] {
					t.Errorf("PLG-3: %s answers %+v, %v", e.v.manifest.Version, p, err)
				}
				v, ok := judge(s, "acme").Classify(ctx, failed("acme", "m", 403, "x"))
				if !ok || v.Reason != wire.Overloaded && v.Reason != wire.QuotaExhausted {
					t.Errorf("RUL-15: %+v", v)
				}
				s.Release()
				calls.Add(1)
			}
		})
	}
	var old []*version
	for i := range 6 {
		s := r.Acquire()
		old = append(old, s.byName["acme"].v)
		s.Release()
		swap("guest.wasm", guest(i+1))
		swap("rules.yaml", reasoned([]string{"quota_exhausted", "overloaded"}[i%2]))
		swap("bad.yaml", "name: [")
		eventually(t, "PLG-1 replaced", func() bool { return byFile(r, "guest.wasm").Version == fmt.Sprintf("1.0.%d", i+1) })
	}
	stop()
	wg.Wait()
	if calls.Load() == 0 {
		t.Error("nothing was called")
	}
	for i, v := range old {
		select {
		case <-v.closed:
		case <-time.After(2 * time.Second):
			t.Errorf("PLG-3: version %d is not closed (%d holders)", i, v.holders.Load())
		}
	}
	if n, _ := os.ReadDir(r.o.CacheDir); len(n) > 2 {
		t.Errorf("ABI-7: the cache keeps %d digests", len(n))
	}
	last := r.Acquire()
	v := last.byName["acme"].v
	if err := r.Close(closing(t)); err == nil {
		t.Error("PLG-3: closed while a request holds a set")
	}
	last.Release()
	if <-v.closed; v.holders.Load() != 0 {
		t.Error("the last version is held")
	}
	if s := r.Acquire(); len(s.plugins) != 0 {
		t.Error("plugins after Close")
	}
}

func closing(t *testing.T) context.Context {
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	t.Cleanup(stop)
	return ctx
}
