package user

import (
	"context"
	"regexp"
	"strings"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

var pinForm = regexp.MustCompile(`^[0-9]{4,10}$`)

// PINFault says what is wrong with a PIN; "" where nothing is. What everybody would try first is refused: the extension, one digit
// again and again, digits that follow each other.
func PINFault(pin, extension string) string {
	switch {
	case !pinForm.MatchString(pin):
		return "must be 4 to 10 digits"
	case extension != "" && strings.Trim(pin, "0") == strings.Trim(extension, "0"):
		return "must not be the extension"
	case strings.Count(pin, pin[:1]) == len(pin), follows(pin, 1), follows(pin, 9):
		return "is too easily guessed"
	}
	return ""
}

// follows tells whether each digit is so much more than the one before, 0 coming after 9.
func follows(pin string, by byte) bool {
	for i := 1; i < len(pin); i++ {
		if (pin[i-1]-'0'+by)%10 != pin[i]-'0' {
			return false
		}
	}
	return true
}

// keepPIN hands over a PIN that was given with a change.
func (s *Service) keepPIN(ctx context.Context, tx db.Querier, u User) error {
	if u.pin == nil || s.KeepPIN == nil {
		return nil
	}
	return wrap(s.KeepPIN(ctx, tx, u.OrgID, u.ID, *u.pin), "keep PIN")
}

// SetPIN sets the PIN of a user's mailbox, as the user does by telephone. What is wrong with it is an *op.Error.
func (s *Service) SetPIN(ctx context.Context, org, id, pin string) error {
	return s.rewrite(ctx, org, id, func(u *User) { u.pin, u.Voicemail.PINSet = &pin, pin != "" })
}

// SetGreeting has a user's mailbox greet with a sound, as the user does by telephone.
func (s *Service) SetGreeting(ctx context.Context, org, id, audio string) error {
	return s.rewrite(ctx, org, id, func(u *User) { u.Voicemail.GreetingAudioID = &audio })
}

// rewrite changes a living user in a transaction.
func (s *Service) rewrite(ctx context.Context, org, id string, apply func(*User)) error {
	return s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		u, err := s.Get(ctx, tx, org, id)
		if err != nil {
			return missing(err)
		}
		apply(&u)
		return s.save(ctx, tx, &u, op.Change[[]string]{})
	})
}
