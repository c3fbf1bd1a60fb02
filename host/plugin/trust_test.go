package plugin

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"

	"github.com/weirgate/weir/host/plugin/trust"
)

// signer is a key that signs, and the policy that trusts it.
func signer(t testing.TB, seed byte) (minisign.PrivateKey, trust.Policy) {
	t.Helper()
	public, private, err := minisign.GenerateKey(bytes.NewReader(bytes.Repeat([]byte{seed}, 64)))
	if err != nil {
		t.Fatal(err)
	}
	key, err := trust.ParseKey(public.String())
	if err != nil {
		t.Fatal(err)
	}
	return private, trust.Policy{Mode: trust.Signed, Keys: []trust.Key{key}}
}

// In signed mode a missing, unknown or wrong signature refuses the load and says which; the good one is shown (PLG-11, ABI-11).
func TestSignedMode(t *testing.T) {
	t.Parallel()
	mine, policy := signer(t, 1)
	stranger, strangers := signer(t, 2)
	dir := t.TempDir()
	file, text := filepath.Join(dir, "acme.yaml"), rule("acme", "1.0.0", "overloaded")
	write(t, file, string(text))
	r := started(t, Options{Dir: dir, DataDir: t.TempDir(), Trust: policy, Builtins: []Builtin{{Name: "base", YAML: rule("base", "1.0.0", "banned")}}})
	code := func() string {
		if f := byFile(r, "acme.yaml").Fault; f != nil && f.Step == StepTrust {
			return f.Code
		}
		return ""
	}
	if code() != trust.SignatureMissing || says(r) != "banned" {
		t.Errorf("PLG-11: %q, %q says", code(), says(r))
	}
	write(t, file+".minisig", string(minisign.Sign(stranger, text)))
	eventually(t, "PLG-11 an unknown key", func() bool { return code() == trust.SignatureUnknown })
	write(t, file+".minisig", string(minisign.Sign(mine, []byte("other bytes"))))
	eventually(t, "PLG-11 a wrong signature", func() bool { return code() == trust.SignatureInvalid })
	write(t, file+".minisig", string(minisign.Sign(mine, text)))
	eventually(t, "PLG-11 the right signature", func() bool { return says(r) == "overloaded" })
	if d := only(t, r, "acme"); d.SignedBy == nil || *d.SignedBy != policy.Keys[0].ID() {
		t.Errorf("PLG-15: signed by %v", d.SignedBy)
	}

	// The signature of the next version may come before its bytes: what is verified goes on meanwhile (PLG-2).
	next := rule("acme", "1.0.1", "overloaded")
	write(t, file+".minisig", string(minisign.Sign(mine, next)))
	eventually(t, "PLG-11 the signature of other bytes", func() bool { return code() == trust.SignatureInvalid })
	if st := byFile(r, "acme.yaml"); st.State != StateActive || st.Version != "1.0.0" || says(r) != "overloaded" {
		t.Errorf("PLG-2: the verified version does not go on: %+v", st)
	}
	write(t, file, string(next))
	eventually(t, "PLG-11 the next version", func() bool { st := byFile(r, "acme.yaml"); return st.Version == "1.0.1" && st.Fault == nil })
	write(t, file+".minisig", "")
	eventually(t, "PLG-11 an empty signature", func() bool { return code() == trust.SignatureMissing })
	if r.Trust(t.Context(), trust.Policy{Mode: trust.Signed, Keys: []trust.Key{strangers.Keys[0]}}); says(r) != "banned" {
		t.Errorf("PLG-11: %q says, whose key is not trusted any more", says(r))
	}
	r.Trust(t.Context(), policy)

	module := rule("other", "1.0.0", "overloaded")
	for _, c := range []struct {
		signature []byte
		code      string
	}{{nil, trust.SignatureMissing}, {minisign.Sign(stranger, module), trust.SignatureUnknown}, {minisign.Sign(mine, text), trust.SignatureInvalid}} {
		if rep, err := r.Put(t.Context(), "other", module, PutOptions{Signature: c.signature}); err != nil || rep.OK || rep.Fault.Step != StepTrust || rep.Fault.Code != c.code {
			t.Errorf("PLG-11: %v %+v, want %s", err, rep, c.code)
		}
	}
	put(t, r, "other", module, PutOptions{Signature: minisign.Sign(mine, module)})
	if list, _ := r.Versions("other"); len(list) != 1 || list[0].SignedBy == nil {
		t.Errorf("PLG-11: %+v", list)
	}
}

// In locked mode a file must stand in the lock; one that changed is refused while what was active stays (PLG-11, ABI-11, PLG-2).
func TestLockedMode(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), t.TempDir()
	file, text := filepath.Join(dir, "acme.yaml"), rule("acme", "1.0.0", "overloaded")
	write(t, file, string(text))
	locked := trust.Policy{Mode: trust.Locked}
	r := started(t, Options{Dir: dir, DataDir: data, Trust: locked})
	st := byFile(r, "acme.yaml")
	if st.Fault == nil || st.Fault.Code != trust.NotLocked || st.Fault.Step != StepTrust || !strings.Contains(st.Fault.Message, "weir plugin add") || says(r) != "" {
		t.Fatalf("PLG-11: %+v", st.Fault)
	}
	put(t, r, "acme", text, PutOptions{}) // to add a plugin is to lock it: the mend that the fault names
	if st := byFile(r, "acme.yaml"); st.State != StateActive || len(r.List()) != 1 || says(r) != "overloaded" {
		t.Errorf("ABI-11: the file that was added is not in force: %+v", st)
	}

	write(t, file, string(rule("acme", "1.0.1", "banned")))
	eventually(t, "PLG-11 a changed file", func() bool { f := byFile(r, "acme.yaml").Fault; return f != nil && f.Code == trust.DigestDiffers })
	if says(r) != "overloaded" {
		t.Errorf("PLG-2: the old version does not go on: %q", says(r))
	}
	_, err := r.Put(t.Context(), "acme", rule("acme", "1.0.2", "banned"), PutOptions{})
	if refused(t, err, 409) != CodeManagedByFile {
		t.Errorf("PLG-15: other bytes than the file's were put: %v", err)
	}
	again := started(t, Options{Dir: dir, DataDir: data, Trust: locked})
	if f := byFile(again, "acme.yaml").Fault; f == nil || f.Code != trust.DigestDiffers || says(again) != "" {
		t.Errorf("PLG-11: after a restart %v, %q", f, says(again))
	}
	put(t, again, "acme", rule("acme", "1.0.1", "banned"), PutOptions{})
	if says(again) != "banned" || byFile(again, "acme.yaml").Fault != nil {
		t.Errorf("ABI-11: the changed file was added, and %q", says(again))
	}
}

// A lock file that came with the deployment, or was edited, counts at the next look (ABI-11).
func TestEditedLockFile(t *testing.T) {
	t.Parallel()
	dir, data := t.TempDir(), t.TempDir()
	text := rule("acme", "1.0.0", "overloaded")
	write(t, filepath.Join(dir, "acme.yaml"), string(text))
	r := started(t, Options{Dir: dir, DataDir: data, Trust: trust.Policy{Mode: trust.Locked}})
	if says(r) != "" {
		t.Fatal(says(r))
	}
	write(t, filepath.Join(data, trust.FileName), `{"format":1,"plugins":[{"name":"acme","sha256":"`+digestOf(text)+`","granted":{}}]}`)
	r.Rescan(t.Context())
	if says(r) != "overloaded" {
		t.Errorf("ABI-11: %+v", byFile(r, "acme.yaml").Fault)
	}
}

// Whom the operator trusts may change while the gateway runs.
func TestTrustIsRevoked(t *testing.T) { // PLG-11
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, "acme.yaml"), string(rule("acme", "1.0.0", "overloaded")))
	r := started(t, Options{Dir: dir})
	put(t, r, "kept", rule("kept", "1.0.0", "banned"), PutOptions{})
	r.Trust(t.Context(), trust.Policy{Mode: trust.Locked})
	if st := byFile(r, "acme.yaml"); st.State != StateRejected || st.Fault.Code != trust.NotLocked || says(r) != "banned" {
		t.Errorf("PLG-11: %q %+v", says(r), st)
	}
	r.Trust(t.Context(), trust.Policy{})
	if says(r) != "overloaded" {
		t.Errorf("PLG-11: %q", says(r))
	}
	// Also when the file holds other bytes by then, which are refused themselves.
	write(t, filepath.Join(dir, "acme.yaml"), "name: [")
	eventually(t, "PLG-2 a fault", func() bool { return byFile(r, "acme.yaml").Fault != nil })
	if says(r) != "overloaded" {
		t.Errorf("PLG-2: %q", says(r))
	}
	r.Trust(t.Context(), trust.Policy{Mode: trust.Locked})
	if st := byFile(r, "acme.yaml"); st.State != StateRejected || says(r) != "banned" {
		t.Errorf("PLG-11: what nobody trusts goes on: %q %+v", says(r), st)
	}
}
