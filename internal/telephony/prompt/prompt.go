// Package prompt keeps prompts and music of organisations: uploaded files, and texts that are spoken.
package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// An Audio is a sound that can be played to callers.
type Audio struct {
	ID        string  `json:"id" example:"aud_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Name      string  `json:"name"`
	Kind      string  `json:"kind" enum:"greeting,prompt,music,voicemail_greeting"`
	Source    string  `json:"source" enum:"upload,speech"`
	Text      *string `json:"text" doc:"What is spoken; null for uploads"`
	Voice     *string `json:"voice"`
	Language  *string `json:"language"`
	Seconds   int     `json:"duration_seconds" doc:"At least 1"`
	Format    string  `json:"format" enum:"wav,mp3,ogg"`
	SizeBytes int64   `json:"size_bytes"`
	URL       string  `json:"url" doc:"Where the sound is fetched, with the same credential"`
	UsedBy    []Use   `json:"used_by" nullable:"false"`
	CreatedAt db.Time `json:"created_at"`

	OrgID    string        `json:"-"`
	Duration time.Duration `json:"-"`
	blob     string
}

// A Use is something that plays a sound.
type Use struct {
	Type string `json:"type" example:"user"`
	ID   string `json:"id"`
}

// Files is where sounds lie; *blob.Dir is one.
type Files interface {
	Put(ctx context.Context, name string, from io.Reader) (size int64, err error)
	Open(ctx context.Context, name string) (io.ReadSeekCloser, int64, error)
	Delete(ctx context.Context, name string) error
	Path(name string) (string, error)
}

// Config is what the room is made of.
type Config struct {
	DB      *db.DB
	Files   Files
	Now     func() time.Time
	BaseURL string // under which the API is reached
	// Measure plays a file in thought: how long it is, or why it cannot be played.
	Measure func(path string) (time.Duration, error)
	// Speak makes a WAV file of a text. Its errors are for whoever asked, such as an *op.Error.
	Speak func(ctx context.Context, org, text, voice, language string) (path string, err error)
	// Room refuses where the organisation may keep no more files; nil: all may.
	Room func(ctx context.Context, org string) error
	// Admit allows a file of a size in the transaction that keeps it, or refuses; nil allows all.
	Admit func(ctx context.Context, tx db.Querier, org string, size int64) error
	// Uses finds who else plays a sound; users' voicemail greetings are found by the room itself.
	Uses []func(ctx context.Context, q db.Querier, org, id string) ([]Use, error)
}

// Service is the room. It is safe for concurrent use.
type Service struct{ Config }

// New makes the room.
func New(c Config) *Service { return &Service{c} }

// ErrNone says that an organisation has no such sound.
var ErrNone = errors.New("no such audio")

// Path returns where the file of a sound lies on this machine. One the organisation does not have is ErrNone, and an
// *op.Error about audio_id. The file is never changed.
func (s *Service) Path(ctx context.Context, org, id string) (string, error) {
	a, err := get(ctx, s.DB.Read(ctx), org, id)
	if db.IsNone(err) {
		return "", errors.Join(op.Invalid(op.Field("audio_id", "not_found", "there is no such audio")), ErrNone)
	}
	if err != nil {
		return "", fmt.Errorf("find audio: %w", err)
	}
	return s.Files.Path(a.blob)
}

// uses lists who plays a sound.
func (s *Service) uses(ctx context.Context, q db.Querier, org, id string) ([]Use, error) {
	all, err := greetings(ctx, q, org, id)
	if err != nil {
		return nil, err
	}
	for _, find := range s.Uses {
		more, err := find(ctx, q, org, id)
		if err != nil {
			return nil, fmt.Errorf("find who plays audio: %w", err)
		}
		all = append(all, more...)
	}
	return all, nil
}

// dress adds what follows from the record.
func (s *Service) dress(ctx context.Context, q db.Querier, a *Audio) (err error) {
	prefix := op.Prefix
	if p, ok := access.From(ctx); ok && p.Environment == access.Sandbox {
		prefix = "/sandbox/v1"
	}
	a.URL = s.BaseURL + prefix + "/audio/" + a.ID + "/content"
	a.Seconds = max(int(a.Duration.Round(time.Second)/time.Second), 1)
	a.UsedBy, err = s.uses(ctx, q, a.OrgID, a.ID)
	return err
}
