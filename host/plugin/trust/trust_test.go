package trust

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"
	"github.com/google/go-cmp/cmp"
)

// pair is a key to sign with and the policy that trusts it.
func pair(t *testing.T, seed byte) (minisign.PrivateKey, Key) {
	t.Helper()
	public, private, err := minisign.GenerateKey(bytes.NewReader(bytes.Repeat([]byte{seed}, 64)))
	if err != nil {
		t.Fatal(err)
	}
	k, err := ParseKey(public.String())
	if err != nil {
		t.Fatal(err)
	}
	return private, k
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func TestSignatures(t *testing.T) { // PLG-11, ABI-11
	module := []byte("the bytes of a module")
	mine, key := pair(t, 1)
	stranger, _ := pair(t, 2)
	reader := minisign.NewReader(bytes.NewReader(module))
	if _, err := new(bytes.Buffer).ReadFrom(reader); err != nil {
		t.Fatal(err)
	}
	plain, hashed := minisign.Sign(mine, module), reader.Sign(mine)
	for _, c := range []struct {
		id        string
		signature []byte
		code      string
		says      string
	}{
		{"the older form", plain, "", ""},
		{"the form that signs a hash", hashed, "", ""},
		{"PLG-11 missing", nil, SignatureMissing, "minisign -Sm"},
		{"PLG-11 no signature at all", []byte("hello"), SignatureInvalid, "format"},
		{"PLG-11 of other bytes", minisign.Sign(mine, []byte("other")), SignatureInvalid, "does not fit"},
		{"PLG-11 by an unknown key", minisign.Sign(stranger, module), SignatureUnknown, "plugins.trusted_keys"},
		{"PLG-11 a comment that was changed", bytes.Replace(plain, []byte("timestamp:"), []byte("timestamq:"), 1), SignatureInvalid, "does not fit"},
	} {
		t.Run(c.id, func(t *testing.T) {
			by, r := Policy{Mode: Signed, Keys: []Key{key}}.Admit(&Lock{}, "acme", digest(module), module, c.signature)
			if c.code == "" {
				if r != nil || by != key.ID() {
					t.Errorf("refused: %v, by %q", r, by)
				}
				return
			}
			if r == nil || r.Code != c.code || !strings.Contains(r.Message, c.says) {
				t.Errorf("%+v, want %s with %q", r, c.code, c.says)
			}
			if by, r := (Policy{Mode: Open, Keys: []Key{key}}).Admit(&Lock{}, "acme", digest(module), module, c.signature); r != nil || by != "" {
				t.Errorf("in open mode: %v, by %q", r, by)
			}
		})
	}
}

func TestLocked(t *testing.T) { // PLG-11, ABI-11
	lock, err := OpenLock("")
	if err != nil {
		t.Fatal(err)
	}
	good, changed := []byte("good"), []byte("changed")
	if err := lock.Put(Entry{Name: "acme", SHA256: digest(good)}); err != nil {
		t.Fatal(err)
	}
	p := Policy{Mode: Locked}
	if _, r := p.Admit(lock, "acme", digest(good), good, nil); r != nil {
		t.Errorf("what is locked is refused: %v", r)
	}
	_, r := p.Admit(lock, "acme", digest(changed), changed, nil)
	if r == nil || r.Code != DigestDiffers || !strings.Contains(r.Message, "weir plugin add") || !strings.Contains(r.Message, digest(good)[:12]) {
		t.Errorf("a changed file: %+v", r)
	}
	_, r = p.Admit(lock, "other", digest(changed), changed, nil)
	if r == nil || r.Code != NotLocked || !strings.Contains(r.Message, "weir plugin add") {
		t.Errorf("an unknown file: %+v", r)
	}
	if r := p.Named(lock, "other", digest(good)); r == nil || r.Code != NotLocked {
		t.Errorf("locked bytes under another name: %+v", r)
	}
	if r := p.Named(lock, "acme", digest(good)); r != nil {
		t.Errorf("%+v", r)
	}
}

func TestLockFile(t *testing.T) { // ABI-11, PLG-16
	dir := t.TempDir()
	lock, err := OpenLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	e := Entry{Name: "acme", Version: "1.0.0", ABI: "1.0", SHA256: "aa", Size: 4, Source: "api", Granted: json.RawMessage(`{"kv_bytes":10}`), SignedBy: "K"}
	older := e
	older.SHA256, older.Version = "bb", "0.9.0"
	for _, x := range []Entry{older, e, {Name: "zeta", SHA256: "aa", Granted: json.RawMessage("{}")}} {
		if err := lock.Put(x); err != nil {
			t.Fatal(err)
		}
	}
	again, err := OpenLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := again.Find("acme", "aa")
	var compact bytes.Buffer
	if err := json.Compact(&compact, got.Granted); err != nil {
		t.Fatal(err)
	}
	got.Granted = compact.Bytes()
	if d := cmp.Diff(e, got); !ok || d != "" {
		t.Error(d)
	}
	if _, ok := again.Find("zeta", "bb"); ok {
		t.Error("PLG-16: a digest counts under another name")
	}
	if list := again.Named("acme"); len(list) != 2 {
		t.Errorf("%+v", list)
	}
	if err := again.Keep("acme", func(d string) bool { return d == "aa" }); err != nil {
		t.Fatal(err)
	}
	if again.Has("bb") || !again.Has("aa") {
		t.Error("the wrong digest was kept")
	}
	info, err := os.Stat(filepath.Join(dir, FileName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func TestDamagedLockIsAnError(t *testing.T) { // DATA-1: nothing is overwritten
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, FileName), []byte("{oops"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenLock(dir); err == nil || !strings.Contains(err.Error(), "restore it") {
		t.Error(err)
	}
}

func TestLockThatSomebodyEdits(t *testing.T) { // ABI-11
	dir := t.TempDir()
	lock, err := OpenLock(dir)
	if err != nil {
		t.Fatal(err)
	}
	follow := func(want bool) {
		t.Helper()
		if changed, err := lock.Follow(); changed != want || err != nil {
			t.Errorf("changed %v, %v", changed, err)
		}
	}
	follow(false)
	if err := lock.Put(Entry{Name: "acme", SHA256: "aa"}); err != nil {
		t.Fatal(err)
	}
	follow(false) // its own change is no news
	name := filepath.Join(dir, FileName)
	if err := os.WriteFile(name, []byte(`{"format":1,"plugins":[{"name":"acme","sha256":"bb"}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	follow(true)
	if !lock.Has("bb") || lock.Has("aa") {
		t.Error("the edit does not count")
	}
	if err := os.WriteFile(name, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if changed, err := lock.Follow(); changed || err == nil || !lock.Has("bb") {
		t.Errorf("a damaged edit: %v %v", changed, err)
	}
	follow(false) // told once
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	follow(true)
	if lock.Has("bb") {
		t.Error("a lock that is gone still counts")
	}
}

func TestLockThatCannotBeWritten(t *testing.T) { // DATA-2: what is not on the disk does not count
	dir := filepath.Join(t.TempDir(), "gone")
	if err := os.WriteFile(dir, nil, 0o600); err != nil { // a file where the folder should be
		t.Fatal(err)
	}
	lock := &Lock{path: filepath.Join(dir, FileName)}
	if err := lock.Put(Entry{Name: "acme", SHA256: "aa"}); err == nil || lock.Has("aa") {
		t.Errorf("%v", err)
	}
}

func TestKeys(t *testing.T) {
	_, k := pair(t, 3)
	text := k.key.String()
	for _, form := range []string{text, " " + text + "\n", "untrusted comment: minisign public key\n" + text} {
		if got, err := ParseKey(form); err != nil || got.ID() != k.ID() || len(got.ID()) != 16 {
			t.Errorf("%q: %v", form, err)
		}
	}
	for _, bad := range []string{"", "x", "RW", text[:20]} {
		if _, err := ParseKey(bad); err == nil || !strings.Contains(err.Error(), "RW") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzSignature(f *testing.F) {
	f.Add([]byte("untrusted comment: x\nRUQ=\ntrusted comment: y\nAA=="))
	f.Fuzz(func(t *testing.T, b []byte) {
		if by, r := (Policy{Mode: Signed}).SignedBy([]byte("m"), b); r == nil || by != "" {
			t.Errorf("%q counts as signed by %q", b, by)
		}
	})
}
