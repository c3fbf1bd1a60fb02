package devkit

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"aead.dev/minisign"
)

// Suffixes of the files that signing makes; they are those of the program minisign.
const (
	publicSuffix    = ".pub"
	signatureSuffix = ".minisig"
)

// Keygen makes a pair of keys in minisign's format: the secret one in file, encrypted when there is a password, and the public one in
// file.pub. It returns the public key as it stands in plugins.trusted_keys (ABI-11). A file that is there is not overwritten.
func Keygen(file, password string, random io.Reader) (public string, err error) {
	key, secret, err := minisign.GenerateKey(random)
	if err != nil {
		return "", err
	}
	text, err := secret.MarshalText()
	if password != "" {
		text, err = minisign.EncryptKey(password, secret)
	}
	if err != nil {
		return "", err
	}
	open, err := key.MarshalText()
	if err != nil {
		return "", err
	}
	if err := fresh(file, text, 0o600); err != nil {
		return "", err
	}
	if err := fresh(file+publicSuffix, open, 0o644); err != nil {
		return "", errors.Join(err, os.Remove(file))
	}
	lines := strings.Split(strings.TrimSpace(string(open)), "\n")
	return lines[len(lines)-1], nil
}

// fresh writes a file that must not be there yet.
func fresh(file string, text []byte, mode fs.FileMode) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already and a key is never overwritten; name another file", file)
	}
	if err != nil {
		return fmt.Errorf("%s cannot be written (%w); name another place", file, reason(err))
	}
	_, err = f.Write(append(bytes.TrimRight(text, "\n"), '\n'))
	return errors.Join(err, f.Close())
}

// Sign signs a plugin file with the secret key in keyFile and writes the signature beside it, as FILE.minisig, which minisign -V
// verifies too. It returns the name of that file. The signature is over the bytes of the file as they are (PLG-11).
func Sign(file, keyFile, password string, now time.Time) (string, error) {
	content, err := read(file)
	if err != nil {
		return "", err
	}
	key, err := secretKey(keyFile, password)
	if err != nil {
		return "", err
	}
	r := minisign.NewReader(bytes.NewReader(content))
	if _, err := io.Copy(io.Discard, r); err != nil {
		return "", err
	}
	trusted := fmt.Sprintf("timestamp:%d\tfile:%s\thashed", now.Unix(), filepath.Base(file))
	signature := r.SignWithComments(key, trusted, fmt.Sprintf("signature from minisign secret key %X", key.ID()))
	out := file + signatureSuffix
	if err := os.WriteFile(out, append(bytes.TrimRight(signature, "\n"), '\n'), 0o644); err != nil {
		return "", fmt.Errorf("%s cannot be written (%w)", out, reason(err))
	}
	return out, nil
}

func secretKey(file, password string) (key minisign.PrivateKey, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return key, fmt.Errorf("the secret key %s cannot be read (%w); make one with weir plugin keygen", file, reason(err))
	}
	text = bytes.TrimSpace(text)
	lines := bytes.Split(text, []byte("\n"))
	if b, err := base64.StdEncoding.DecodeString(string(lines[len(lines)-1])); err != nil || len(b) < 62 {
		return key, fmt.Errorf("%s is no secret key of minisign; make one with weir plugin keygen", file)
	}
	switch {
	case !minisign.IsEncrypted(text):
		err = key.UnmarshalText(text)
	case password == "":
		return key, fmt.Errorf("the secret key %s has a password; give it in WEIR_SIGN_PASSWORD", file)
	default:
		key, err = minisign.DecryptKey(password, text)
	}
	if err != nil {
		return key, fmt.Errorf("the secret key %s cannot be used: the password is wrong, or the file is damaged", file)
	}
	return key, nil
}
