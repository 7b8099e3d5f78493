package user

import (
	"context"
	"regexp"
	"strings"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

var pinForm = regexp.MustCompile(`^[0-9]{4,10}$`)

// PINFault returns why a PIN is refused; "" if it is accepted. It refuses PINs that are easy to guess: the extension,
// one repeated digit, ascending or descending digits.
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

// follows reports whether each digit equals the previous one plus by, modulo 10.
func follows(pin string, by byte) bool {
	for i := 1; i < len(pin); i++ {
		if (pin[i-1]-'0'+by)%10 != pin[i]-'0' {
			return false
		}
	}
	return true
}

// storePIN stores a changed PIN in the mailbox.
func (s *Service) storePIN(ctx context.Context, tx db.Querier, u User) error {
	if u.pin == nil {
		return nil
	}
	return wrapError(s.config.Mailboxes.SetPIN(ctx, tx, u.OrgID, u.ID, *u.pin), "store PIN")
}

// SetPIN sets the PIN of a user's mailbox from a telephone session. An invalid PIN returns an *op.Error.
func (s *Service) SetPIN(ctx context.Context, org, id, pin string) error {
	return s.rewrite(ctx, org, id, func(u *User) { u.pin, u.Voicemail.PINSet = &pin, pin != "" })
}

// SetGreeting sets the greeting of a user's mailbox from a telephone session. audio is the id of an audio file.
func (s *Service) SetGreeting(ctx context.Context, org, id, audio string) error {
	return s.rewrite(ctx, org, id, func(u *User) { u.Voicemail.GreetingAudioID = &audio })
}

// rewrite changes a user that is not removed, in a transaction.
func (s *Service) rewrite(ctx context.Context, org, id string, apply func(*User)) error {
	return s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		u, err := s.Get(ctx, tx, org, id)
		if err != nil {
			return notFound(err)
		}
		u.keepOld()
		apply(&u)
		return s.save(ctx, tx, &u, op.Change[[]string]{})
	})
}
