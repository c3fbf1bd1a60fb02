package signatures_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/weirgate/weir/host/signatures"
	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func silent(string, ...any) {}

// TR-19: signatures are found by the call, also after a restart.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		docs := memory.New(memory.Options{Now: time.Now})
		defer docs.Close()
		m := signatures.New(docs, time.Now, silent)
		ctx, cancel := context.WithCancel(t.Context())
		go m.Run(ctx)
		m.Keep("call_1", "one")
		m.Keep("call_1", "two")
		m.Keep("call_2", "")
		time.Sleep(6 * time.Second)
		m.Keep("call_3", "three")
		cancel()
		synctest.Wait()
		again := signatures.New(docs, time.Now, silent)
		if err := again.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		for call, want := range map[string]string{"call_1": "two", "call_2": "", "call_3": "three", "call_4": ""} {
			if got, ok := again.Find(call); got != want || ok != (want != "") {
				t.Errorf("%s: %q %v", call, got, ok)
			}
		}
	})
}

// TR-19: the memory is bounded by calls and by bytes, in the store too; what was used last stays.
func TestBounds(t *testing.T) {
	docs := memory.New(memory.Options{Now: time.Now})
	defer docs.Close()
	m := signatures.New(docs, time.Now, silent)
	m.Keep("first", "x")
	for i := range 5200 {
		m.Keep(fmt.Sprint("call", i), "value")
		if _, ok := m.Find("first"); !ok {
			t.Fatal("what is used was dropped")
		}
		if i%1000 == 0 {
			m.Save(t.Context())
		}
	}
	m.Save(t.Context())
	n := 0
	for _, err := range docs.List(t.Context(), "call-signature") {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if _, ok := m.Find("call0"); ok || n != 5000 {
		t.Errorf("%d documents, the oldest there: %v", n, ok)
	}
	large := strings.Repeat("x", 60<<10)
	for i := range 200 {
		m.Keep(fmt.Sprint("large", i), large)
	}
	if _, ok := m.Find("large0"); ok {
		t.Error("the memory is not bounded by bytes")
	}
	m.Keep("huge", strings.Repeat("x", 1<<20))
	if _, ok := m.Find("huge"); ok {
		t.Error("a huge signature was kept")
	}
}

// A store that fails loses nothing: what it did not take is written later.
func TestStoreFails(t *testing.T) {
	docs := memory.New(memory.Options{Now: time.Now})
	defer docs.Close()
	f := &failing{Documents: docs, fail: true}
	warned := 0
	m := signatures.New(f, time.Now, func(string, ...any) { warned++ })
	m.Keep("call", "value")
	m.Save(t.Context())
	f.fail = false
	m.Save(t.Context())
	again := signatures.New(docs, time.Now, silent)
	if err := again.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, _ := again.Find("call"); got != "value" || warned != 1 {
		t.Errorf("%q, warned %d times", got, warned)
	}
}

type failing struct {
	store.Documents
	fail bool
}

func (f *failing) Change(ctx context.Context, ws ...store.Write) ([]store.Document, error) {
	if f.fail {
		return nil, store.ErrDegraded
	}
	return f.Documents.Change(ctx, ws...)
}
