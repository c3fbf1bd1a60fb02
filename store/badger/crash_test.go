package badger

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/store"
)

// crashDir tells the test binary that it is the child, and where to write. WEIR_CRASH_KILLS is how often it is killed.
const crashDir = "STORE_CRASH_DIR"

const crashWriters = 4

// crashChild reports what it finds, then writes until it is killed, and tells what was acknowledged after it was.
func crashChild(dir string) int {
	o := small()
	o.Retention = store.Retention{Count: 500}
	s, err := Open(dir, o)
	if err != nil {
		fmt.Println("fault", err)
		return 1
	}
	var out lines
	out.print("open")
	for doc, err := range s.List(context.Background(), "crash") {
		if err != nil {
			out.print("fault", err)
			return 1
		}
		out.print("has", doc.ID, doc.Revision, string(doc.Data))
	}
	last := store.Seq(0)
	for e, err := range s.Replay(context.Background(), 0) {
		if err != nil || last > 0 && e.Seq != last+1 {
			out.print("fault event", e.Seq, "after", last, err)
			return 1
		}
		last = e.Seq
	}
	if last > 0 && last != s.lastEvent { // none is left when all are pruned
		out.print("fault: numbering goes on after", s.lastEvent, "the last event is", last)
	}
	out.print("ready", s.lastEvent)
	var all sync.WaitGroup
	for w := range crashWriters {
		all.Go(func() { crashWriter(s, &out, w) })
	}
	all.Go(func() { crashJournal(s, &out) })
	all.Wait()
	return 1
}

type lines struct{ mu sync.Mutex }

func (l *lines) print(words ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Println(words...)
}

// crashWriter moves two documents together, one of them larger than a page, and now and then deletes one.
func crashWriter(s *Store, out *lines, w int) {
	pad := strings.Repeat("x", 6000)
	for n := 0; ; n++ {
		id := fmt.Sprintf("%d-%d", w, n%5)
		text := strconv.Itoa(rand.Int())
		docs, err := s.Change(context.Background(),
			store.Write{Kind: "crash", ID: id, Data: []byte(text)},
			store.Write{Kind: "pad", ID: id, Data: []byte(text + pad)},
			store.Write{Kind: "crash", ID: id + "-twin", Data: []byte(text)})
		if err != nil {
			out.print("fault", err)
			return
		}
		out.print("ack", id, docs[0].Revision, text)
		out.print("ack", id+"-twin", docs[2].Revision, text)
	}
}

func crashJournal(s *Store, out *lines) {
	for n := 0; ; n++ {
		es := make([]store.Event, 20)
		for i := range es {
			es[i] = store.Event{At: time.Now().UnixMilli() * int64(n%2), Kind: "k", Key: fmt.Sprint(i), Data: make([]byte, 500)}
		}
		last, err := s.Append(context.Background(), es...)
		if err == nil && n%10 == 9 {
			err = s.Save(context.Background(), store.Snapshot{Seq: last, Data: map[string][]byte{"g": make([]byte, 10_000)}})
		}
		if err == nil && n%10 == 9 {
			err = s.Prune(context.Background())
		}
		if err != nil {
			out.print("fault", err)
			return
		}
		out.print("journal", last)
	}
}

// crash is what the parent knows.
type crash struct {
	acked   map[string]acked
	journal uint64
	opened  int
}

type acked struct {
	revision uint64
	text     string
}

// DATA-2: every document that was acknowledged is there after kill -9 at any instant, and documents of one change are
// there together. Events whose append returned are there as well, since the page cache outlives a process.
func TestCrash(t *testing.T) {
	n := 110
	if text := os.Getenv("WEIR_CRASH_KILLS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			t.Fatalf("WEIR_CRASH_KILLS=%s is not a number", text)
		}
	}
	for lane := range 2 {
		t.Run(fmt.Sprintf("DATA-2 folder %d", lane), func(t *testing.T) {
			t.Parallel()
			crashFolder(t, (n+lane)/2)
		})
	}
}

// crashFolder kills n children that write to one folder, one after the other.
func crashFolder(t *testing.T, n int) {
	dir := t.TempDir()
	c := &crash{acked: map[string]acked{}}
	for range n {
		// A quarter of the kills fall into the opening, the others into the writing.
		c.round(t, dir, rand.IntN(4) == 0, time.Duration(rand.IntN(int(20*time.Millisecond))))
		if t.Failed() {
			return
		}
	}
	s := open(t, dir, small())
	for id, want := range c.acked {
		doc, err := s.Get(t.Context(), "crash", id)
		if err != nil {
			t.Fatalf("%s was acknowledged at revision %d: %v", id, want.revision, err)
		}
		c.check(t, id, doc.Revision, string(doc.Data))
	}
	for doc, err := range s.List(t.Context(), "pad") {
		if err != nil {
			t.Fatal(err)
		}
		one, _ := s.Get(t.Context(), "crash", doc.ID)
		twin, _ := s.Get(t.Context(), "crash", doc.ID+"-twin")
		if !bytes.Equal(one.Data, twin.Data) || !bytes.HasPrefix(doc.Data, one.Data) || one.Revision != doc.Revision {
			t.Fatalf("half a change of %s: %q and %q", doc.ID, one.Data, twin.Data)
		}
	}
	if c.opened < n/3 || len(c.acked) == 0 || c.journal == 0 {
		t.Fatalf("of %d rounds %d came to write, %d documents", n, c.opened, len(c.acked))
	}
	t.Logf("%d kills, %d while writing, %d documents at revisions up to %d, journal at %d", n, c.opened, len(c.acked), maxRevision(c.acked), c.journal)
}

func maxRevision(all map[string]acked) (highest uint64) {
	for _, a := range all {
		highest = max(highest, a.revision)
	}
	return highest
}

// round starts the child, kills it after delay, counted from its start or from when it is ready to write, and takes in
// all that it said.
func (c *crash) round(t *testing.T, dir string, early bool, delay time.Duration) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	kill := func() { time.AfterFunc(delay, func() { _ = cmd.Process.Kill() }) }
	if early {
		kill()
	}
	in := bufio.NewReader(out)
	for {
		line, err := in.ReadString('\n')
		if err != nil { // the last line may be cut
			break
		}
		if c.hear(t, strings.Fields(line)) && !early {
			kill()
		}
	}
	_, _ = io.Copy(io.Discard, out)
	_ = cmd.Wait()
	if stderr.Len() > 0 {
		t.Errorf("the child said: %s", stderr.String())
	}
}

// hear takes one line in; it returns true when the child begins to write.
func (c *crash) hear(t *testing.T, words []string) (ready bool) {
	t.Helper()
	switch words[0] {
	case "has":
		c.check(t, words[1], parse(t, words[2]), words[3])
	case "ready":
		if last := parse(t, words[1]); last < c.journal {
			t.Errorf("the journal ends at %d, %d had been appended", last, c.journal)
		}
		c.opened++
		return true
	case "ack":
		c.acked[words[1]] = acked{parse(t, words[2]), words[3]}
	case "journal":
		c.journal = parse(t, words[1])
	case "fault", "fault:":
		t.Errorf("the child found: %s", strings.Join(words, " "))
	}
	return false
}

// check compares what is stored with what was acknowledged: it may be newer, when the kill came before the word.
func (c *crash) check(t *testing.T, id string, revision uint64, text string) {
	t.Helper()
	if want := c.acked[id]; revision < want.revision || revision == want.revision && text != want.text {
		t.Errorf("%s is %q at revision %d; acknowledged was %q at %d", id, text, revision, want.text, want.revision)
	}
}

func parse(t *testing.T, word string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		t.Errorf("the child said %q: %v", word, err)
	}
	return n
}
