// Package seal keeps secrets: it encrypts what the database must be able to give back, and digests what it need
// only recognise. The master keyset is a file only the owner can read.
package seal

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"
)

// A Seal encrypts and digests. It is safe for concurrent use.
type Seal struct {
	aead   tink.AEAD
	pepper []byte
}

// Open reads the keyset at path (mode 0600), or makes one where there is none.
func Open(path string) (*Seal, error) {
	handle, err := read(path)
	if errors.Is(err, fs.ErrNotExist) {
		handle, err = create(path)
	}
	if err != nil {
		return nil, fmt.Errorf("open master key %s: %w", path, err)
	}
	return fromHandle(handle)
}

// New makes a Seal with a key of its own, for tests.
func New() (*Seal, error) {
	handle, err := keyset.NewHandle(aead.AES256GCMKeyTemplate())
	if err != nil {
		return nil, err
	}
	return fromHandle(handle)
}

// fromHandle derives the pepper of digests from the keyset, so that one file is all there is to keep safe.
func fromHandle(handle *keyset.Handle) (*Seal, error) {
	a, err := aead.New(handle)
	if err != nil {
		return nil, err
	}
	b := &keyset.MemReaderWriter{}
	if err := insecurecleartextkeyset.Write(handle, b); err != nil {
		return nil, err
	}
	h := sha256.New()
	for _, k := range b.Keyset.GetKey() { // the first key stays in the keyset when others are added
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
	return insecurecleartextkeyset.Read(keyset.NewJSONReader(f))
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
	return handle, os.Rename(f.Name(), path)
}

// Seal encrypts; the associated data, such as org|table|row|column, must be given again to read it.
func (s *Seal) Seal(plain, associated []byte) ([]byte, error) {
	return s.aead.Encrypt(plain, associated)
}

// Unseal decrypts, or fails where the value was changed or moved.
func (s *Seal) Unseal(sealed, associated []byte) ([]byte, error) {
	return s.aead.Decrypt(sealed, associated)
}

// Digest recognises a random secret, such as an API key, without keeping it.
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

// Random makes n random base62 characters, each worth 5.95 bits.
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
