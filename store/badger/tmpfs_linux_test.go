package badger

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/weirgate/weir/store"
)

// DATA-6: a real file system of 256 MiB that another file fills to the last byte. A store that writes on dies with SIGBUS,
// and this test binary with it. It mounts, so it needs STORE_TMPFS=1 and the right to; the tests with an injected free
// space run everywhere.
func TestFullTmpfs(t *testing.T) {
	if os.Getenv("STORE_TMPFS") == "" {
		t.Skip("STORE_TMPFS=1 mounts a tmpfs of 256 MiB and fills it")
	}
	disk := t.TempDir()
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=256m"); err != nil {
		t.Fatalf("mount: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(disk, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	dir := filepath.Join(disk, "badger")
	s := open(t, dir, Options{Reserve: MinReserve, Look: 50 * time.Millisecond})
	t.Cleanup(func() { _ = s.Close() })
	states := make(chan store.Health, 8)
	defer s.Notify(func(h store.Health) { states <- h })()

	acked, stop := map[string]int{}, make(chan struct{})
	var mu sync.Mutex
	var writers sync.WaitGroup
	for w := range 3 {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				id := fmt.Sprint(w)
				docs, err := s.Change(t.Context(), store.Write{Kind: "key", ID: id, Data: fmt.Appendf(nil, "%d %0*d", n, 2000, n)})
				if err == nil {
					mu.Lock()
					acked[id] = int(docs[0].Revision)
					mu.Unlock()
				} else if !errors.Is(err, store.ErrDegraded) {
					t.Error(err)
				}
				if _, err := s.Append(t.Context(), store.Event{Kind: "k", Data: make([]byte, 5000)}); err != nil {
					t.Error(err)
				}
				time.Sleep(time.Millisecond)
			}
		})
	}
	time.Sleep(300 * time.Millisecond)
	filler := filepath.Join(disk, "filler")
	written := fillDisk(t, filler)
	if h := <-states; h.State != store.StateDegraded {
		t.Fatalf("told: %+v", h)
	}
	settle(s)
	written += fillDisk(t, filler)
	time.Sleep(200 * time.Millisecond)
	if free, err := freeSpace(disk); err != nil || free != 0 {
		t.Fatalf("%d bytes are free, %v", free, err)
	}
	t.Logf("filled %d MiB: %s", written>>20, s.Health().Fault)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if h := <-states; h.State != store.StateOK {
		t.Fatalf("told: %+v", h)
	}
	time.Sleep(100 * time.Millisecond)
	close(stop)
	writers.Wait()
	_, last, n := seqs(t, s)
	if int(last) != n {
		t.Errorf("of %d events %d are there", last, n)
	}
	closed(t, s)
	s = open(t, dir, Options{Reserve: MinReserve})
	for id, revision := range acked {
		if doc, err := s.Get(t.Context(), "key", id); err != nil || int(doc.Revision) < revision {
			t.Errorf("document %s at %d, acknowledged was %d, %v", id, doc.Revision, revision, err)
		}
	}
	closed(t, s)
}

// fillDisk appends to the file until nothing fits any more, at about 500 MiB a second.
func fillDisk(t *testing.T, name string) (written int) {
	t.Helper()
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for size := 1 << 20; size > 0; {
		n, err := f.Write(make([]byte, size))
		written += n
		if err != nil {
			size /= 2
		}
		time.Sleep(time.Millisecond)
	}
	return written
}
