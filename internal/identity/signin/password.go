package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/argon2"
)

// Argon2id as OWASP recommends: 19 MiB, two passes, one lane; about 25 ms.
const (
	hashTime   = 2
	hashMemory = 19 << 10 // KiB
	hashLanes  = 1
	hashLength = 32
	saltLength = 16
)

// Length limits of passwords, in characters.
const (
	minPasswordLength = 12
	maxPasswordLength = 200
)

// passwordFault returns why a new password is refused; "" if it is accepted.
func passwordFault(password, email string) string {
	n := utf8.RuneCountInString(password)
	name, _, _ := strings.Cut(strings.ToLower(email), "@")
	low := strings.ToLower(password)
	switch {
	case n < minPasswordLength:
		return "The password must have at least 12 characters. A few words in a row are a good one."
	case n > maxPasswordLength:
		return "The password must have at most 200 characters."
	case low == strings.ToLower(email), len(name) > 3 && trimPadding(strings.Replace(low, name, "", 1)) == "", isCommon(low):
		return "This password is too easily guessed."
	}
	return ""
}

// hash returns the hash of a password for the database (PHC string format).
func (s *Service) hash(ctx context.Context, password string) (string, error) {
	salt := make([]byte, saltLength)
	_, _ = rand.Read(salt)
	sum, err := s.derive(ctx, password, salt)
	if err != nil {
		return "", err
	}
	b64 := base64.RawStdEncoding
	return fmt.Sprintf("$argon2id$v=%d$m=%d,t=%d,p=%d$%s$%s", argon2.Version, hashMemory, hashTime, hashLanes, b64.EncodeToString(salt),
		b64.EncodeToString(sum)), nil
}

// derive computes a hash. At most two run at a time, so that many attempts cost at most 40 MiB.
func (s *Service) derive(ctx context.Context, password string, salt []byte) ([]byte, error) {
	select {
	case s.hashSlots <- struct{}{}:
		defer func() { <-s.hashSlots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return argon2.IDKey([]byte(password), salt, hashTime, hashMemory, hashLanes, hashLength), nil
}

// matches reports whether the hash was made from the password. It takes the same time for a password that is longer than any accepted one.
func (s *Service) matches(ctx context.Context, password, hash string) (bool, error) {
	parts := strings.Split(hash, "$")
	if len(parts) != 6 {
		return false, nil
	}
	salt, err1 := base64.RawStdEncoding.DecodeString(parts[4])
	want, err2 := base64.RawStdEncoding.DecodeString(parts[5])
	if err1 != nil || err2 != nil || parts[1] != "argon2id" || parts[3] != fmt.Sprintf("m=%d,t=%d,p=%d", hashMemory, hashTime, hashLanes) {
		return false, nil
	}
	const longest = 4 * maxPasswordLength // in bytes
	sum, err := s.derive(ctx, password[:min(len(password), longest)], salt)
	return err == nil && len(password) <= longest && subtle.ConstantTimeCompare(sum, want) == 1, err
}
