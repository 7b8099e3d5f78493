package routing

import (
	"context"
	"strings"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/protocol/media"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/voicemail"
)

// How messages are taken where nothing else is said.
const (
	longestMessage  = 3 * time.Minute
	messageSilence  = 7 * time.Second // ends it
	shortestMessage = time.Second     // of speech: what says less is none
	keepLimit       = 8 * time.Second // to write a message down
)

// A box is a mailbox as callers meet it.
type box struct {
	id, name string
	greeting string // audio; "": spoken
}

// mailbox takes a message for a user, a queue or a flow.
func (s *Service) mailbox(ctx context.Context, v *pbx.Visit, id string, l pbx.Lead) (outcome string) {
	b, err := s.box(ctx, v.Info().Org, id)
	if err != nil {
		if ctx.Err() == nil && !db.IsNone(err) {
			s.Log.Error("mailbox not found", "call", v.Info().CallID, "mailbox", id, "err", err)
		}
		v.Step("voicemail.failed", map[string]any{"mailbox": id, "reason": "there is no such mailbox"})
		return Failed
	}
	w := wish(ctx)
	if w.Greeting != "" {
		b.greeting = w.Greeting
	}
	if v.Enter(ctx, pbx.Place{Stage: "voicemail"}) != nil || s.greetCaller(ctx, v, b) != nil {
		return Gone
	}
	longest := w.Longest
	if longest <= 0 {
		longest = longestMessage
	}
	return s.takeMessage(ctx, v, b, longest)
}

// box finds a mailbox: everybody, every queue and every flow has one.
func (s *Service) box(ctx context.Context, org, id string) (box, error) {
	q, b := s.DB.Read(ctx), box{id: id}
	switch prefix, _, _ := strings.Cut(id, "_"); prefix {
	case "usr":
		u, err := s.Users.Get(ctx, q, org, id)
		if u.Voicemail.GreetingAudioID != nil {
			b.greeting = *u.Voicemail.GreetingAudioID
		}
		b.name = u.Name
		return b, err
	case "que":
		k, err := s.Queues.Get(ctx, q, org, id)
		b.name = k.Name
		return b, err
	case "flw":
		_, err := s.Flows.Get(ctx, q, org, id)
		return b, err // its name says nothing to callers
	}
	return b, db.ErrNone
}

// greetCaller lets the caller hear the greeting; a key ends it.
func (s *Service) greetCaller(ctx context.Context, v *pbx.Visit, b box) error {
	if b.greeting != "" {
		clip, err := v.Clip(ctx, b.greeting)
		if err == nil {
			return s.utter(ctx, v, clip)
		}
		if ctx.Err() != nil {
			return pbx.ErrGone
		}
		v.Step("voicemail.greeting_missing", map[string]any{"mailbox": b.id, "audio_id": b.greeting})
	}
	who := b.name
	if who == "" {
		who = "Nobody"
	}
	return s.say(ctx, v, who+" is not available. Please leave a message after the tone.")
}

// say speaks a text to a caller, whom a key saves from the rest. Where nothing can be spoken they hear a tone, and the timeline says why.
func (s *Service) say(ctx context.Context, v *pbx.Visit, text string) error {
	if err := v.Answer(ctx); err != nil {
		return err
	}
	speaking, cancel := context.WithTimeout(ctx, longestVoice)
	defer cancel()
	clip, err := v.Say(speaking, text, "", "")
	if ctx.Err() != nil {
		return pbx.ErrGone
	}
	if err != nil {
		v.Step("not_spoken", map[string]any{"text": text, "reason": err.Error()})
		clip = beep()
	}
	return s.utter(ctx, v, clip)
}

func (s *Service) utter(ctx context.Context, v *pbx.Visit, clip *media.Clip) error {
	return v.Play(ctx, clip, pbx.Playing{Keys: true})
}

// takeMessage records what the caller says, and keeps it.
func (s *Service) takeMessage(ctx context.Context, v *pbx.Visit, b box, longest time.Duration) (outcome string) {
	d := voicemail.Draft{Org: v.Info().Org, ID: db.NewID("vm"), CallID: v.Info().CallID, Mailbox: b.id, Begun: s.Now()}
	path, err := s.Files.Path(d.Blob())
	if err == nil {
		err = s.Voicemail.Begin(ctx, d)
	}
	if err != nil {
		return s.noMessage(ctx, v, b, err)
	}
	v.Forget()
	r, gone := v.Record(ctx, pbx.Recording{Path: path, Max: longest, Silence: messageSilence, EndKeys: "#", Beep: true})
	keeping, cancel := context.WithTimeout(context.WithoutCancel(ctx), keepLimit)
	defer cancel()
	if r.Speech < shortestMessage {
		if err := s.Voicemail.Drop(keeping, d); err != nil {
			s.Log.Error("empty message not dropped", "call", d.CallID, "err", err)
		}
		v.Step("voicemail.empty", map[string]any{"mailbox": b.id, "seconds": int(r.Duration.Seconds()), "ended_by": r.EndedBy})
		return unless(gone, Empty)
	}
	if err := s.Voicemail.Keep(keeping, d, voicemail.Sound{Duration: r.Duration, Size: r.Size, SHA256: r.SHA256}); err != nil {
		return s.noMessage(ctx, v, b, err)
	}
	v.LeftMessage()
	v.Step("voicemail.left", map[string]any{"mailbox": b.id, "voicemail_id": d.ID, "seconds": int(r.Duration.Seconds()), "ended_by": r.EndedBy})
	if gone != nil || s.say(ctx, v, "Thank you. Goodbye.") != nil {
		return Gone
	}
	return Left
}

// noMessage says that a message could not be taken. What was recorded of it becomes a message at the next start.
func (s *Service) noMessage(ctx context.Context, v *pbx.Visit, b box, err error) (outcome string) {
	if ctx.Err() == nil {
		s.Log.Error("message not taken", "call", v.Info().CallID, "mailbox", b.id, "err", err)
		v.Step("voicemail.failed", map[string]any{"mailbox": b.id, "reason": "internal error"})
	}
	return unless(ctx.Err(), Failed)
}

// unless is an outcome, unless the caller is gone.
func unless(gone error, outcome string) string {
	if gone != nil {
		return Gone
	}
	return outcome
}

// mailboxName is how a mailbox is told to its user.
func mailboxName(u user.User) string {
	if u.Extension != nil {
		return *u.Extension
	}
	return u.Name
}
