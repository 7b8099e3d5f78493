package routing

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/voicemail"
)

// Destinations of the dial codes for voicemail access.
const (
	OwnMailbox = "mailbox:own"
	AnyMailbox = "mailbox:any"
)

// Limits of the voicemail dialogue.
const (
	boxTries = 3 // attempts to enter the mailbox and its PIN
	boxWait  = 6 * time.Second
	boxIdle  = 3  // questions in a row without an answer
	mostPIN  = 12 // keys that are read of a PIN
)

// mailboxSession is a user who listens to their messages by telephone.
type listening struct {
	s    *Service
	v    *pbx.Visit
	user user.User
	idle int
}

// mailboxAccess lets a user listen to messages: those of the user of the phone, or with *98 and a PIN those of any
// mailbox.
func (s *Service) access(ctx context.Context, v *pbx.Visit, id string, _ pbx.Lead) (outcome string) {
	v.Mask(true) // all keys, because users press the PIN ahead of the prompt
	defer v.Mask(false)
	if v.Enter(ctx, pbx.Place{Stage: "voicemail"}) != nil || v.Answer(ctx) != nil {
		return Gone
	}
	l := &listening{s: s, v: v}
	open, err := l.enter(ctx, id == "own" && v.Info().UserID != "")
	if err == nil && open {
		outcome, err = l.listen(ctx)
	}
	switch {
	case ctx.Err() != nil || v.Connected():
		return Gone
	case err != nil:
		s.Log.Error("mailbox access failed", "call", v.Info().CallID, "user", l.user.ID, "err", err)
		_ = s.say(ctx, v, "Sorry, something went wrong. Goodbye.")
		return Ended
	case outcome == "":
		_ = s.say(ctx, v, "Goodbye.")
		v.Missed(call.NotMissed) // the call served its purpose
		_ = v.HangUp(ctx, "callee_hangup")
		return Gone
	}
	return outcome
}

// authenticate finds the mailbox and checks the PIN. On the user's own phone no PIN is asked if none is set.
func (l *listening) enter(ctx context.Context, own bool) (bool, error) {
	if !own {
		return l.enterAny(ctx)
	}
	var err error
	if l.user, err = l.s.Users.Get(ctx, l.s.DB.Read(ctx), l.v.Info().Org, l.v.Info().UserID); err != nil {
		return false, err
	}
	has, err := l.s.Voicemail.HasPIN(ctx, l.s.DB.Read(ctx), l.user.OrgID, l.user.ID)
	if err != nil || !has {
		l.entered("own telephone")
		return err == nil, err
	}
	for range boxTries {
		if open, over, err := l.tryPIN(ctx); open || over || err != nil {
			return open, err
		}
	}
	return false, nil
}

// authenticateAny asks for a mailbox and its PIN. The responses do not reveal whether the mailbox exists or has a
// PIN.
func (l *listening) enterAny(ctx context.Context) (bool, error) {
	for range boxTries {
		extension, err := l.ask(ctx, "Please enter the number of the mailbox, and press the hash key.", 8)
		if err != nil {
			return false, err
		}
		u, err := l.s.Users.ByExtension(ctx, l.s.DB.Read(ctx), l.v.Info().Org, extension)
		if err != nil && !db.IsNone(err) {
			return false, err
		}
		l.user = u
		if open, over, err := l.tryPIN(ctx); open || over || err != nil {
			return open, err
		}
	}
	return false, nil
}

// tryPIN asks for the PIN once. It returns over if there must be no further attempt.
func (l *listening) tryPIN(ctx context.Context) (open, over bool, err error) {
	pin, err := l.ask(ctx, "Please enter your PIN, and press the hash key.", mostPIN)
	if err != nil {
		return false, false, err
	}
	t := voicemail.Try{Door: voicemail.Wrong}
	if l.user.ID != "" {
		if t, err = l.s.Voicemail.TryPIN(ctx, l.user.OrgID, l.user.ID, pin); err != nil {
			return false, false, err
		}
	}
	switch t.Door {
	case voicemail.Opened:
		l.entered("PIN")
		return true, true, nil
	case voicemail.Locked:
		l.v.Step("mailbox.locked", map[string]any{"user_id": l.user.ID, "until": t.Until.UTC().Format(time.RFC3339)})
		if t.Shut && l.s.Locked != nil {
			l.s.Locked(context.WithoutCancel(ctx), l.user.OrgID, l.user.ID, l.v.Info())
		}
		return false, true, l.say(ctx, "This mailbox is locked, because a wrong PIN was entered too often. Please try again later.")
	}
	l.v.Step("mailbox.wrong_pin", map[string]any{"user_id": l.user.ID})
	return false, false, l.say(ctx, "That is not right.")
}

func (l *listening) entered(by string) {
	l.v.Step("mailbox.entered", map[string]any{"user_id": l.user.ID, "by": by})
}

func (l *listening) say(ctx context.Context, text string) error { return l.s.say(ctx, l.v, text) }

// askKey asks a question and waits for one key. It returns 0 after three unanswered questions in a row.
func (l *listening) key(ctx context.Context, text string) (rune, error) {
	for {
		if err := l.say(ctx, text); err != nil {
			return 0, err
		}
		key, pressed, err := l.v.Key(ctx, boxWait)
		if err != nil || pressed {
			l.idle = 0
			return key, err
		}
		if l.idle++; l.idle >= boxIdle {
			return 0, nil
		}
	}
}

// askDigits asks for digits, up to the hash key.
func (l *listening) ask(ctx context.Context, text string, most int) (string, error) {
	if err := l.say(ctx, text); err != nil {
		return "", err
	}
	digits := ""
	for len(digits) < most {
		key, pressed, err := l.v.Key(ctx, boxWait)
		if err != nil {
			return "", err
		}
		if !pressed || key == '#' {
			break
		}
		if key >= '0' && key <= '9' {
			digits += string(key)
		}
	}
	return digits, nil
}

// mainMenu runs the menu of a mailbox. It returns "" if the user is done.
func (l *listening) listen(ctx context.Context) (outcome string, err error) {
	for {
		all, err := l.s.Voicemail.Mine(ctx, l.user.OrgID, l.user.ID, mostHeard)
		if err != nil {
			return "", err
		}
		key, err := l.key(ctx, fmt.Sprintf("You have %s. To hear your messages, press 1. To record your greeting, press 5. To change your PIN, press 6. To end, press hash.",
			counted(all)))
		switch {
		case err != nil || key == 0 || key == '#':
			return "", err
		case key == '1':
			if outcome, over, err := l.hearAll(ctx, all); outcome != "" || over || err != nil {
				return outcome, err
			}
		case key == '5':
			err = l.recordGreeting(ctx)
		case key == '6':
			err = l.changePIN(ctx)
		}
		if err != nil {
			return "", err
		}
	}
}

// changePIN asks for a new PIN twice.
func (l *listening) changePIN(ctx context.Context) error {
	for range boxTries {
		pin, err := l.ask(ctx, "Please enter your new PIN, 4 to 10 digits, and press the hash key.", mostPIN)
		if err != nil || pin == "" {
			return err
		}
		again, err := l.ask(ctx, "Please enter it again.", mostPIN)
		if err != nil {
			return err
		}
		if pin != again {
			if err := l.say(ctx, "That was not the same."); err != nil {
				return err
			}
			continue
		}
		if fault := user.PINFault(pin, mailboxName(l.user)); fault != "" {
			if err := l.say(ctx, "The PIN "+fault+"."); err != nil {
				return err
			}
			continue
		}
		if err := l.s.Users.SetPIN(ctx, l.user.OrgID, l.user.ID, pin); err != nil {
			return err
		}
		l.v.Step("mailbox.pin_changed", map[string]any{"user_id": l.user.ID})
		return l.say(ctx, "Your PIN has been changed.")
	}
	return nil
}
