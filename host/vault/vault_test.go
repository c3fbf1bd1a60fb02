package vault_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/weirgate/weir/host/vault"
	"github.com/weirgate/weir/store"
	"github.com/weirgate/weir/store/badger"
	"github.com/weirgate/weir/store/memory"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, dir string, o vault.Options) *vault.Vault {
	t.Helper()
	v, err := vault.Open(dir, o)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return v
}

func openStore(t *testing.T, dir string) *badger.Store {
	t.Helper()
	s, err := badger.Open(filepath.Join(dir, vault.StoreFolder), badger.Options{
		Ballast: 1 << 20, Free: func(string) (uint64, error) { return math.MaxUint64, nil },
	})
	if err != nil {
		t.Fatalf("open the store: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func seal(t *testing.T, v *vault.Vault, kind, id, field, plain string) []byte {
	t.Helper()
	sealed, err := v.Seal(kind, id, field, []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	return sealed
}

// key makes a WEIR_SECRET_KEY.
func key(b byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 32)) }

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			var b []byte
			b, err = os.ReadFile(name)
			files[name] = string(b)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// DATA-1: what is sealed opens where it belongs, and each value has its own nonce.
func TestSealAndOpen(t *testing.T) {
	v := open(t, t.TempDir(), vault.Options{})
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.SliceOf(rapid.Byte()).Draw(t, "plain")
		kind, id, field := rapid.String().Draw(t, "kind"), rapid.String().Draw(t, "id"), rapid.String().Draw(t, "field")
		one, err := v.Seal(kind, id, field, plain)
		if err != nil {
			t.Fatal(err)
		}
		two, err := v.Seal(kind, id, field, plain)
		if err != nil || bytes.Equal(one[1:13], two[1:13]) || bytes.Equal(one, two) {
			t.Fatalf("the same value sealed twice looks the same, %v", err)
		}
		got, err := v.Unseal(kind, id, field, one)
		if err != nil || !bytes.Equal(got, plain) {
			t.Fatalf("opened: %q, %v", got, err)
		}
		at := rapid.IntRange(0, len(one)-1).Draw(t, "at")
		one[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "flip"))
		if _, err := v.Unseal(kind, id, field, one); !errors.Is(err, vault.ErrSealed) {
			t.Fatalf("byte %d was changed: %v", at, err)
		}
	})
}

// DATA-1: a value that is moved to another record does not open, nor one whose place only reads the same.
func TestMovedValueDoesNotOpen(t *testing.T) {
	v := open(t, t.TempDir(), vault.Options{})
	sealed := seal(t, v, "connection", "c-1", "apiKey", "sk-secret")
	for _, place := range [][3]string{
		{"connection", "c-2", "apiKey"}, {"connection", "c-1", "accessToken"}, {"key", "c-1", "apiKey"},
		{"connectionc", "-1", "apiKey"}, {"connection", "c-1apiKey", ""}, {"", "connectionc-1", "apiKey"},
	} {
		plain, err := v.Unseal(place[0], place[1], place[2], sealed)
		if !errors.Is(err, vault.ErrSealed) || plain != nil {
			t.Errorf("opened at %q: %q, %v", place, plain, err)
		}
		if strings.Contains(err.Error(), "sk-secret") {
			t.Errorf("the error tells the secret: %v", err)
		}
	}
	for _, short := range [][]byte{nil, {1}, sealed[:13], append([]byte{2}, sealed[1:]...)} {
		if _, err := v.Unseal("connection", "c-1", "apiKey", short); !errors.Is(err, vault.ErrSealed) {
			t.Errorf("%d bytes opened: %v", len(short), err)
		}
	}
	other := open(t, t.TempDir(), vault.Options{})
	if _, err := other.Unseal("connection", "c-1", "apiKey", sealed); !errors.Is(err, vault.ErrSealed) {
		t.Errorf("another vault opened it: %v", err)
	}
}

// DATA-1: keys are made once, for their owner only, and are the same afterwards.
func TestKeyFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	first := open(t, dir, vault.Options{})
	for _, name := range []string{vault.SecretFile, vault.AdminFile} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Fatalf("%s: %v, %v", name, info, err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, vault.SecretFile))
	if err != nil {
		t.Fatal(err)
	}
	if b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(string(text))); err != nil || len(b) != 32 {
		t.Fatalf("secret.key is %d bytes in base64, %v", len(b), err)
	}
	sealed := seal(t, first, "a", "b", "c", "plain")
	again := open(t, dir, vault.Options{})
	if plain, err := again.Unseal("a", "b", "c", sealed); err != nil || string(plain) != "plain" || again.AdminKey() != first.AdminKey() {
		t.Fatalf("after a restart: %q, %v", plain, err)
	}
	if env := open(t, dir, vault.Options{SecretKey: strings.TrimSpace(string(text))}); true {
		if _, err := env.Unseal("a", "b", "c", sealed); err != nil {
			t.Fatalf("the same key from the environment: %v", err)
		}
	}
	if len(first.AdminKey()) < 43 || first.AdminKey() == open(t, t.TempDir(), vault.Options{}).AdminKey() {
		t.Fatal("admin keys are short or alike")
	}
	if files := contents(t, dir); len(files) != 2 {
		t.Fatalf("left behind: %d files", len(files))
	}
}

func TestKeysFromTheEnvironment(t *testing.T) {
	dir := t.TempDir()
	v := open(t, dir, vault.Options{SecretKey: key(1), AdminKey: "an-admin-key-of-mine"})
	if v.AdminKey() != "an-admin-key-of-mine" {
		t.Fatal("another admin key")
	}
	if files := contents(t, dir); len(files) != 0 {
		t.Fatalf("keys of the environment were written: %d files", len(files))
	}
	for name, o := range map[string]vault.Options{
		"short secret": {SecretKey: "c2hvcnQ="}, "no base64": {SecretKey: strings.Repeat("!", 44)},
		"short admin key": {SecretKey: key(1), AdminKey: "short"}, "two words": {SecretKey: key(1), AdminKey: "two words are not one"},
	} {
		if _, err := vault.Open(t.TempDir(), o); err == nil || o.AdminKey != "" && strings.Contains(err.Error(), o.AdminKey) || o.AdminKey == "" && strings.Contains(err.Error(), o.SecretKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Without a data folder nothing is written anywhere.
func TestWithoutFolder(t *testing.T) {
	t.Chdir(t.TempDir())
	open(t, "", vault.Options{SecretKey: key(1), AdminKey: "an-admin-key-of-mine"})
	for _, o := range []vault.Options{{}, {SecretKey: key(1)}, {AdminKey: "an-admin-key-of-mine"}} {
		if _, err := vault.Open("", o); err == nil {
			t.Errorf("opened with nowhere to keep a key")
		}
	}
	if files := contents(t, "."); len(files) != 0 {
		t.Fatalf("written: %d files", len(files))
	}
}

// DATA-1: a wrong key is a clear error, and nothing is overwritten.
func TestWrongKey(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, dir)
	right, wrong := open(t, dir, vault.Options{SecretKey: key(1)}), open(t, dir, vault.Options{SecretKey: key(2)})
	for range 2 {
		if err := right.Check(t.Context(), s); err != nil {
			t.Fatalf("the right key: %v", err)
		}
	}
	before, err := s.Get(t.Context(), "vault", "check")
	if err != nil {
		t.Fatal(err)
	}
	err = wrong.Check(t.Context(), s)
	if !errors.Is(err, vault.ErrWrongKey) || !strings.Contains(err.Error(), "WEIR_SECRET_KEY") {
		t.Fatalf("the wrong key: %v", err)
	}
	if after, err := s.Get(t.Context(), "vault", "check"); err != nil || after.Revision != before.Revision || !bytes.Equal(after.Data, before.Data) {
		t.Fatalf("the wrong key changed the store: %+v, %v", after, err)
	}
	if err := right.Check(t.Context(), s); err != nil {
		t.Fatalf("the right key afterwards: %v", err)
	}
}

// DATA-1: a folder that has a store never gets a new key.
func TestMissingKey(t *testing.T) {
	dir := t.TempDir()
	v := open(t, dir, vault.Options{})
	s := openStore(t, dir)
	if err := v.Check(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(dir, vault.SecretFile)
	text, err := os.ReadFile(secret)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(secret); err != nil {
		t.Fatal(err)
	}
	before := contents(t, dir)
	if _, err = vault.Open(dir, vault.Options{}); !errors.Is(err, vault.ErrMissingKey) || !strings.Contains(err.Error(), "secret.key") {
		t.Fatalf("without its key: %v", err)
	}
	after := contents(t, dir)
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Fatal("the refusal changed the folder")
	}
	open(t, dir, vault.Options{SecretKey: string(text)})
	if err := os.WriteFile(secret, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := vault.Open(dir, vault.Options{}); err == nil || !strings.Contains(err.Error(), secret) || strings.Contains(err.Error(), "damaged\"") {
		t.Fatalf("a damaged key: %v", err)
	}
	if b, _ := os.ReadFile(secret); string(b) != "damaged" {
		t.Fatal("a damaged key was overwritten")
	}
}

// Two processes that start at once go on with one key.
func TestManyStartAtOnce(t *testing.T) {
	dir := t.TempDir()
	vaults := make([]*vault.Vault, 16)
	var all sync.WaitGroup
	for i := range vaults {
		all.Go(func() {
			var err error
			if vaults[i], err = vault.Open(dir, vault.Options{}); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	sealed := seal(t, vaults[0], "a", "b", "c", "plain")
	st := memory.New(memory.Options{})
	for _, v := range vaults {
		all.Go(func() {
			if err := v.Check(t.Context(), st); err != nil {
				t.Error(err)
			}
			if _, err := v.Unseal("a", "b", "c", sealed); err != nil || v.AdminKey() != vaults[0].AdminKey() {
				t.Errorf("another key: %v", err)
			}
		})
	}
	all.Wait()
	if files := contents(t, dir); len(files) != 2 {
		t.Errorf("left behind: %d files", len(files))
	}
}

// DATA-1: no clear text in any file of the store, neither while it runs nor afterwards.
func TestNoClearTextInTheStore(t *testing.T) {
	const marker = "sk-live-0123456789-marker"
	dir := t.TempDir()
	v, s := open(t, dir, vault.Options{}), openStore(t, dir)
	sealed := seal(t, v, "connection", "c-1", "apiKey", marker)
	if _, err := s.Change(t.Context(), store.Write{Kind: "connection", ID: "c-1", Data: append([]byte("seen beside it: "), sealed...)}); err != nil {
		t.Fatal(err)
	}
	look := func() (beside bool) {
		for name, text := range contents(t, dir) {
			if strings.Contains(text, marker) || strings.Contains(text, base64.StdEncoding.EncodeToString([]byte(marker))) {
				t.Errorf("%s holds the secret", name)
			}
			beside = beside || strings.Contains(text, "seen beside it")
		}
		return beside
	}
	if !look() {
		t.Fatal("the search does not see the store's files")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if !look() {
		t.Fatal("the search does not see the store's files after it closed")
	}
}

// DATA-1: printing a vault shows no key.
func TestPrintsNothing(t *testing.T) {
	v := open(t, t.TempDir(), vault.Options{SecretKey: key('K'), AdminKey: "admin-admin-admin"})
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("x", "vault", v)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "vault", v)
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{log.String(), string(b), fmt.Sprintf("%v %+v %#v %s %d", v, v, v, v, v)} {
		if strings.Contains(text, "admin-admin") || strings.Contains(text, "75 75") || strings.Contains(text, "0x4b") || strings.Contains(text, "KKKK") {
			t.Errorf("shown: %s", text)
		}
	}
}

// DATA-5: a store that takes no writes cannot be marked, which is not the key's fault.
func TestDegradedStore(t *testing.T) {
	dir := t.TempDir()
	v := open(t, dir, vault.Options{})
	s, err := badger.Open(filepath.Join(dir, vault.StoreFolder), badger.Options{Free: func(string) (uint64, error) { return 0, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if err := v.Check(t.Context(), s); !errors.Is(err, store.ErrDegraded) || errors.Is(err, vault.ErrWrongKey) {
		t.Fatalf("check: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// CLI-1: the address file.
func TestAddrFile(t *testing.T) {
	dir := t.TempDir()
	if _, err := vault.ReadAddr(dir); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("no file: %v", err)
	}
	for _, addr := range []string{"127.0.0.1:1", "[::1]:8787"} {
		if err := vault.WriteAddr(dir, addr); err != nil {
			t.Fatal(err)
		}
		if got, err := vault.ReadAddr(dir); err != nil || got != addr {
			t.Fatalf("read %q, %v", got, err)
		}
	}
	if err := vault.RemoveAddr(dir, "127.0.0.1:1"); err != nil {
		t.Fatal(err)
	}
	if got, _ := vault.ReadAddr(dir); got != "[::1]:8787" {
		t.Fatal("an earlier gateway took a later one's address away")
	}
	for range 2 {
		if err := vault.RemoveAddr(dir, "[::1]:8787"); err != nil {
			t.Fatal(err)
		}
	}
	if files := contents(t, dir); len(files) != 0 {
		t.Fatalf("left behind: %v", files)
	}
}
