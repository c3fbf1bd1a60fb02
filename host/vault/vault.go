// Package vault owns the secrets of the data folder: the key under which credentials are encrypted before they reach a
// store (DATA-1), the admin key, and the address file by which commands find a running gateway (CLI-1).
package vault

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/weirgate/weir/store"
)

// Errors that callers branch on.
var (
	// ErrSealed: a sealed value does not open, because it was sealed under another key or for another record, or is damaged.
	ErrSealed = errors.New("a sealed value does not open")
	// ErrWrongKey: the store was written under another secret key.
	ErrWrongKey = errors.New("wrong secret key")
	// ErrMissingKey: the folder holds a store, but not the key that it was written under.
	ErrMissingKey = errors.New("missing secret key")
)

// The document by which a store knows its key.
const (
	checkKind = "vault"
	checkID   = "check"
)

const checkText = "weir"

// sealVersion is the first byte of a sealed value; it says how the rest is made.
const sealVersion = 1

// Vault seals and opens values. Safe for concurrent use. Printing one shows nothing of its keys.
type Vault struct {
	seal   cipher.AEAD
	admin  string
	source string // where the secret key came from, for errors
}

// Seal encrypts plain with AES-256-GCM under a random nonce of its own. kind, id and field say where the value belongs,
// and it opens nowhere else.
func (v *Vault) Seal(kind, id, field string, plain []byte) ([]byte, error) {
	out := make([]byte, 1+v.seal.NonceSize(), 1+v.seal.NonceSize()+len(plain)+v.seal.Overhead())
	out[0] = sealVersion
	nonce := out[1:]
	if _, err := rand.Read(nonce); err != nil {
		return nil, fmt.Errorf("seal %s of %s/%s: %w", field, kind, id, err)
	}
	return v.seal.Seal(out, nonce, plain, place(kind, id, field)), nil
}

// Unseal opens what Seal made for the same kind, id and field, or returns ErrSealed.
func (v *Vault) Unseal(kind, id, field string, sealed []byte) ([]byte, error) {
	head := 1 + v.seal.NonceSize()
	if len(sealed) < head || sealed[0] != sealVersion {
		return nil, fmt.Errorf("%s of %s/%s: %w: it is not a sealed value", field, kind, id, ErrSealed)
	}
	plain, err := v.seal.Open(nil, sealed[1:head], sealed[head:], place(kind, id, field))
	if err != nil {
		return nil, fmt.Errorf("%s of %s/%s: %w: it was sealed under another key or for another record", field, kind, id, ErrSealed)
	}
	return plain, nil
}

// place is the additional data of a value. Each part carries its length, so that two places never read the same.
func place(kind, id, field string) []byte {
	var b []byte
	for _, part := range []string{kind, id, field} {
		b = append(binary.AppendUvarint(b, uint64(len(part))), part...)
	}
	return b
}

// Check proves that st was written under this key, and marks a new store with it. It returns ErrWrongKey when it was not,
// and writes nothing then; and store.ErrDegraded when a new store cannot be marked now, since its disk is full: nothing is
// wrong with the key then, but Check has to be called again before anything sealed is stored.
func (v *Vault) Check(ctx context.Context, st store.Documents) error {
	doc, err := st.Get(ctx, checkKind, checkID)
	if errors.Is(err, store.ErrNotFound) {
		err = v.mark(ctx, st)
		if !errors.Is(err, store.ErrConflict) {
			return err
		}
		doc, err = st.Get(ctx, checkKind, checkID) // somebody else was first
	}
	if err != nil {
		return fmt.Errorf("check the secret key: %w", err)
	}
	plain, err := v.Unseal(checkKind, checkID, "text", doc.Data)
	if err != nil || string(plain) != checkText {
		return fmt.Errorf("%w: the store was encrypted under another key than the one in %s: put the right key there; nothing was changed", ErrWrongKey, v.source)
	}
	return nil
}

func (v *Vault) mark(ctx context.Context, st store.Documents) error {
	sealed, err := v.Seal(checkKind, checkID, "text", []byte(checkText))
	if err != nil {
		return err
	}
	absent := uint64(0)
	if _, err := st.Change(ctx, store.Write{Kind: checkKind, ID: checkID, Data: sealed, If: &absent}); err != nil {
		return fmt.Errorf("mark the store with its secret key: %w", err)
	}
	return nil
}

// AdminKey opens management (SEC-1).
func (v *Vault) AdminKey() string { return v.admin }

// Format keeps the keys out of every way of printing.
func (v *Vault) Format(f fmt.State, _ rune) { _, _ = f.Write([]byte("vault")) }

// MarshalText keeps the keys out of logs and JSON.
func (v *Vault) MarshalText() ([]byte, error) { return []byte("vault"), nil }

func newSeal(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCM(block)
}
