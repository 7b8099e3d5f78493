package mailbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"soniq/internal/contactcenter/routing"
	"soniq/internal/platform/clock/localday"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/protocol/media/record"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/voicemail"
)

// maxPlayedMessages is the number of messages that are played in a row. The counts that the user hears have no limit.
const maxPlayedMessages = 1000

// maxGreeting is the longest greeting that can be recorded by telephone.
const maxGreeting = time.Minute

// messageCounts returns the numbers of new and old messages as spoken text.
func messageCounts(c voicemail.Count) string {
	return plural(c.New, "new message") + " and " + plural(c.Old, "old message")
}

func plural(n int, what string) string {
	switch n {
	case 0:
		return "no " + what + "s"
	case 1:
		return "one " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// playMessages plays messages one after the other. It returns over if the user is done.
func (l *mailboxSession) playMessages(ctx context.Context, all []voicemail.Voicemail) (outcome string, over bool, err error) {
	for i, m := range all {
		if err := l.playMessage(ctx, i, m); err != nil {
			return "", false, err
		}
		next := false
		for !next {
			key, err := l.askKey(ctx, l.messagePrompt())
			switch {
			case err != nil || key == 0 || key == '#':
				return "", true, err
			case key == '*':
				return "", false, nil
			}
			if outcome, next, err = l.handleKey(ctx, key, i, m); outcome != "" || err != nil {
				return outcome, false, err
			}
		}
	}
	return "", false, l.say(ctx, "There are no more messages.")
}

// messagePrompt names the keys for a message.
func (l *mailboxSession) messagePrompt() string {
	back := "To call back, press 4. "
	if l.remote {
		back = ""
	}
	return "To hear it again, press 1. For the next message, press 2. To delete it, press 3. " + back + "To go back, press star."
}

// handleKey executes the command of a key for a message. It returns next if the following message is to be played.
func (l *mailboxSession) handleKey(ctx context.Context, key rune, i int, m voicemail.Voicemail) (outcome string, next bool, err error) {
	switch key {
	case '1':
		return "", false, l.playMessage(ctx, i, m)
	case '2':
		return "", true, nil
	case '3':
		if err := l.s.cfg.Voicemail.Remove(ctx, m); err != nil {
			return "", false, err
		}
		l.v.AddEntry("mailbox.deleted", map[string]any{"voicemail_id": m.ID})
		return "", true, l.say(ctx, "The message has been deleted.")
	case '4':
		if !l.remote {
			outcome, err = l.callBack(ctx, m)
		}
	}
	return outcome, false, err
}

// playMessage plays a message after its time and its caller, and then marks it as read.
func (l *mailboxSession) playMessage(ctx context.Context, i int, m voicemail.Voicemail) error {
	if err := l.say(ctx, fmt.Sprintf("Message %d. %s, from %s.", i+1, l.spokenTime(ctx, m.ReceivedAt.Time), spokenCaller(m))); err != nil {
		return err
	}
	path, err := l.s.cfg.Voicemail.Path(m)
	if err != nil {
		return err
	}
	clip, err := clip.Load(path)
	if err != nil {
		l.s.cfg.Log.Error("message not played", "voicemail", m.ID, "err", err)
		return l.say(ctx, "This message cannot be played.")
	}
	if err := l.s.playInterruptible(ctx, l.v, clip); err != nil {
		return err
	}
	l.v.AddEntry("mailbox.heard", map[string]any{"voicemail_id": m.ID})
	return l.s.cfg.Voicemail.MarkRead(ctx, m)
}

// spokenTime returns a time as spoken text, in the user's time zone.
func (l *mailboxSession) spokenTime(ctx context.Context, at time.Time) string {
	name := ""
	if o, err := l.s.cfg.Orgs.Get(ctx, l.user.OrgID); err == nil {
		name = o.Timezone
	}
	if l.user.Timezone != nil {
		name = *l.user.Timezone
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		zone = time.UTC
	}
	at, now := at.In(zone), l.s.cfg.Clock.Now().In(zone)
	day := at.Format("Monday, January 2")
	switch at.Format(time.DateOnly) {
	case now.Format(time.DateOnly):
		day = "Today"
	case localday.Start(now, zone).Add(-time.Second).Format(time.DateOnly):
		day = "Yesterday"
	}
	return day + " at " + at.Format("3 04 PM")
}

// spokenCaller returns the caller of a message as spoken text: the contact's name, or else the number digit by digit.
func spokenCaller(m voicemail.Voicemail) string {
	switch {
	case m.Contact != nil && m.Contact.Name != "":
		return m.Contact.Name
	case m.FromNumber == call.Anonymous || m.FromNumber == "":
		return "an unknown caller"
	}
	return strings.TrimSpace(strings.Join(strings.Split(strings.TrimPrefix(m.FromNumber, "+"), ""), " "))
}

// callBack calls the caller of a message in the user's name. The user's dialling permissions apply.
func (l *mailboxSession) callBack(ctx context.Context, m voicemail.Voicemail) (outcome string, err error) {
	if m.FromNumber == call.Anonymous || m.FromNumber == "" {
		return "", l.say(ctx, "The caller's number is not known.")
	}
	a, err := l.v.Ring(ctx, m.FromNumber, pbx.RingOptions{DivertedBy: l.user.ID})
	if err != nil {
		return "", err
	}
	var r pbx.Result
	select {
	case r = <-a.Done():
	case <-ctx.Done():
		return "", pbx.ErrGone
	}
	if r.Status == "answered" {
		l.v.SetTransferredTo(ctx, m.FromNumber)
		return routing.Answered, nil
	}
	l.v.AddEntry("mailbox.not_called_back", map[string]any{"voicemail_id": m.ID, "result": r.Status})
	return "", l.say(ctx, "The caller could not be reached.")
}

// recordGreeting records the user's greeting, plays it back, and stores it if the user confirms.
func (l *mailboxSession) recordGreeting(ctx context.Context) error {
	for range accessTries {
		if err := l.say(ctx, "Please speak your greeting after the tone, and press the hash key."); err != nil {
			return err
		}
		path, err := l.s.cfg.Files.Path(l.user.OrgID + "/audio/" + db.NewID("greeting") + ".wav")
		if err != nil {
			return err
		}
		r, err := l.v.Record(ctx, pbx.MessageOptions{Path: path, Max: maxGreeting, Silence: messageSilence, EndKeys: "#", Beep: true})
		if err == nil && r.Speech >= minMessageSpeech {
			var kept bool
			if kept, err = l.confirmGreeting(ctx, path); kept {
				return errors.Join(err, os.Remove(path))
			}
		}
		_ = os.Remove(path)
		if errors.Is(err, pbx.ErrNotStored) {
			l.s.cfg.Log.Error("greeting not recorded", "user", l.user.ID, "err", err)
			_ = os.Remove(path + record.PartSuffix)
			return l.say(ctx, "The greeting could not be recorded.")
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// confirmGreeting plays a greeting back and stores it if the user confirms. It returns false if the user wants to
// record it again.
func (l *mailboxSession) confirmGreeting(ctx context.Context, path string) (done bool, err error) {
	clip, err := clip.Load(path)
	if err == nil {
		err = l.s.playInterruptible(ctx, l.v, clip)
	}
	if err != nil {
		return false, err
	}
	key, err := l.askKey(ctx, "To keep this greeting, press 1. To record it again, press 2. To go back, press star.")
	switch {
	case err != nil || key == '2':
		return false, err
	case key != '1':
		return true, nil
	}
	err = l.s.cfg.Greetings.SetGreeting(ctx, l.user.OrgID, l.user.ID, path)
	var e *op.Error
	if errors.As(err, &e) {
		return true, l.say(ctx, "The greeting was not kept. "+e.Detail+".")
	}
	if err != nil {
		return true, err
	}
	l.v.AddEntry("mailbox.greeting_changed", map[string]any{"user_id": l.user.ID})
	return true, l.say(ctx, "Your greeting has been changed.")
}
