package signin

import (
	"context"
	"errors"
	"strings"
	"testing"
)

// A hash is computed for a password of any length, so that the time of an answer does not show whether the address exists. Here the context has ended, and
// all slots are taken: a computation fails, its omission would not.
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
