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

// Service understands calls: it listens while they run, and after their end turns what was said into transcript,
// note and memory.
type Service struct {
	DB       *db.DB
	Outbox   *event.Outbox
	Jobs     *job.Queue
	Calls    *call.Service
	Memory   *memory.Service
	Pool     *Pool    // nil: transcription is off
	Listener Listener // what the pool listens with
	Writer   Writer   // nil: notes are off
	Fallback Writer   // writes where Writer fails for good; nil: none
	Messages Messages // nil: none are understood
	Log      *slog.Logger
	Now      func() time.Time
	Language string // of the calls, "en" when empty
	// Spoken is what was said in words that are known: with voice agents. It is complete once Settled returns. nil: nothing.
	Spoken  func(ctx context.Context, q db.Querier, org, callID string) ([]Spoken, error)
	Settled func(ctx context.Context, org, callID string) error
	// Unsay forgets it. May be nil.
	Unsay func(ctx context.Context, tx db.Querier, org, callID string) error
	// Zone is the time zone of an organisation, in which "tomorrow" begins; nil: UTC.
	Zone func(ctx context.Context, org string) *time.Location
	// Vocabulary looks up the terms of an organisation that may be said in a call of it, the most relevant first; nil: none.
	Vocabulary func(ctx context.Context, org, callID string) ([]Term, error)

	mu   sync.Mutex // guards live
	live map[string]hearing
}

// forgetAfter is how long the segments of an ended call wait in memory for their job.
const forgetAfter = 30 * time.Minute

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

// Listen begins to listen to a recording of a call that is being written at path; the returned Live takes the audio. It is
// nil where transcription is off, which is a Live that ignores everything. What is left out of the recording is to be left out of
// the audio: it is in no transcript, note or memory.
func (s *Service) Listen(org, callID, path string, f Format) *Live {
	if s.Pool == nil {
		return nil
	}
	l, err := NewLive(s.Pool, f, s.language(), growing(path))
	if err != nil {
		s.Log.Error("call not listened to", "org", org, "call", callID, "err", err)
		return nil
	}
	l.Vocabulary = s.vocabulary(org, callID)
	x := &listened{Live: l, id: db.NewID("trn"), path: path, partial: continued(path), began: s.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.live == nil {
		s.live = map[string]hearing{}
	}
	for id, old := range s.live { // calls whose job never came
		if last := old[len(old)-1].ended; !last.IsZero() && s.Now().Sub(last) > forgetAfter && id != org+" "+callID {
			delete(s.live, id)
		}
	}
	h := append(s.live[org+" "+callID], x)
	s.live[org+" "+callID] = h
	first := h[0].began
	l.OnSegment = s.tell(org, callID, x.began.Sub(first))
	return l
}

// End says that no more audio of the recordings of a call that were begun comes: their tails are recognised first.
func (s *Service) End(org, callID string) {
	s.mu.Lock()
	h := s.live[org+" "+callID]
	for _, l := range h {
		if l.ended.IsZero() {
			l.ended = s.Now()
		}
	}
	s.mu.Unlock()
	for _, l := range h {
		l.Live.End()
	}
}

// heardOf finds what is or was listened to of a call; nil where nothing was.
func (s *Service) heardOf(org, callID string) hearing {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[org+" "+callID]
}

func (s *Service) forget(org, callID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.live, org+" "+callID)
}

// Queue is the job queue of this room.
const Queue = "understand"

// The kinds of its jobs.
const (
	processKind = "call.process"
	attempts    = 3
)

// reference is the argument of jobs about a call.
type reference struct {
	CallID string `json:"call_id"`
}

// Handle registers what does the jobs of this room.
func (s *Service) Handle(r *job.Runner) {
	r.Handle(processKind, s.process)
	r.Handle(messageKind, s.processMessage)
}

// Recorded is to be called in the transaction in which the last recording of a call that has ended became available or has
// failed: it keeps what was heard so far and has the rest done by a job.
func (s *Service) Recorded(ctx context.Context, tx db.Querier, org, callID string, ok bool) error {
	t := Transcript{ID: db.NewID("trn"), CallID: callID, Status: Queued, Language: s.language(), CreatedAt: db.At(s.Now())}
	if h := s.heardOf(org, callID); h != nil {
		t.ID, t.Segments = h[0].id, h.segments()
		t.Text, t.WordCount = TextOf(t.Segments), wordCount(t.Segments)
	}
	if err := insert(ctx, tx, org, t); err != nil {
		return fmt.Errorf("queue transcript of %s: %w", callID, err)
	}
	if err := s.Calls.Note(ctx, tx, org, callID, t.ID, "", ""); err != nil {
		return err
	}
	return s.enqueue(ctx, tx, processKind, org, callID)
}

// Unrecorded is to be called in the transaction that ends a call without a recording: it puts the call into the
// history of its number, at once, for there are no words to wait for.
func (s *Service) Unrecorded(ctx context.Context, tx db.Querier, org string, r call.CDR) error {
	if said, err := s.spoken(ctx, tx, org, r.CallID); err != nil {
		return err
	} else if len(said) > 0 { // there is no audio, but there are words
		return s.Recorded(ctx, tx, org, r.CallID, false)
	}
	if s.Memory == nil {
		return nil
	}
	lesson, err := s.Memory.Prepare(ctx, remembered(facts{CDR: r}, Transcript{}, Note{}))
	if err != nil {
		return err
	}
	return s.Memory.Learn(ctx, tx, org, lesson)
}

func (s *Service) enqueue(ctx context.Context, tx db.Querier, kind, org, callID string) error {
	return s.Jobs.Enqueue(ctx, tx, job.Spec{Org: org, Queue: Queue, Lane: org, Kind: kind, Args: reference{callID},
		MaxAttempts: attempts, UniqueKey: kind + " " + callID})
}
