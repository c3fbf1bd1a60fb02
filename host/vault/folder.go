package vault

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Names in the data folder.
const (
	SecretFile  = "secret.key"
	AdminFile   = "admin.key"
	AddrFile    = "addr"
	StoreFolder = "badger"
)

const keyBytes = 32

// minAdminKey is how short an admin key may be: it is all that stands before management (SEC-1).
const minAdminKey = 16

// Options of a vault.
type Options struct {
	// SecretKey is the content of WEIR_SECRET_KEY: 32 bytes in base64; when empty the key is in secret.key.
	SecretKey string
	// AdminKey is the content of WEIR_ADMIN_KEY; when empty the key is in admin.key.
	AdminKey string
}

// Open reads the keys of the data folder dir, and makes those that are missing, with mode 0600. Without a folder (dir is
// empty) both keys have to be in o. A folder that has a store never gets a new secret key: that is ErrMissingKey. It is
// called before the store is opened, because a store without a key could not be told from one whose key was lost.
func Open(dir string, o Options) (*Vault, error) {
	if dir == "" && (o.SecretKey == "" || o.AdminKey == "") {
		return nil, errors.New("without a data folder there is nowhere to keep keys: give WEIR_SECRET_KEY and WEIR_ADMIN_KEY")
	}
	if dir != "" {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, fmt.Errorf("make the data folder: %w", err)
		}
	}
	v := &Vault{}
	key, err := v.secretKey(dir, o.SecretKey)
	if err != nil {
		return nil, err
	}
	if v.seal, err = newSeal(key); err != nil {
		return nil, err
	}
	if v.admin, err = adminKey(dir, o.AdminKey); err != nil {
		return nil, err
	}
	return v, nil
}

func (v *Vault) secretKey(dir, env string) ([]byte, error) {
	if env != "" {
		v.source = "WEIR_SECRET_KEY"
		return parseKey(v.source, env)
	}
	v.source = filepath.Join(dir, SecretFile)
	text, err := os.ReadFile(v.source)
	if errors.Is(err, os.ErrNotExist) {
		if hasStore(dir) {
			return nil, fmt.Errorf("%w: %s holds a store, but its %s is gone: put it back, or set WEIR_SECRET_KEY; nothing was changed", ErrMissingKey, dir, SecretFile)
		}
		text, err = makeOnce(v.source, func() string {
			key := make([]byte, keyBytes)
			_, _ = rand.Read(key) // never fails
			return base64.StdEncoding.EncodeToString(key)
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read the secret key: %w", err)
	}
	return parseKey(v.source, string(text))
}

// hasStore says whether something is stored in the folder, or may be: a folder that cannot be read may.
func hasStore(dir string) bool {
	entries, err := os.ReadDir(filepath.Join(dir, StoreFolder))
	return len(entries) > 0 || err != nil && !errors.Is(err, os.ErrNotExist)
}

func parseKey(source, text string) ([]byte, error) {
	text = strings.TrimRight(strings.TrimSpace(text), "=")
	for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		if key, err := encoding.DecodeString(text); err == nil && len(key) == keyBytes {
			return key, nil
		}
	}
	return nil, fmt.Errorf("the secret key in %s is damaged: it has to be %d bytes in base64", source, keyBytes)
}

func adminKey(dir, env string) (string, error) {
	source := "WEIR_ADMIN_KEY"
	key := strings.TrimSpace(env)
	if key == "" {
		source = filepath.Join(dir, AdminFile)
		text, err := os.ReadFile(source)
		if errors.Is(err, os.ErrNotExist) {
			text, err = makeOnce(source, func() string {
				key := make([]byte, keyBytes)
				_, _ = rand.Read(key) // never fails
				return "weir-admin-" + base64.RawURLEncoding.EncodeToString(key)
			})
		}
		if err != nil {
			return "", fmt.Errorf("read the admin key: %w", err)
		}
		key = strings.TrimSpace(string(text))
	}
	if len(key) < minAdminKey || strings.ContainsAny(key, " \t\r\n") {
		return "", fmt.Errorf("the admin key in %s is no good: it has to be one word of at least %d characters", source, minAdminKey)
	}
	return key, nil
}

// makeOnce writes the file whole or not at all, and never over another: of two processes that start at once, both go on
// with the file of the first. It returns what is in the file.
func makeOnce(name string, content func() string) ([]byte, error) {
	part, err := writePart(name, content()+"\n")
	if err != nil {
		return nil, err
	}
	err = os.Link(part, name)
	if err != nil && !errors.Is(err, os.ErrExist) {
		err = renameOnce(part, name) // a file system without links
	}
	_ = os.Remove(part)
	if err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if err := syncFolder(filepath.Dir(name)); err != nil {
		return nil, err
	}
	return os.ReadFile(name)
}

func renameOnce(part, name string) error {
	if _, err := os.Lstat(name); !errors.Is(err, os.ErrNotExist) {
		return errors.Join(err, os.ErrExist)
	}
	return os.Rename(part, name)
}

// writePart writes a new file beside name, for its owner only, and has it on the disk.
func writePart(name, content string) (part string, err error) {
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*.part") // mode 0600
	if err != nil {
		return "", err
	}
	_, err = f.WriteString(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// syncFolder has the names in dir on the disk. Windows cannot sync a folder, and need not.
func syncFolder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = f.Sync()
	if os.PathSeparator == '\\' {
		err = nil
	}
	return errors.Join(err, f.Close())
}

// WriteAddr leaves the address of the gateway that runs on the data folder dir, for commands to find it (CLI-1).
func WriteAddr(dir, addr string) error {
	name := filepath.Join(dir, AddrFile)
	part, err := writePart(name, addr+"\n")
	if err == nil {
		err = os.Rename(part, name)
	}
	if err != nil {
		return fmt.Errorf("write the address file: %w", err)
	}
	return nil
}

// ReadAddr returns the address that a gateway left, which may have ended since (CLI-6); os.ErrNotExist when there is none.
func ReadAddr(dir string) (string, error) {
	text, err := os.ReadFile(filepath.Join(dir, AddrFile))
	if err != nil {
		return "", fmt.Errorf("read the address file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// RemoveAddr takes the address away when the gateway ends, unless another has left its own since.
func RemoveAddr(dir, addr string) error {
	present, err := ReadAddr(dir)
	if errors.Is(err, os.ErrNotExist) || err == nil && present != addr {
		return nil
	}
	if err := errors.Join(err, os.Remove(filepath.Join(dir, AddrFile))); err != nil {
		return fmt.Errorf("remove the address file: %w", err)
	}
	return nil
}
