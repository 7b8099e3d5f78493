package mailbox

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/contactcenter/routing"
	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/voicemail"
)

// Limits of the voicemail dialogue.
const (
	accessTries   = 3 // attempts to enter the mailbox and its PIN
	keyTimeout    = 6 * time.Second
	maxUnanswered = 3  // questions in a row without an answer
	maxPINKeys    = 12 // keys that are read of a PIN
)

// mailboxSession is a user who listens to their messages by telephone.
type mailboxSession struct {
	s          *Service
	v          *pbx.ScriptedCall
	user       user.User
	remote     bool // from the greeting: no call back at the expense of the organisation
	unanswered int
}

// OpenMailbox lets a user listen to messages: those of the user of the phone, or with *98 and a PIN those of any
// mailbox.
func (s *Service) OpenMailbox(ctx context.Context, v *pbx.ScriptedCall, id string, _ pbx.Handoff) (outcome string) {
	v.MaskKeys(true) // all keys, because users press the PIN ahead of the prompt
	defer v.MaskKeys(false)
	if v.SetStage(ctx, pbx.Place{Stage: "voicemail"}) != nil || v.Answer(ctx) != nil {
		return routing.CallerGone
	}
	l := &mailboxSession{s: s, v: v}
	open, err := l.authenticate(ctx, id == "own" && v.Info().UserID != "")
	return l.run(ctx, open, err)
}

// run runs the main menu if the mailbox is open and err is nil, and ends the call.
func (l *mailboxSession) run(ctx context.Context, open bool, err error) (outcome string) {
	if err == nil && open {
		outcome, err = l.mainMenu(ctx)
	}
	switch {
	case ctx.Err() != nil || l.v.Connected():
		return routing.CallerGone
	case err != nil:
		l.s.cfg.Log.Error("mailbox access failed", "call", l.v.Info().CallID, "user", l.user.ID, "err", err)
		_ = l.say(ctx, "Sorry, something went wrong. Goodbye.")
		return routing.Ended
	case outcome == "":
		_ = l.say(ctx, "Goodbye.")
		l.v.SetMissed(call.NotMissed) // the call served its purpose
		_ = l.v.HangUp(ctx, "callee_hangup")
		return routing.CallerGone
	}
	return outcome
}

// authenticate finds the mailbox and checks the PIN. On the user's own phone no PIN is asked if none is set.
func (l *mailboxSession) authenticate(ctx context.Context, own bool) (bool, error) {
	if !own {
		return l.authenticateAny(ctx)
	}
	var err error
	if l.user, err = l.s.cfg.Users.Get(ctx, l.s.cfg.DB.Read(ctx), l.v.Info().Org, l.v.Info().UserID); err != nil {
		return false, err
	}
	has, err := l.s.cfg.Voicemail.HasPIN(ctx, l.s.cfg.DB.Read(ctx), l.user.OrgID, l.user.ID)
	if err != nil || !has {
		l.traceEntered("own telephone")
		return err == nil, err
	}
	for range accessTries {
		if open, over, err := l.tryPIN(ctx); open || over || err != nil {
			return open, err
		}
	}
	return false, nil
}

// authenticateAny asks for a mailbox and its PIN. The responses do not reveal whether the mailbox exists or has a
// PIN.
func (l *mailboxSession) authenticateAny(ctx context.Context) (bool, error) {
	for range accessTries {
		extension, err := l.askDigits(ctx, "Please enter the number of the mailbox, and press the hash key.", 8)
		if err != nil {
			return false, err
		}
		u, err := l.s.cfg.Users.ByExtension(ctx, l.s.cfg.DB.Read(ctx), l.v.Info().Org, extension)
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

// askPIN asks for the PIN once. It returns the digits, or "" if no key was pressed.
func (l *mailboxSession) askPIN(ctx context.Context) (string, error) {
	return l.askDigits(ctx, "Please enter your PIN, and press the hash key.", maxPINKeys)
}

// tryPIN asks for the PIN once. It returns over if there must be no further attempt.
func (l *mailboxSession) tryPIN(ctx context.Context) (open, over bool, err error) {
	pin, err := l.askPIN(ctx)
	if err != nil {
		return false, false, err
	}
	return l.checkPIN(ctx, pin)
}

// checkPIN checks a PIN. It returns over if there must be no further attempt.
func (l *mailboxSession) checkPIN(ctx context.Context, pin string) (open, over bool, err error) {
	t := voicemail.PINAttempt{Result: voicemail.PINWrong}
	if l.user.ID != "" {
		if t, err = l.s.cfg.Voicemail.CheckPIN(ctx, l.user.OrgID, l.user.ID, pin, l.v.Info().UserID == ""); err != nil {
			return false, false, err
		}
	}
	switch t.Result {
	case voicemail.PINAccepted:
		l.traceEntered("PIN")
		return true, true, nil
	case voicemail.PINLocked:
		l.v.AddEntry("mailbox.locked", map[string]any{"user_id": l.user.ID, "until": t.Until.UTC().Format(time.RFC3339)})
		if t.JustLocked {
			for _, o := range l.s.cfg.Observers {
				o.MailboxLocked(context.WithoutCancel(ctx), l.user.OrgID, l.user.ID, l.v.Info())
			}
		}
		return false, true, l.say(ctx, "This mailbox is locked, because a wrong PIN was entered too often. Please try again later.")
	}
	l.v.AddEntry("mailbox.wrong_pin", map[string]any{"user_id": l.user.ID})
	return false, false, l.say(ctx, "That is not right.")
}

func (l *mailboxSession) traceEntered(by string) {
	l.v.AddEntry("mailbox.entered", map[string]any{"user_id": l.user.ID, "by": by})
}

func (l *mailboxSession) say(ctx context.Context, text string) error { return l.s.say(ctx, l.v, text) }

// askKey asks a question and waits for one key. It returns 0 after three unanswered questions in a row.
func (l *mailboxSession) askKey(ctx context.Context, text string) (rune, error) {
	for {
		if err := l.say(ctx, text); err != nil {
			return 0, err
		}
		key, pressed, err := l.v.ReadKey(ctx, keyTimeout)
		if err != nil || pressed {
			l.unanswered = 0
			return key, err
		}
		if l.unanswered++; l.unanswered >= maxUnanswered {
			return 0, nil
		}
	}
}

// askDigits asks for digits, up to the hash key. A hash key directly after the maximum number belongs to them too.
func (l *mailboxSession) askDigits(ctx context.Context, text string, most int) (string, error) {
	if err := l.say(ctx, text); err != nil {
		return "", err
	}
	digits := ""
	for len(digits) < most {
		key, pressed, err := l.v.ReadKey(ctx, keyTimeout)
		if err != nil {
			return "", err
		}
		if !pressed || key == '#' {
			return digits, nil
		}
		if key >= '0' && key <= '9' {
			digits += string(key)
		}
	}
	l.v.EndInput('#')
	return digits, nil
}

// mainMenu runs the menu of a mailbox. It returns "" if the user is done.
func (l *mailboxSession) mainMenu(ctx context.Context) (outcome string, err error) {
	for {
		all, err := l.s.cfg.Voicemail.MessagesForUser(ctx, l.user.OrgID, l.user.ID, maxPlayedMessages)
		if err != nil {
			return "", err
		}
		count, err := l.s.cfg.Voicemail.Count(ctx, l.s.cfg.DB.Read(ctx), l.user.OrgID, l.user.ID)
		if err != nil {
			return "", err
		}
		key, err := l.askKey(ctx, fmt.Sprintf("You have %s. To hear your messages, press 1. To record your greeting, press 5. To change your PIN, press 6. To end, press hash.",
			messageCounts(count)))
		switch {
		case err != nil || key == 0 || key == '#':
			return "", err
		case key == '1':
			if outcome, over, err := l.playMessages(ctx, all); outcome != "" || over || err != nil {
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
func (l *mailboxSession) changePIN(ctx context.Context) error {
	for range accessTries {
		pin, err := l.askDigits(ctx, "Please enter your new PIN, 4 to 10 digits, and press the hash key.", maxPINKeys)
		if err != nil || pin == "" {
			return err
		}
		again, err := l.askDigits(ctx, "Please enter it again.", maxPINKeys)
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
		if err := l.s.cfg.Users.SetPIN(ctx, l.user.OrgID, l.user.ID, pin); err != nil {
			return err
		}
		l.v.AddEntry("mailbox.pin_changed", map[string]any{"user_id": l.user.ID})
		return l.say(ctx, "Your PIN has been changed.")
	}
	return nil
}
