package mailbox

import (
	"context"
	"strings"

	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
)

// Users listen to their messages from any telephone: they call their number, press star in the greeting, and enter their PIN.

// hasPIN reports whether a mailbox is that of a user with a PIN. It logs errors and returns false for them, because a message can be taken
// in any case.
func (s *Service) hasPIN(ctx context.Context, org, mailbox string) bool {
	if !strings.HasPrefix(mailbox, "usr_") {
		return false
	}
	has, err := s.cfg.Voicemail.HasPIN(ctx, s.cfg.DB.Read(ctx), org, mailbox)
	if err != nil && ctx.Err() == nil {
		s.cfg.Log.Error("PIN of mailbox not read", "mailbox", mailbox, "err", err)
	}
	return has && err == nil
}

// openFromGreeting opens the mailbox of a user for a caller who pressed star in its greeting. opened is false if the caller pressed
// another key, or entered no PIN: then a message is taken. Keys are masked until the outcome.
func (s *Service) openFromGreeting(ctx context.Context, v *pbx.ScriptedCall, user string) (outcome string, opened bool) {
	if key, pressed := v.TakeKey(); !pressed || key != '*' {
		return "", false
	}
	l := &mailboxSession{s: s, v: v, remote: true}
	var err error
	if l.user, err = s.cfg.Users.Get(ctx, s.cfg.DB.Read(ctx), v.Info().Org, user); err != nil {
		return l.run(ctx, false, err), true
	}
	for range accessTries {
		pin, err := l.askPIN(ctx)
		if err == nil && pin == "" {
			return "", false
		}
		open, over := false, true
		if err == nil {
			open, over, err = l.checkPIN(ctx, pin)
		}
		if open {
			v.SetMissed(call.NotMissed) // also if the caller hangs up in the menu
		}
		if open || over || err != nil {
			return l.run(ctx, open, err), true
		}
	}
	return l.run(ctx, false, nil), true
}
