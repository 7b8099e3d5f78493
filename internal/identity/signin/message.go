package signin

import (
	"context"
	"io"
	"net/http"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// Pages of voicemail messages, to which mails about messages link.

// MessagePath is the address of the pages of messages, before the id of the message.
const MessagePath = "/account/voicemail/"

// Phones knows the telephones of people, and ends those of browsers.
type Phones interface {
	// InCall reports whether a user has a call that rings or is in progress.
	InCall(ctx context.Context, q db.Querier, org, user string) (bool, error)
	// SessionEnded ends the registrations of the browsers that got their tokens in a session.
	SessionEnded(ctx context.Context, tx db.Querier, org, session string) error
}

// Messages finds the voicemail messages that a signed-in person may hear: the principal of the context. Its errors are *op.Error if
// there is no such message.
type Messages interface {
	Message(ctx context.Context, id string) (Message, error)
	// Sound opens the sound of a message. The caller closes it.
	Sound(ctx context.Context, id string) (io.ReadSeekCloser, time.Time, error)
}

// Message is a voicemail message on its page.
type Message struct {
	ID, From, Mailbox string
	Received          time.Time // in the time zone of the person
	Seconds           int
	Text              string // "" if it has none
}

// showMessage shows a message with its sound.
func (s *Service) showMessage(w http.ResponseWriter, r *http.Request, v *visitor) error {
	m, err := s.cfg.Messages.Message(access.With(r.Context(), s.principal(r.Context(), v)), r.PathValue("id"))
	if err != nil {
		return err
	}
	w.Header().Set("Content-Security-Policy", securityPolicy+"; media-src 'self'")
	s.show(w, v, http.StatusOK, "voicemail", page{Title: "Voicemail from " + m.From, Message: m})
	return nil
}

// messageSound sends the sound of a message, whole or in the parts that a player asks for.
func (s *Service) messageSound(w http.ResponseWriter, r *http.Request, v *visitor) error {
	id := r.PathValue("id")
	f, at, err := s.cfg.Messages.Sound(access.With(r.Context(), s.principal(r.Context(), v)), id)
	if err != nil {
		return err
	}
	defer f.Close()
	w.Header().Set("Content-Type", "audio/wav")
	http.ServeContent(w, r, id+".wav", at, f)
	return nil
}
