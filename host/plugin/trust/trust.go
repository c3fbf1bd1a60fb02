// Package trust decides whether the bytes of a third-party plugin may be loaded: by their digest in the lock file, or by a
// signature of a key that the operator trusts (ABI-11, PLG-11). It owns the lock file, which also holds what was granted to a
// digest. It knows nothing of what is inside of a plugin.
package trust

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"aead.dev/minisign"
)

// Modes of trust. Empty means Open.
const (
	Open   = "open"   // every digest, with the grant that stands in the lock, else none
	Locked = "locked" // only digests that stand in the lock
	Signed = "signed" // only what one of the trusted keys signed
)

// Codes of refusals.
const (
	NotLocked        = "not_locked"            // nothing of that name stands in the lock
	DigestDiffers    = "digest_differs"        // the name does, with another digest: the file changed
	SignatureMissing = "signature_missing"     // there is no signature
	SignatureInvalid = "signature_invalid"     // a trusted key is named, and it did not sign these bytes; or it is no signature
	SignatureUnknown = "signature_unknown_key" // somebody else signed them
)

// Refusal says why bytes may not be loaded, with the mend.
type Refusal struct{ Code, Message string }

// Error is the sentence.
func (r *Refusal) Error() string { return r.Message }

func refuse(code, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Key is a public key that the operator trusts.
type Key struct{ key minisign.PublicKey }

// ParseKey reads a public key as minisign prints it: the line that begins with RW, alone or with its comment line before it.
func ParseKey(text string) (Key, error) {
	var k Key
	if err := k.key.UnmarshalText([]byte(strings.TrimSpace(text))); err != nil {
		return k, errors.New("is no minisign public key; write the line of NAME.pub that begins with RW")
	}
	return k, nil
}

// ID is the name of the key as minisign shows it: 16 hexadecimal digits.
func (k Key) ID() string { return keyID(k.key.ID()) }

func keyID(id uint64) string { return fmt.Sprintf("%016X", id) }

// Policy is what the operator trusts.
type Policy struct {
	Mode string
	Keys []Key
}

// Equal says whether both trust the same.
func (p Policy) Equal(o Policy) bool {
	return p.Mode == o.Mode && slices.EqualFunc(p.Keys, o.Keys, func(a, b Key) bool { return a.key.Equal(b.key) })
}

// Keeps says whether what was admitted before may go on: its digest is still locked under its name, or the key that signed it is still
// trusted. signedBy is what Admit said; empty: nobody that was trusted.
func (p Policy) Keeps(l *Lock, name, digest, signedBy string) bool {
	switch p.Mode {
	case Signed:
		return slices.ContainsFunc(p.Keys, func(k Key) bool { return k.ID() == signedBy })
	case Locked:
		return p.Named(l, name, digest) == nil
	}
	return true
}

// SignedBy is the id of the trusted key that signed module, both in the older form of minisign and in the one that signs a
// hash. The refusal says what is wrong with the signature.
func (p Policy) SignedBy(module, signature []byte) (string, *Refusal) {
	if len(signature) == 0 {
		return "", refuse(SignatureMissing, "it has no signature, and plugins.trust is signed; sign it (minisign -Sm FILE) and put the .minisig file beside it, or give it with --signature")
	}
	var s minisign.Signature
	if err := s.UnmarshalText(signature); err != nil {
		return "", refuse(SignatureInvalid, "its signature is not in minisign's format; sign it again with minisign -Sm FILE")
	}
	at := slices.IndexFunc(p.Keys, func(k Key) bool { return k.key.ID() == s.KeyID })
	if at < 0 {
		return "", refuse(SignatureUnknown, "it is signed by the key %s, which is not trusted; add that public key to plugins.trusted_keys if you trust its owner", keyID(s.KeyID))
	}
	if !minisign.Verify(p.Keys[at].key, module, signature) {
		return "", refuse(SignatureInvalid, "its signature by the key %s does not fit these bytes: one of the two was changed; get both again from their author", keyID(s.KeyID))
	}
	return p.Keys[at].ID(), nil
}

// Admit says whether bytes with this digest may be loaded, before anything of them is run. name is what is known of it by then: the
// name of the file without its ending. signedBy is the trusted key that signed them, also when that was not asked for.
func (p Policy) Admit(l *Lock, name, digest string, module, signature []byte) (signedBy string, r *Refusal) {
	signedBy, r = p.SignedBy(module, signature)
	switch p.Mode {
	case Signed:
		return signedBy, r
	case Locked:
		if !l.Has(digest) {
			return "", l.missing(name, digest)
		}
	}
	return signedBy, nil
}

// Named checks what could not be known before the manifest was read: in locked mode the digest must be locked under the very name.
func (p Policy) Named(l *Lock, name, digest string) *Refusal {
	if p.Mode != Locked {
		return nil
	}
	if _, ok := l.Find(name, digest); ok {
		return nil
	}
	return l.missing(name, digest)
}

// missing is the refusal of a digest that is not in the lock.
func (l *Lock) missing(name, digest string) *Refusal {
	if known := l.Named(name); len(known) > 0 {
		return refuse(DigestDiffers, "its sha256 is %s, but the lock has %s for %s: the file changed; if that was you, run weir plugin add FILE, else restore it",
			short(digest), short(known[len(known)-1].SHA256), name)
	}
	return refuse(NotLocked, "its sha256 %s is not in the lock file, and plugins.trust is locked; look at what it asks for and run weir plugin add FILE", short(digest))
}

func short(digest string) string { return digest[:min(12, len(digest))] + "…" }
