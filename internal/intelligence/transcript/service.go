package transcript

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"soniq/internal/intelligence/memory"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/telephony/call"
)

// Service transcribes calls while they run. After their end it stores the transcript, writes the note and indexes
// both in the call memory. It is safe for concurrent use; the exported fields are set before the first call.
type Service struct {
	DB         *db.DB
	Outbox     *event.Outbox
	Jobs       *job.Queue
	Calls      *call.Service
	Memory     *memory.Service
	Pool       *RecognizerPool // nil: transcription is off
	Recognizer Recognizer      // the recogniser of the pool
	Summarizer Summarizer      // nil: notes are off
	Fallback   Summarizer      // used if Summarizer fails for good; nil: none
	Voicemails Voicemails      // nil: voicemail is not transcribed
	Log        *slog.Logger
	Now        func() time.Time
	Language   string // of the calls, "en" if empty
	// KnownUtterances returns utterances whose text is known without recognition: those of conversations with voice
	// agents. They are complete once AwaitUtterances returns. nil: none.
	KnownUtterances func(ctx context.Context, q db.Querier, org, callID string) ([]KnownUtterance, error)
	AwaitUtterances func(ctx context.Context, org, callID string) error
	// DeleteUtterances deletes them. May be nil.
	DeleteUtterances func(ctx context.Context, tx db.Querier, org, callID string) error
	// Zone returns the time zone of an organisation, for words such as "tomorrow"; nil: UTC.
	Zone func(ctx context.Context, org string) *time.Location
	// Vocabulary returns the terms of an organisation that may be said in one of its calls, the most relevant first;
	// nil: none.
	Vocabulary func(ctx context.Context, org, callID string) ([]Term, error)

	mu   sync.Mutex // guards live
	live map[string]liveRecordings
}

// liveRetention is how long the segments of an ended call wait in memory for their job.
const liveRetention = 30 * time.Minute

func (s *Service) language() string {
	if s.Language == "" {
		return "en"
	}
	return s.Language
}

func (s *Service) zone(ctx context.Context, org string) *time.Location {
	if s.Zone == nil {
		return time.UTC
	}
	return s.Zone(ctx, org)
}

// StartLive starts the live transcription of a recording that is being written at path. The caller writes the audio
// to the result. If transcription is off it is nil, which ignores all audio. Audio that is excluded from the
// recording must not be written: it would appear in transcript, note and call memory.
func (s *Service) StartLive(org, callID, path string, f Format) *LiveTranscription {
	if s.Pool == nil {
		return nil
	}
	l, err := NewLiveTranscription(s.Pool, f, s.language(), liveFileReader(path))
	if err != nil {
		s.Log.Error("call not listened to", "org", org, "call", callID, "err", err)
		return nil
	}
	l.Vocabulary = s.vocabulary(org, callID)
	x := &liveRecording{LiveTranscription: l, id: db.NewID("trn"), path: path, partial: hasBeginning(path), began: s.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live = map[string]liveRecordings{}
	}
	for id, old := range s.live { // calls without a job
		if last := old[len(old)-1].ended; !last.IsZero() && s.Now().Sub(last) > liveRetention && id != org+" "+callID {
			delete(s.live, id)
		}
	}
	h := append(s.live[org+" "+callID], x)
	s.live[org+" "+callID] = h
	first := h[0].began
	l.OnSegment = s.streamSegments(org, callID, x.began.Sub(first))
	return l
}

// EndLive marks the end of the audio of a call's recordings: their last segments are recognised first.
func (s *Service) EndLive(org, callID string) {
	s.mu.Lock()
	h := s.live[org+" "+callID]
	for _, l := range h {
		if l.ended.IsZero() {
			l.ended = s.Now()
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
	defer s.mu.Unlock()
	delete(s.live, org+" "+callID)
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
	t := Transcript{ID: db.NewID("trn"), CallID: callID, Status: Queued, Language: s.language(), CreatedAt: db.At(s.Now())}
	if h := s.liveOf(org, callID); h != nil {
		t.ID, t.Segments = h[0].id, h.segments()
		t.Text, t.WordCount = TextOf(t.Segments), wordCount(t.Segments)
	}
	if err := insertTranscript(ctx, tx, org, t); err != nil {
		return fmt.Errorf("queue transcript of %s: %w", callID, err)
	}
	if err := s.Calls.SetSummary(ctx, tx, org, callID, t.ID, "", ""); err != nil {
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
	if s.Memory == nil {
		return nil
	}
	lesson, err := s.Memory.Prepare(ctx, memoryCall(callFacts{CDR: r}, Transcript{}, Note{}))
	if err != nil {
		return err
	}
	return s.Memory.IndexCall(ctx, tx, org, lesson)
}

func (s *Service) enqueue(ctx context.Context, tx db.Querier, kind, org, callID string) error {
	return s.Jobs.Enqueue(ctx, tx, job.Spec{Org: org, Queue: Queue, Lane: org, Kind: kind, Args: callRef{callID},
		MaxAttempts: maxAttempts, UniqueKey: kind + " " + callID})
}
