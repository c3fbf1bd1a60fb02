package devkit_test

import (
	"crypto/rand"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"aead.dev/minisign"

	"github.com/weirgate/weir/host/devkit"
	"github.com/weirgate/weir/host/plugin/trust"
	"github.com/weirgate/weir/sdk/wire"
)

func TestSign(t *testing.T) {
	dir := t.TempDir()
	keyFile := filepath.Join(dir, "my.key")
	public, err := devkit.Keygen(keyFile, "", rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	pack := file(t, "acme.yaml", []byte("name: acme\n"))
	out, err := devkit.Sign(pack, keyFile, "", time.Unix(1_700_000_000, 0))
	if err != nil || out != pack+".minisig" {
		t.Fatalf("%s, %v", out, err)
	}
	signature, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("PLG-11 a gateway that trusts the key believes it", func(t *testing.T) {
		if _, err := trust.ParseKey(public); err != nil {
			t.Fatal(err)
		}
		key, err := minisign.PublicKeyFromFile(keyFile + ".pub")
		if err != nil {
			t.Fatal(err)
		}
		if !minisign.Verify(key, []byte("name: acme\n"), signature) || minisign.Verify(key, []byte("name: acne\n"), signature) {
			t.Error("the signature is not over these bytes")
		}
	})
	// What the program minisign writes and reads; version 0.11 verifies these files and signs with these keys. Four lines: the
	// algorithm ED of a hashed message, eight bytes of the key's id, 64 of the signature, and a trusted comment that is signed too.
	t.Run("ABI-11 the layout of minisign", func(t *testing.T) {
		lines := strings.Split(string(signature), "\n")
		if len(lines) != 5 || lines[4] != "" || !strings.HasPrefix(lines[0], "untrusted comment: signature from minisign secret key ") ||
			lines[2] != "trusted comment: timestamp:1700000000\tfile:acme.yaml\thashed" {
			t.Errorf("%q", lines)
		}
		first, err := base64.StdEncoding.DecodeString(lines[1])
		if err != nil || len(first) != 74 || string(first[:2]) != "ED" {
			t.Errorf("the signature is %x, %v", first, err)
		}
		key, _ := base64.StdEncoding.DecodeString(public)
		if len(key) != 42 || string(key[:2]) != "Ed" || string(key[2:10]) != string(first[2:10]) {
			t.Errorf("the public key is %x", key)
		}
		secret, _ := os.ReadFile(keyFile)
		secretLines := strings.Split(string(secret), "\n")
		b, err := base64.StdEncoding.DecodeString(secretLines[1])
		if err != nil || len(b) != 158 || !strings.HasPrefix(secretLines[0], "untrusted comment: ") || len(secretLines) != 3 {
			t.Errorf("the secret key has %d bytes, %v", len(b), err)
		}
		if info, err := os.Stat(keyFile); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("the secret key is %v, %v", info.Mode(), err)
		}
	})
	t.Run("CLI-3 what cannot be signed says why", func(t *testing.T) {
		damaged := file(t, "k.key", []byte("untrusted comment: x\nAAAA\n"))
		for _, c := range []struct{ file, key, says string }{
			{pack, damaged, "is no secret key of minisign"}, {pack, keyFile + "x", "weir plugin keygen"}, {damaged, keyFile, "no plugin file by its name"},
			{pack, file(t, "bad.key", []byte("untrusted comment: x\n"+base64.StdEncoding.EncodeToString(make([]byte, 158))+"\n")), "cannot be used"},
		} {
			if _, err := devkit.Sign(c.file, c.key, "", time.Now()); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s with %s: %v", c.file, c.key, err)
			}
		}
		if _, err := devkit.Keygen(keyFile, "", rand.Reader); err == nil || !strings.Contains(err.Error(), "never overwritten") {
			t.Errorf("a key was overwritten: %v", err)
		}
	})
}

func TestGrant(t *testing.T) {
	p := wire.Permissions{
		HTTP: &wire.HTTPPermission{Hosts: []string{"a.example"}, Reason: "limits"}, KV: &wire.KVPermission{Bytes: 64},
		Secrets: []wire.SecretPermission{{Name: "k1"}, {Name: "k2"}}, Terminate: &wire.TerminatePermission{Reason: "bans"},
		Providers: &wire.ProvidersPermission{IDs: []string{"openai"}},
	}
	t.Run("PLG-12 each permission is shown with its reason", func(t *testing.T) {
		asked := devkit.Asked(p)
		if len(asked) != 6 || asked[0].String() != "call a.example: limits" || asked[1].String() != "keep up to 64 bytes of its own (no reason given)" {
			t.Errorf("%v", asked)
		}
		if n := devkit.Asked(wire.Permissions{}); len(n) != 0 {
			t.Errorf("nothing is asked for: %v", n)
		}
	})
	t.Run("PLG-12 only what is named is granted", func(t *testing.T) {
		all, err := devkit.Grant(p, []string{"all"})
		if err != nil || all.HTTP == nil || all.KV.Bytes != 64 || len(all.Secrets) != 2 || !all.Terminate || len(all.Providers) != 1 {
			t.Errorf("all: %+v, %v", all, err)
		}
		some, err := devkit.Grant(p, []string{"kv", "terminate"})
		if err != nil || some.HTTP != nil || some.KV == nil || some.Secrets != nil || !some.Terminate || some.Providers != nil {
			t.Errorf("some: %+v, %v", some, err)
		}
		none, err := devkit.Grant(p, []string{"none"})
		if err != nil || none.HTTP != nil || none.KV != nil || none.Terminate {
			t.Errorf("none: %+v, %v", none, err)
		}
		for _, bad := range [][]string{{"disk"}, {"all", "kv"}, {"none", "kv"}} {
			if _, err := devkit.Grant(p, bad); err == nil {
				t.Errorf("%v is granted", bad)
			}
		}
		if _, err := devkit.Grant(wire.Permissions{KV: p.KV}, []string{"http"}); err == nil || !strings.Contains(err.Error(), "it asks for kv") {
			t.Errorf("wider than the manifest: %v", err)
		}
	})
}
