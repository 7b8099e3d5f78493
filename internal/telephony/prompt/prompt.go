// Package prompt stores the audio files of organisations: uploaded prompts, music, and synthesised texts.
package prompt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/wiring"
)

// Audio is an audio file that can be played to callers.
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

// Use names an object that plays an audio file, such as a flow or a queue.
type Use struct {
	Type string `json:"type" example:"user"`
	ID   string `json:"id"`
}

// Files stores the content of audio files. *blob.Dir implements it.
type Files interface {
	Put(ctx context.Context, name string, from io.Reader) (size int64, err error)
	Open(ctx context.Context, name string) (io.ReadSeekCloser, int64, error)
	Delete(ctx context.Context, name string) error
	Path(name string) (string, error)
}

// Config has the dependencies of a Service.
type Config struct {
	DB      *db.DB
	Files   Files
	Clock   clock.Clock // nil: the system clock
	BaseURL string      // public URL of the API
	Engine  Engine
	Storage Storage
	Uses    UseFinder
}

// Engine reads and synthesises audio.
type Engine interface {
	// Measure decodes a file and returns its duration. The error says why it cannot be played, or is ErrTooLong.
	Measure(path string) (time.Duration, error)
	// Synthesize synthesises a text into a WAV file and returns its path. Its errors are returned to the client.
	Synthesize(ctx context.Context, org, text, voice, language string) (path string, err error)
}

// Storage is the storage quota of organisations.
type Storage interface {
	// CheckStorage returns an error if the quota is used up.
	CheckStorage(ctx context.Context, org string) error
	// ReserveStorage returns an error if a file of a size exceeds the quota. It runs in the transaction that stores the file.
	ReserveStorage(ctx context.Context, tx db.Querier, org string, size int64) error
}

// UseFinder returns objects of other packages that play an audio file. Voicemail greetings of users are found by this package
// itself.
type UseFinder interface {
	FindUses(ctx context.Context, q db.Querier, org, id string) ([]Use, error)
}

// Service stores audio files. It is safe for concurrent use.
type Service struct{ cfg Config }

// New returns a Service. It panics if a dependency is missing.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c)
	return &Service{c}
}

// ErrTooLong is returned for audio that plays longer than limit.AudioLength.
var ErrTooLong = errors.New("plays too long")

// ErrNotFound is returned if the organisation has no such audio file.
var ErrNotFound = errors.New("no such audio")

// Path returns the path of an audio file. If the organisation has no such file, the error wraps ErrNone and an
// *op.Error about audio_id. The content of a file never changes.
func (s *Service) Path(ctx context.Context, org, id string) (string, error) {
	a, err := get(ctx, s.cfg.DB.Read(ctx), org, id)
	if db.IsNone(err) {
		return "", errors.Join(op.Invalid(op.Field("audio_id", "not_found", "there is no such audio")), ErrNotFound)
	}
	if err != nil {
		return "", fmt.Errorf("find audio: %w", err)
	}
	return s.cfg.Files.Path(a.blob)
}

// usesOf returns the objects that play an audio file.
func (s *Service) usesOf(ctx context.Context, q db.Querier, org, id string) ([]Use, error) {
	all, err := greetingUses(ctx, q, org, id)
	if err != nil {
		return nil, err
	}
	more, err := s.cfg.Uses.FindUses(ctx, q, org, id)
	if err != nil {
		return nil, fmt.Errorf("find who plays audio: %w", err)
	}
	return append(all, more...), nil
}

// withURLAndUses sets the fields that are derived from the record: its URL and its uses.
func (s *Service) withURLAndUses(ctx context.Context, q db.Querier, a *Audio) (err error) {
	prefix := op.Prefix
	if p, ok := access.From(ctx); ok && p.Environment == access.Sandbox {
		prefix = "/sandbox/v1"
	}
	a.URL = s.cfg.BaseURL + prefix + "/audio/" + a.ID + "/content"
	a.Seconds = max(int(a.Duration.Round(time.Second)/time.Second), 1)
	a.UsedBy, err = s.usesOf(ctx, q, a.OrgID, a.ID)
	return err
}
