package host

import (
	"cmp"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/weirgate/weir/host/plugin"
	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/badger"
	"github.com/weirgate/weir/store/memory"
)

func TestPluginKV(t *testing.T) { // ABI-6
	stores := map[string]func() store.Store{
		"memory": func() store.Store { return memory.New(memory.Options{}) },
		"badger": func() store.Store {
			s, err := badger.Open(t.TempDir(), badger.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return s
		},
	}
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			s := open()
			defer s.Close()
			kv := newPluginKV(s, time.Now, slog.New(slog.DiscardHandler))
			all := []plugin.KVEntry{
				{Key: "\x00\xff/", Value: []byte{0, 1, 255}}, {Key: "empty", Value: []byte{}},
				{Key: strings.Repeat("k", 256), Value: []byte("x"), Ends: time.UnixMilli(1_790_000_000_123)},
			}
			save(t, kv, "acme", all...)
			save(t, kv, "acme-2", plugin.KVEntry{Key: "other", Value: []byte("y")})
			save(t, kv, "acme", plugin.KVEntry{Key: "gone"}, plugin.KVEntry{Key: "empty", Value: []byte("now")})
			save(t, kv, "acme", plugin.KVEntry{Key: "gone", Gone: true}, plugin.KVEntry{Key: "never there", Gone: true})
			all[1].Value = []byte("now")
			got, err := kv.Load(t.Context(), "acme")
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(got, func(a, b plugin.KVEntry) int { return cmp.Compare(a.Key, b.Key) })
			if d := gocmp.Diff(all, got); d != "" {
				t.Error(d)
			}
			t.Run("the largest batch", func(t *testing.T) {
				var list []plugin.KVEntry
				for i := range 256 {
					list = append(list, plugin.KVEntry{Key: fmt.Sprintf("%0256d", i), Value: make([]byte, 2048-256)})
				}
				save(t, kv, "large", list...)
				if got, err := kv.Load(t.Context(), "large"); err != nil || len(got) != 256 {
					t.Errorf("%d, %v", len(got), err)
				}
			})
		})
	}
}

func save(t *testing.T, kv plugin.KVStore, name string, list ...plugin.KVEntry) {
	t.Helper()
	if err := kv.Save(t.Context(), name, list); err != nil {
		t.Fatal(err)
	}
}

func TestPluginKVLeavesOutWhatIsDamaged(t *testing.T) { // ABI-6
	s := memory.New(memory.Options{})
	defer s.Close()
	kv := newPluginKV(s, time.Now, slog.New(slog.DiscardHandler))
	save(t, kv, "acme", plugin.KVEntry{Key: "good", Value: []byte("1")})
	if _, err := s.Change(t.Context(), store.Write{Kind: docPluginKV, ID: kvID("acme", "bad"), Data: []byte("{")}, store.Write{Kind: docPluginKV, ID: "acme/%", Data: []byte("{}")}); err != nil {
		t.Fatal(err)
	}
	if got, err := kv.Load(t.Context(), "acme"); err != nil || len(got) != 1 || got[0].Key != "good" {
		t.Errorf("%v, %v", got, err)
	}
}
