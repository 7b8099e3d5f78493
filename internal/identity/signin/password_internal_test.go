package signin

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// A hash is computed for a password of any length, so that the time of an answer does not show whether the address exists. Here the context
// has ended, and all slots are taken: a computation fails, its omission would not.
func TestMatches_HashesPasswordOfAnyLength(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	s := &Service{hashSlots: make(chan struct{})}
	hash := "$argon2id$v=19$m=19456,t=2,p=1$c2FsdHNhbHRzYWx0c2FsdA$aGFzaA"
	for _, n := range []int{8, 4*maxPasswordLength + 1, 1 << 20} {
		if _, err := s.matches(ctx, strings.Repeat("x", n), hash); !errors.Is(err, context.Canceled) {
			t.Errorf("%d bytes: %v", n, err)
		}
	}
}

func TestPasswordFault_CommonPasswords(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"password1234", "Password2026!", "p4ssw0rd12345", "qwertyuiop12", "1qaz2wsx3edc", "123456789012", "aaaaaaaaaaaa", "abcabcabcabc",
		"passwordpassword", "1234password", "letmein123456", "Football2025!", "drowssap1234", "abcdefghijkl", "ada.lovelace12", "administrator1", "iloveyou12345"} {
		if passwordFault(bad, "ada.lovelace@example.com") == "" {
			t.Errorf("%q is accepted", bad)
		}
	}
	for _, good := range []string{"correct horse battery", "another good one", "Vuvuzela & 3 kettles", "kx7#Qm2!pLw9", "Rohrzange-im-Regal", "a third good one"} {
		if text := passwordFault(good, "ada.lovelace@example.com"); text != "" {
			t.Errorf("%q: %s", good, text)
		}
	}
	if text := passwordFault("kx7#Qm2!pLw", ""); !strings.Contains(text, "12 characters") {
		t.Errorf("11 characters: %s", text)
	}
}
