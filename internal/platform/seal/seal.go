// Package seal protects secrets. It encrypts values that have to be readable again, and digests values that only have
// to be recognised. The master keyset is a file with mode 0600.
package seal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// Seal encrypts and digests. It is safe for concurrent use.
type Seal struct {
	aead   tink.AEAD
	pepper []byte
}

// Read reads the keyset at path, which must have mode 0600. The error is fs.ErrNotExist if the file does not exist.
func Read(path string) (*Seal, error) {
	handle, err := read(path)
	if err != nil {
		return nil, fmt.Errorf("read master key %s: %w", path, err)
	}
	return fromHandle(handle)
}

// Create writes a new keyset to path with mode 0600. It replaces no file.
func Create(path string) (*Seal, error) {
	handle, err := create(path)
	if err != nil {
		return nil, fmt.Errorf("create master key %s: %w", path, err)
	}
	return fromHandle(handle)
}

// Fingerprint returns text that identifies the master key and does not reveal it. It remains when keys are added to the keyset.
func (s *Seal) Fingerprint() string {
	return hex.EncodeToString(s.Key("fingerprint of the master key")[:16])
}

// New returns a Seal with a random key, for tests.
func New() (*Seal, error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, err
	}
	return fromHandle(handle)
}

// fromHandle derives the pepper of digests from the keyset, so that only one file has to be protected.
func fromHandle(handle *keyset.Handle) (*Seal, error) {
	a, err := aead.New(handle)
	if err != nil {
		return nil, err
	}
	b := &keyset.MemReaderWriter{} //nolint:staticcheck // the form of the keyset from which digests of stored data are derived
	if err := insecurecleartextkeyset.Write(handle, b); err != nil {
		return nil, err
	}
	h := sha256.New()
	for _, k := range b.Keyset.GetKey() { // the first key remains when others are added
		h.Write(k.GetKeyData().GetValue())
		break
	}
	return &Seal{aead: a, pepper: h.Sum([]byte("soniq digest pepper"))}, nil
}

func read(path string) (*keyset.Handle, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others may read it; run: chmod 600 %s", path)
	}
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(f))
	if err != nil {
		return nil, fmt.Errorf("the file is damaged or is no master key; "+
			"replace it by the one of a backup of this data folder, or of another node: %w", err)
	}
	return handle, nil
}

func create(path string) (*keyset.Handle, error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".key-*")
	if err != nil {
		return nil, err
	}
	defer os.Remove(f.Name())
	err = insecurecleartextkeyset.Write(handle, keyset.NewJSONWriter(f))
	if err := errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close()); err != nil {
		return nil, err
	}
	return handle, os.Link(f.Name(), path)
}

// Seal encrypts a value. The same associated data, such as org|table|row|column, is needed to decrypt it.
func (s *Seal) Seal(plain, associated []byte) ([]byte, error) {
	return s.aead.Encrypt(plain, associated)
}

// Unseal decrypts a value. It fails if the value was changed, or moved to another location.
func (s *Seal) Unseal(sealed, associated []byte) ([]byte, error) {
	return s.aead.Decrypt(sealed, associated)
}

// Digest returns a keyed digest (HMAC) of a random secret, such as an API key, which can be recognised without
// storing it.
func (s *Seal) Digest(secret string) string {
	m := hmac.New(sha256.New, s.pepper)
	m.Write([]byte(secret))
	return hex.EncodeToString(m.Sum(nil))
}

// Key derives a key for one purpose.
func (s *Seal) Key(purpose string) []byte {
	m := hmac.New(sha256.New, s.pepper)
	m.Write([]byte("key " + purpose))
	return m.Sum(nil)
}

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// Random returns n random base62 characters of 5.95 bits each.
func Random(n int) string {
	out := make([]byte, 0, n)
	buf := make([]byte, 2*n)
	for len(out) < n {
		if _, err := rand.Read(buf); err != nil {
			panic(err) // crypto/rand does not fail on the systems we run on
		}
		for _, b := range buf {
			if b < 248 && len(out) < n { // 248 = 4 × 62: every character is equally likely
				out = append(out, base62[b%62])
			}
		}
	}
	return string(out)
}
