package call

import (
	"context"
	"fmt"
	"io"
	"time"

	"soniq/internal/platform/db"
)

// Files is the store of recording and export files.
type Files interface {
	Path(name string) (string, error)
	Open(ctx context.Context, name string) (io.ReadSeekCloser, int64, error)
	Delete(ctx context.Context, name string) error
}

// Pause is a part of the call that was not recorded.
type Pause struct {
	FromMS int    `json:"from_ms"`
	ToMS   int    `json:"to_ms" doc:"0 while it lasts"`
	Reason string `json:"reason"`
}

// NewRecording describes a recording that begins.
type NewRecording struct {
	ID        string
	Name      string // in the blob store
	Consent   string
	Trigger   string
	Retention time.Duration // 0: for ever

	Channels   int // 0: 2
	SampleRate int // Hz; 0: 8000
}

// BlobName returns the name of a call's recording in the blob store.
func BlobName(org, callID string, at time.Time) string {
	return fmt.Sprintf("%s/%s/%s.wav", org, at.UTC().Format("2006/01"), callID)
}

// Audio describes the file of a finished recording. Err is set if the recording failed.
type Audio struct {
	Duration   time.Duration
	Size       int64
	SHA256     string
	SampleRate int
	Channels   int
	Missing    time.Duration // audio of the call that could not be written
	Cut        string        // reason why it is missing
	Err        error
}

// OnRecorded is called once per recorded call: in the transaction in which its last recording becomes available or
// fails, or in which the call ends if its recordings have finished before. ok reports whether any recording is
// available.
type OnRecorded func(ctx context.Context, tx db.Querier, org, callID string, ok bool) error

// RecoverRecording turns the unfinished file that a crash left into a recording at path (the final name). It returns
// an error if there is no usable file.
type RecoverRecording func(path string) (Audio, error)
