package mailbox

import (
	"context"
	"errors"
	"strings"
	"time"

	"soniq/internal/contactcenter/routing"
	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/media/clip"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/voicemail"
)

// Defaults for recording a message.
const (
	maxMessage       = 3 * time.Minute
	messageSilence   = 7 * time.Second // of silence end the message
	minMessageSpeech = time.Second     // of speech; a message with less is dropped
	storeTimeout     = 8 * time.Second // for storing a message
)

// mailboxInfo holds the name and the greeting of a mailbox.
type mailboxInfo struct {
	id, name string
	greeting string // audio id; "": the default greeting is spoken
}

// TakeVoicemail records a message for a user, a queue or a flow.
func (s *Service) TakeVoicemail(ctx context.Context, v *pbx.ScriptedCall, id string, l pbx.Handoff) (outcome string) {
	b, err := s.findMailbox(ctx, v.Info().Org, id)
	if err != nil {
		if ctx.Err() == nil && !db.IsNone(err) {
			s.cfg.Log.Error("mailbox not found", "call", v.Info().CallID, "mailbox", id, "err", err)
		}
		v.AddEntry("voicemail.failed", map[string]any{"mailbox": id, "reason": "there is no such mailbox"})
		return routing.Failed
	}
	w := routing.RouteOptionsOf(ctx)
	if w.Greeting != "" {
		b.greeting = w.Greeting
	}
	hasPIN := s.hasPIN(ctx, v.Info().Org, id)
	if hasPIN {
		v.MaskKeys(true) // a PIN may follow the star
	}
	if v.SetStage(ctx, pbx.Place{Stage: "voicemail"}) != nil || s.playGreeting(ctx, v, b) != nil {
		return routing.CallerGone
	}
	if hasPIN {
		if outcome, opened := s.openFromGreeting(ctx, v, id); opened {
			return outcome
		}
		v.MaskKeys(false)
	}
	longest := w.MaxMessage
	if longest <= 0 {
		longest = maxMessage
	}
	return s.takeMessage(ctx, v, b, longest)
}

// findMailbox returns a mailbox by the id of its owner. Every user, every queue and every flow has one.
func (s *Service) findMailbox(ctx context.Context, org, id string) (mailboxInfo, error) {
	q, b := s.cfg.DB.Read(ctx), mailboxInfo{id: id}
	switch prefix, _, _ := strings.Cut(id, "_"); prefix {
	case "usr":
		u, err := s.cfg.Users.Get(ctx, q, org, id)
		if u.Voicemail.GreetingAudioID != nil {
			b.greeting = *u.Voicemail.GreetingAudioID
		}
		b.name = u.Name
		return b, err
	case "que":
		k, err := s.cfg.Queues.Get(ctx, q, org, id)
		b.name = k.Name
		return b, err
	case "flw":
		_, err := s.cfg.Flows.Get(ctx, q, org, id)
		return b, err // the name of a flow means nothing to callers
	}
	return b, db.ErrNone
}

// playGreeting plays the greeting of the mailbox. A key ends it.
func (s *Service) playGreeting(ctx context.Context, v *pbx.ScriptedCall, b mailboxInfo) error {
	if b.greeting != "" {
		clip, err := v.Clip(ctx, b.greeting)
		if err == nil {
			return s.playInterruptible(ctx, v, clip)
		}
		if ctx.Err() != nil {
			return pbx.ErrGone
		}
		v.AddEntry("voicemail.greeting_missing", map[string]any{"mailbox": b.id, "audio_id": b.greeting})
	}
	who := b.name
	if who == "" {
		who = "Nobody"
	}
	return s.say(ctx, v, who+" is not available. Please leave a message after the tone.")
}

// say speaks a text to a caller. A key ends it. If the text cannot be spoken, the caller hears a tone and the reason
// is written to the timeline.
func (s *Service) say(ctx context.Context, v *pbx.ScriptedCall, text string) error {
	if err := v.Answer(ctx); err != nil {
		return err
	}
	speaking, cancel := context.WithTimeout(ctx, routing.SpeechTimeout)
	defer cancel()
	clip, err := v.Say(speaking, text, "", "")
	if ctx.Err() != nil {
		return pbx.ErrGone
	}
	if err != nil {
		v.AddEntry("prompt.failed", map[string]any{"text": text, "reason": err.Error()})
		clip = routing.Beep()
	}
	return s.playInterruptible(ctx, v, clip)
}

func (s *Service) playInterruptible(ctx context.Context, v *pbx.ScriptedCall, clip *clip.Clip) error {
	return v.Play(ctx, clip, pbx.PlayOptions{Keys: true})
}

// takeMessage records and stores a message.
func (s *Service) takeMessage(ctx context.Context, v *pbx.ScriptedCall, b mailboxInfo, longest time.Duration) (outcome string) {
	d := voicemail.Draft{Org: v.Info().Org, ID: db.NewID("vm"), CallID: v.Info().CallID, Mailbox: b.id, Begun: s.cfg.Clock.Now()}
	path, err := s.cfg.Files.Path(d.Blob())
	if err == nil {
		err = s.cfg.Voicemail.BeginDraft(ctx, d)
	}
	if err != nil {
		return s.messageFailed(ctx, v, b, err)
	}
	v.DiscardKeys()
	r, gone := v.Record(ctx, pbx.MessageOptions{Path: path, Max: longest, Silence: messageSilence, EndKeys: "#", Beep: true})
	keeping, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout)
	defer cancel()
	if errors.Is(gone, pbx.ErrNotStored) {
		if r.Speech < minMessageSpeech {
			s.discardDraft(keeping, d)
		} else {
			s.cfg.Voicemail.FinishLater(d)
		}
		return s.messageFailed(ctx, v, b, gone)
	}
	if r.Speech < minMessageSpeech {
		s.discardDraft(keeping, d)
		v.AddEntry("voicemail.empty", map[string]any{"mailbox": b.id, "seconds": int(r.Duration.Seconds()), "ended_by": r.EndedBy})
		return unlessGone(gone, routing.NoResult)
	}
	if err := s.cfg.Voicemail.SaveDraft(keeping, d, voicemail.AudioFile{Duration: r.Duration, Size: r.Size, SHA256: r.SHA256}); err != nil {
		s.cfg.Voicemail.FinishLater(d)
		return s.messageFailed(ctx, v, b, err)
	}
	v.LeftMessage()
	v.AddEntry("voicemail.left", map[string]any{"mailbox": b.id, "voicemail_id": d.ID, "seconds": int(r.Duration.Seconds()),
		"ended_by": r.EndedBy, "truncated": r.Truncated})
	goodbye := "Thank you. Goodbye."
	if r.Truncated {
		goodbye = "Sorry, only the beginning of your message could be recorded. Goodbye."
	}
	if gone != nil || s.say(ctx, v, goodbye) != nil {
		return routing.CallerGone
	}
	return routing.LeftMessage
}

// discardDraft deletes a message without speech.
func (s *Service) discardDraft(ctx context.Context, d voicemail.Draft) {
	if err := s.cfg.Voicemail.DiscardDraft(ctx, d); err != nil {
		s.cfg.Log.Error("empty message not dropped", "call", d.CallID, "err", err)
	}
}

// messageFailed logs that a message could not be stored. It plays a sentence that says so to the caller.
func (s *Service) messageFailed(ctx context.Context, v *pbx.ScriptedCall, b mailboxInfo, err error) (outcome string) {
	if ctx.Err() == nil {
		s.cfg.Log.Error("message not taken", "call", v.Info().CallID, "mailbox", b.id, "err", err)
		v.AddEntry("voicemail.failed", map[string]any{"mailbox": b.id, "reason": "internal error"})
	}
	return unlessGone(s.say(ctx, v, "Sorry, your message could not be recorded."), routing.Failed)
}

// unlessGone returns outcome, or CallerGone if gone is not nil.
func unlessGone(gone error, outcome string) string {
	if gone != nil {
		return routing.CallerGone
	}
	return outcome
}

// mailboxName returns the extension of a user, or the name if there is none.
func mailboxName(u user.User) string {
	if u.Extension != nil {
		return *u.Extension
	}
	return u.Name
}
