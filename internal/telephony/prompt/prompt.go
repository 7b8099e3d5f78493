// Package prompt stores prompts and music on hold of organisations: uploaded files, and texts that are synthesised.
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

// An Audio is a recording that can be played to callers.
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

// A Use identifies a resource that plays an audio record.
type Use struct {
	Type string `json:"type" example:"user"`
	ID   string `json:"id"`
}

// Files stores audio files. *blob.Dir implements it.
type Files interface {
	Put(ctx context.Context, name string, from io.Reader) (size int64, err error)
	Open(ctx context.Context, name string) (io.ReadSeekCloser, int64, error)
	Delete(ctx context.Context, name string) error
	Path(name string) (string, error)
}

// Config holds the dependencies of a Service.
type Config struct {
	DB      *db.DB
	Files   Files
	Now     func() time.Time
	BaseURL string // base URL of the API
	// Measure returns the duration of a file, or an error if it cannot be played.
	Measure func(path string) (time.Duration, error)
	// Synthesize writes the speech of a text to a WAV file. Its errors, such as an *op.Error, are returned to the API
	// client.
	Speak func(ctx context.Context, org, text, voice, language string) (path string, err error)
	// CheckStorage returns an error if the organisation may store no more files; nil permits all.
	Room func(ctx context.Context, org string) error
	// ReserveStorage permits a file of this size in the transaction that adds it, or returns an error; nil permits
	// all.
	Admit func(ctx context.Context, tx db.Querier, org string, size int64) error
	// FindUses lists further uses of an audio record. The service itself finds voicemail greetings of users.
	Uses []func(ctx context.Context, q db.Querier, org, id string) ([]Use, error)
}

// Service manages the audio of organisations. It is safe for concurrent use.
type Service struct{ Config }

// New returns a Service.
func New(c Config) *Service { return &Service{c} }

// ErrNotFound is returned if an organisation has no such audio record.
var ErrNone = errors.New("no such audio")

// Path returns the path of an audio file on this machine. If the organisation has no such record, the error wraps
// ErrNotFound and an *op.Error about audio_id. The file is never changed.
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

// usesOf lists the resources that play an audio record.
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

// withURLAndUses sets the fields that are computed: URL, seconds and uses.
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
