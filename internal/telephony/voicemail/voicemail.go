// Package voicemail stores the messages that callers leave for users, queues and flows: audio, transcript, status,
// PIN access and message counts.
package voicemail

import (
	"context"
	"fmt"
	"sync"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/observe"
	"soniq/internal/platform/op"
	"soniq/internal/platform/wiring"
	"soniq/internal/protocol/media/wav"
)

// Voicemail is a message that a caller left.
type Voicemail struct {
	ID              string         `json:"id" example:"vm_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	CallID          string         `json:"call_id"`
	Mailbox         Mailbox        `json:"mailbox"`
	FromNumber      string         `json:"from_number"`
	Contact         *event.Contact `json:"contact"`
	ReceivedAt      db.Time        `json:"received_at"`
	DurationSeconds int            `json:"duration_seconds" doc:"At least 1"`
	Status          string         `json:"status" enum:"new,read,archived,deleted"`
	AudioURL        *string        `json:"audio_url" doc:"Where the sound is fetched, with the same credential; null once the message is deleted"`
	Transcript      *Transcript    `json:"transcript"`
	AISummary       *string        `json:"ai_summary"`
	Urgency         *string        `json:"urgency" enum:"low,normal,high"`
	AssigneeID      *string        `json:"assignee_id"`
	ReadAt          db.Time        `json:"read_at" nullable:"true"`

	OrgID     string  `json:"-"`
	UpdatedAt db.Time `json:"-"`
	blob      string
}

// Mailbox is the owner of a message.
type Mailbox struct {
	Type string `json:"type" enum:"user,queue,flow"`
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Transcript is the transcript of a message.
type Transcript struct {
	ID     *string `json:"id"`
	Status string  `json:"status" enum:"queued,processing,completed,failed,skipped"`
	Text   *string `json:"text"`
}

// The states of a message (api-surface 7.9).
const (
	New      = "new"
	Read     = "read"
	Archived = "archived"
	Deleted  = "deleted"
)

// Files is the store of message audio; *blob.Dir implements it.
type Files interface {
	wav.Store
	Path(name string) (string, error)
	Delete(ctx context.Context, name string) error
}

// Config holds the dependencies of a Service.
type Config struct {
	DB       *db.DB
	Files    Files
	Outbox   *event.Outbox
	Bus      *bus.Bus
	Digester Digester
	Clock    clock.Clock // nil: the system clock
	BaseURL  string      // of the API
	Node     string
	// TranscriptStatus is the transcript status of new messages: queued, or "" if they are not transcribed.
	TranscriptStatus string
}

// Digester returns keyed digests of PINs.
type Digester interface {
	Digest(secret string) string
}

// Service stores messages and serves their API. It is safe for concurrent use.
type Service struct {
	cfg       Config
	observers observers

	mu         sync.Mutex // guards unfinished
	unfinished []Draft    // of FinishLater
}

// NewService returns a service. It panics if a dependency is missing.
func NewService(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c)
	return &Service{cfg: c}
}

// BlobName returns the name of a message's audio in the blob store, which also has the recordings of calls. Messages
// are recorded directly to it.
func BlobName(org, id string, at time.Time) string {
	return fmt.Sprintf("%s/%s/%s.wav", org, at.UTC().Format("2006/01"), id)
}

// Message describes a message to receive. The file named Blob must be complete.
type Message struct {
	Org              string
	ID               string // db.NewID("vm"), also in Blob
	CallID           string
	Mailbox          string // id of a user, a queue or a flow
	From             string
	Contact          *event.Contact
	ReceivedAt       time.Time
	Blob             string
	Duration         time.Duration
	Size             int64
	SHA256           string
	Sandbox          bool   // of the organisation
	TranscriptStatus string // queued if it is to be transcribed, else ""
}

// mailboxTypes maps the prefix of an id to the type of mailbox.
var mailboxTypes = map[string]string{"usr": "user", "que": "queue", "flw": "flow"}

// Receive inserts a message and publishes voicemail.received in the caller's transaction. It is idempotent: a message
// that is stored already is left unchanged, so that it can be repeated after a crash.
func (s *Service) Receive(ctx context.Context, tx db.Querier, m Message) (Voicemail, error) {
	v := Voicemail{ID: m.ID, OrgID: m.Org, CallID: m.CallID, FromNumber: m.From, Contact: m.Contact, ReceivedAt: db.At(m.ReceivedAt),
		Status: New, UpdatedAt: db.At(s.cfg.Clock.Now()), blob: m.Blob, Mailbox: Mailbox{ID: m.Mailbox}}
	prefix := ""
	if len(m.Mailbox) > 3 {
		prefix = m.Mailbox[:3]
	}
	if v.Mailbox.Type = mailboxTypes[prefix]; v.Mailbox.Type == "" {
		return v, fmt.Errorf("receive voicemail: %q is not a mailbox", m.Mailbox)
	}
	first, err := insertMessage(ctx, tx, v, m)
	if err != nil {
		return v, fmt.Errorf("insert voicemail: %w", err)
	}
	if v, err = getMessage(ctx, tx, m.Org, m.ID); err != nil || !first {
		return v, err
	}
	s.setAudioURL(ctx, &v, m.Sandbox)
	s.publishChanged(tx, v, nil)
	err = observe.Each(s.observers.receive, func(o ReceiveObserver) error { return o.VoicemailReceived(ctx, tx, m.Org, m.ID) })
	if err != nil {
		return v, err
	}
	return v, s.cfg.Outbox.Publish(ctx, tx, m.Org, event.VoicemailReceived{VoicemailID: v.ID, CallID: v.CallID,
		Mailbox: event.Mailbox{Type: v.Mailbox.Type, ID: v.Mailbox.ID, Name: v.Mailbox.Name}, FromNumber: v.FromNumber,
		DurationSeconds: v.DurationSeconds, ReceivedAt: v.ReceivedAt, AudioURL: *v.AudioURL, Contact: v.Contact})
}

// Transcription holds the transcript of a message and its analysis.
type Transcription struct {
	Transcript string // id; "" if the text is stored with the message only
	Status     string // completed, failed or skipped
	Text       string
	Summary    string
	Urgency    string // low, normal, high, or "" if unknown
}

// SetTranscript stores the transcript of a message. It does nothing for a deleted message.
func (s *Service) SetTranscript(ctx context.Context, tx db.Querier, org, id string, w Transcription) error {
	const q = `UPDATE voicemails SET transcript_id = $3, transcript_status = $4, text = $5, ai_summary = $6, urgency = $7, updated_at = $8
		WHERE org_id = $1 AND id = $2 AND status <> 'deleted'`
	r, err := tx.Exec(ctx, q, org, id, db.Null(w.Transcript), w.Status, db.Null(w.Text), db.Null(w.Summary), db.Null(w.Urgency),
		db.At(s.cfg.Clock.Now()))
	if err != nil {
		return err
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return err
	}
	v, err := getMessage(ctx, tx, org, id)
	if err != nil {
		return err
	}
	return s.publishUpdate(ctx, tx, v, nil)
}

// setAudioURL sets the URL of the audio; nil for a deleted message.
func (s *Service) setAudioURL(ctx context.Context, v *Voicemail, sandbox bool) {
	v.AudioURL = nil
	if v.Status == Deleted {
		return
	}
	prefix := op.Prefix
	if p, ok := access.From(ctx); sandbox || ok && p.Environment == access.Sandbox {
		prefix = "/sandbox/v1"
	}
	url := s.cfg.BaseURL + prefix + "/voicemail/" + v.ID + "/audio"
	v.AudioURL = &url
}
