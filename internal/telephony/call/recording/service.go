package recording

import (
	"context"
	"io"
	"slices"

	"soniq/internal/platform/access"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/platform/redact"
	"soniq/internal/telephony/call"
)

// Calls are the calls of the recordings. The service of package call implements it.
type Calls interface {
	// Find returns a call of an organisation, or db.ErrNone.
	Find(ctx context.Context, org, id string) (call.Call, error)
	// Lock locks the row of a call until the transaction ends.
	Lock(ctx context.Context, tx db.Querier, org, id string) error
	// SetRecordingReady stores in the call's row whether the audio of its recording can be fetched.
	SetRecordingReady(ctx context.Context, tx db.Querier, org, id, recordingID string, ready bool) error
	// RunAction carries out a command on a call in progress.
	RunAction(ctx context.Context, in call.ActionIn, c call.Command) (*op.Out[call.Call], error)
}

// Observer is notified of recordings in the transaction of the change.
type Observer interface {
	// RecordingsReady is called if the recordings of a call finish before the call ends. ok reports whether any of them is available.
	RecordingsReady(ctx context.Context, tx db.Querier, org, callID string, ok bool) error
	RecordingDeleted(ctx context.Context, tx db.Querier, org, callID, recordingID string) error
}

// Config has the dependencies of a Service.
type Config struct {
	DB     *db.DB
	Outbox *event.Outbox
	Jobs   *job.Queue
	Files  Files
	Calls  Calls
	Node   string
	Links  call.Links
	Clock  clock.Clock // nil: the machine's
	// Redactions has what organisations remove from recordings. nil: nothing.
	Redactions redact.Policies
}

// Files has the audio of recordings; *blob.Dir implements it.
type Files interface {
	call.Files
	// Put writes a file atomically, and replaces it.
	Put(ctx context.Context, name string, from io.Reader) (size int64, err error)
}

// Service stores recordings and serves their API. It is the RecordingStore of a call.Service. It is safe for concurrent use.
type Service struct {
	cfg       Config
	observers []Observer
}

// New returns a Service. Add observers before the first call of another method.
func New(c Config) *Service {
	c.Redactions = redact.OrOff(c.Redactions)
	c.Clock, c.Links.Clock = clock.OrSystem(c.Clock), clock.OrSystem(c.Links.Clock)
	return &Service{cfg: c}
}

// AudioURL returns the URL of the audio of a recording.
func (s *Service) AudioURL(id string, sandbox bool) string { return s.cfg.Links.Audio(id, sandbox) }

// Observe adds an observer. Observers are called in the order of Observe.
func (s *Service) Observe(o Observer) { s.observers = append(s.observers, o) }

// recordingsReady calls the observers. It is an OnRecorded.
func (s *Service) recordingsReady(ctx context.Context, tx db.Querier, org, callID string, ok bool) error {
	for _, o := range s.observers {
		if err := o.RecordingsReady(ctx, tx, org, callID, ok); err != nil {
			return err
		}
	}
	return nil
}

// Handle registers the job handler that removes files, in the queue of calls.
func (s *Service) Handle(r *job.Runner) { r.Handle(removeKind, s.removeAudio) }

// Operations lists the API operations on recordings.
func (s *Service) Operations() []op.Operation {
	all := []op.Operation{
		op.NewStream("calls.recording", "GET /calls/{id}/recording", access.CallsRead, "Get the recording of a call",
			s.RecordingOf).Fails("recording_not_found", "gone", "invalid_state").
			Answers(200, "application/json", Recording{}).Answers(302, "", nil),
		op.New("recordings.list", "GET /recordings", access.CallsRead, "List recordings", s.Recordings),
		op.New("recordings.get", "GET /recordings/{id}", access.CallsRead, "Get one recording", s.GetRecording),
		op.NewStream("recordings.audio", "GET /recordings/{id}/audio", access.CallsRead, "Get the audio of a recording",
			s.Audio).AllowSigned().Fails("recording_not_found", "gone", "invalid_state", "concurrency_limit").
			AnswersFile("audio/wav"),
	}
	return slices.Concat(all, s.recordingOperations(), s.retentionOperations())
}
