package transcript

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"soniq/internal/intelligence/memory"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/redact"
	"soniq/internal/platform/wiring"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/call/recording"
)

// Recordings are the recordings of calls. Package recording implements it.
type Recordings interface {
	// Parts lists the recordings of a call in the order of their start.
	Parts(ctx context.Context, org, callID string) ([]recording.Part, error)
	// Open opens the audio of an available recording.
	Open(ctx context.Context, p recording.Part) (io.ReadSeekCloser, int64, error)
	// Path returns the path of a recording's file.
	Path(p recording.Part) (string, error)
	// IsLocal reports whether this server has the file of a recording.
	IsLocal(p recording.Part) bool
	// Redact replaces parts of a recording by silence, and makes it available if it waited for that.
	Redact(ctx context.Context, org, callID string, p recording.Part, parts []recording.Redaction) error
	// Withhold marks a recording that waits for Redact as failed.
	Withhold(ctx context.Context, org, callID string, p recording.Part, reason string) error
}

// Config has the dependencies of the service.
type Config struct {
	DB         *db.DB
	Outbox     *event.Outbox
	Jobs       *job.Queue
	Calls      *call.Service
	Recordings Recordings
	Memory     *memory.Service
	Pool       *RecognizerPool // nil: transcription is off
	Recognizer Recognizer      // the recogniser of the pool; nil: transcription is off
	Summarizer Summarizer      // nil: notes are off
	Fallback   Summarizer      // used if Summarizer fails for good; nil: none
	Voicemails Voicemails      // nil: voicemail is not transcribed
	Log        *slog.Logger
	Clock      clock.Clock // nil: the system clock

	Languages    Languages
	Utterances   Utterances
	Zones        Zones
	Vocabularies Vocabularies
	Deliveries   Deliveries
	Redactions   redact.Policies
}

// Deliveries are the deliveries of events to webhooks. Package webhook implements it.
type Deliveries interface {
	// RemoveContent removes a kind of content from the deliveries of a call's events.
	RemoveContent(ctx context.Context, tx db.Querier, org, callID string, c event.Content) error
}

// Utterances has utterances whose text is known without recognition: those of conversations with voice agents.
type Utterances interface {
	// KnownUtterances returns those of a call. They are complete once AwaitUtterances returns.
	KnownUtterances(ctx context.Context, q db.Querier, org, callID string) ([]KnownUtterance, error)
	AwaitUtterances(ctx context.Context, org, callID string) error
	DeleteUtterances(ctx context.Context, tx db.Querier, org, callID string) error
}

// Languages returns the languages of calls.
type Languages interface {
	// CallLanguage returns the language that is spoken in a call (BCP 47).
	CallLanguage(ctx context.Context, q db.Querier, org, callID string) (string, error)
}

// Zones returns the time zone of an organisation, for words such as "tomorrow".
type Zones interface {
	Zone(ctx context.Context, org string) (*time.Location, error)
}

// Vocabularies returns the terms of an organisation that may be said in one of its calls, the most relevant first.
type Vocabularies interface {
	Vocabulary(ctx context.Context, org, callID string) ([]Term, error)
}

// Service transcribes calls while they run. After their end it stores the transcript, writes the note and indexes
// both in the call memory. It is safe for concurrent use.
type Service struct {
	cfg Config

	mu      sync.Mutex // guards the fields below
	live    map[string]liveRecordings
	streams map[string]*segmentStream
}

// New returns a service. It panics if a dependency is missing.
func New(c Config) *Service {
	c.Clock = clock.OrSystem(c.Clock)
	wiring.Check(c, "Recognizer", "Summarizer", "Fallback", "Voicemails")
	return &Service{cfg: c}
}

// liveRetention is how long the segments of an ended call wait in memory for their job.
const liveRetention = 30 * time.Minute

// language returns the language of a call, or DefaultLanguage if it cannot be found.
func (s *Service) language(ctx context.Context, q db.Querier, org, callID string) string {
	l, err := s.cfg.Languages.CallLanguage(ctx, q, org, callID)
	if err != nil {
		s.cfg.Log.Warn("language of a call not found", "org", org, "call", callID, "err", err)
	}
	return cmp.Or(l, DefaultLanguage)
}

// languageOnce returns a function that looks up the language of a call at its first use. A live call may not be stored
// before that.
func (s *Service) languageOnce(org, callID string) func() string {
	return sync.OnceValue(func() string {
		ctx := context.Background()
		return s.language(ctx, s.cfg.DB.Read(ctx), org, callID)
	})
}

// zone returns the time zone of an organisation, or UTC if it cannot be found.
func (s *Service) zone(ctx context.Context, org string) *time.Location {
	zone, err := s.cfg.Zones.Zone(ctx, org)
	if err != nil {
		return time.UTC
	}
	return zone
}

// StartLive starts the live transcription of a recording that is being written at path. The caller writes the audio
// to the result. If transcription is off it is nil, which ignores all audio. Audio that is excluded from the
// recording must not be written: it would appear in transcript, note and call memory.
func (s *Service) StartLive(org, callID, path string, f Format) *LiveTranscription {
	if s.cfg.Pool == nil {
		return nil
	}
	l, err := NewLiveTranscription(s.cfg.Pool, f, s.languageOnce(org, callID), liveFileReader(path))
	if err != nil {
		s.cfg.Log.Error("call not listened to", "org", org, "call", callID, "err", err)
		return nil
	}
	l.vocabulary = s.vocabulary(org, callID)
	x := &liveRecording{LiveTranscription: l, id: db.NewID("trn"), path: path, partial: hasBeginning(path), began: s.cfg.Clock.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live = map[string]liveRecordings{}
	}
	for id, old := range s.live { // calls without a job
		if last := old[len(old)-1].ended; !last.IsZero() && s.cfg.Clock.Now().Sub(last) > liveRetention && id != org+" "+callID {
			delete(s.live, id)
			delete(s.streams, id)
		}
	}
	h := append(s.live[org+" "+callID], x)
	s.live[org+" "+callID] = h
	first := h[0].began
	l.onSegment = s.streamSegments(org, callID, x.began.Sub(first))
	return l
}

// EndLive marks the end of the audio of a call's recordings: their last segments are recognised first.
func (s *Service) EndLive(org, callID string) {
	s.mu.Lock()
	h := s.live[org+" "+callID]
	for _, l := range h {
		if l.ended.IsZero() {
			l.ended = s.cfg.Clock.Now()
		}
	}
	s.mu.Unlock()
	for _, l := range h {
		l.LiveTranscription.End()
	}
}

// liveOf returns the live recordings of a call; nil if there are none.
func (s *Service) liveOf(org, callID string) liveRecordings {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[org+" "+callID]
}

func (s *Service) dropLive(org, callID string) {
	s.mu.Lock()
	stream := s.streams[org+" "+callID]
	delete(s.live, org+" "+callID)
	delete(s.streams, org+" "+callID)
	s.mu.Unlock()
	if stream != nil {
		s.publishSegments(org, stream.flush())
	}
}

// Queue is the job queue of this package.
const Queue = "understand"

// Kinds and attempts of its jobs.
const (
	callJobKind = "call.process"
	maxAttempts = 3
)

// callRef is the argument of jobs about a call.
type callRef struct {
	CallID string `json:"call_id"`
}

// RegisterJobs registers the job handlers of this package.
func (s *Service) RegisterJobs(r *job.Runner) {
	r.Handle(callJobKind, s.process)
	r.Handle(voicemailJobKind, s.processMessage)
}

// OnRecordingsReady stores the segments recognised so far and queues the job for the rest. Call it in the transaction
// in which the last recording of an ended call becomes available or fails.
func (s *Service) OnRecordingsReady(ctx context.Context, tx db.Querier, org, callID string, ok bool) error {
	t := Transcript{ID: db.NewID("trn"), CallID: callID, Status: Queued, Language: s.language(ctx, tx, org, callID),
		CreatedAt: db.At(s.cfg.Clock.Now())}
	if h := s.liveOf(org, callID); h != nil {
		policy, err := s.policy(ctx, org, t.Language)
		if err != nil {
			return err
		}
		t.ID = h[0].id
		t.Segments, _ = unfinishedSegments(policy, h.segments())
		t.Text, t.WordCount = TextOf(t.Segments), wordCount(t.Segments)
	}
	if err := insertTranscript(ctx, tx, org, t); err != nil {
		return fmt.Errorf("queue transcript of %s: %w", callID, err)
	}
	if err := s.cfg.Calls.SetSummary(ctx, tx, org, callID, t.ID, "", ""); err != nil {
		return err
	}
	return s.enqueue(ctx, tx, callJobKind, org, callID)
}

// OnUnrecordedCall adds a call without a recording to the history of its number, in the transaction that ends the
// call. It needs no job, because there are no words.
func (s *Service) OnUnrecordedCall(ctx context.Context, tx db.Querier, org string, r call.CDR) error {
	if said, err := s.knownUtterances(ctx, tx, org, r.CallID); err != nil {
		return err
	} else if len(said) > 0 { // there is no audio, but a conversation with a voice agent
		return s.OnRecordingsReady(ctx, tx, org, r.CallID, false)
	}
	if s.cfg.Memory == nil {
		return nil
	}
	lesson, err := s.cfg.Memory.Prepare(ctx, memoryCall(callFacts{CDR: r}, Transcript{}, Note{}))
	if err != nil {
		return err
	}
	return s.cfg.Memory.IndexCall(ctx, tx, org, lesson)
}

func (s *Service) enqueue(ctx context.Context, tx db.Querier, kind, org, callID string) error {
	return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: org, Queue: Queue, Lane: org, Kind: kind, Args: callRef{callID},
		MaxAttempts: maxAttempts, UniqueKey: kind + " " + callID})
}
