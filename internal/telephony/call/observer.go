package call

import (
	"context"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
)

// Observers of calls. Observe adds them; each observer method is called in the order of Observe. An error of one that runs in a transaction
// rolls the transaction back.

// LegObserver is notified after the commit of a change in which a leg rings, answers or ends. users are those of the
// legs that changed, perhaps none. They are nil if they are not known: then each user of the call may be concerned.
type LegObserver interface {
	LegsChanged(org, callID string, users []string)
}

// AgentObserver is notified in the transaction that stores the end of the leg of a user who served the call, while the call goes on. A user
// who answered and was not connected, because they hung up at once, did not serve it.
type AgentObserver interface {
	AgentLeft(ctx context.Context, tx db.Querier, org, callID, userID string) error
}

// AnswerObserver is notified in the transaction that stores an answer. It runs for every call.
type AnswerObserver interface {
	CallAnswered(ctx context.Context, tx db.Querier, org, callID string) error
}

// EndObserver is notified in the transaction that ends a call, with its call detail record.
type EndObserver interface {
	CallEnded(ctx context.Context, tx db.Querier, e Ended, r CDR) error
}

// EnrichmentObserver is notified in the transaction that adds transcript, summary or recording to a call.
type EnrichmentObserver interface {
	CallEnriched(ctx context.Context, tx db.Querier, org, callID string) error
}

// RecordingStore stores the recordings of calls, in the transactions of the calls. Package recording implements it.
// Without one, calls have no recordings.
type RecordingStore interface {
	// WriteRecordings stores the recordings of a change.
	WriteRecordings(ctx context.Context, tx db.Querier, c Change) error
	// StopRecordings stops the recordings of a call that ends.
	StopRecordings(ctx context.Context, tx db.Querier, org, callID string, at time.Time) error
	// FinishRecordings is called for a recorded call after its end is written.
	FinishRecordings(ctx context.Context, tx db.Querier, org, callID string) error
	// EraseRecordings deletes the recordings of a call, even under legal hold.
	EraseRecordings(ctx context.Context, tx db.Querier, org, callID string) error
}

// NoteObserver is notified of notes in the transaction of the change.
type NoteObserver interface {
	// NoteWritten has the external number of the call. sync is true if the note is to be synchronised with the connected CRM systems.
	NoteWritten(ctx context.Context, tx db.Querier, org string, n Note, phone string, sync bool) error
	NoteDeleted(ctx context.Context, tx db.Querier, org, noteID string) error
}

// observers has the observers by interface.
type observers struct {
	legs        []LegObserver
	agents      []AgentObserver
	answers     []AnswerObserver
	ends        []EndObserver
	enrichments []EnrichmentObserver
	recordings  []RecordingStore
	notes       []NoteObserver
}

// Observe adds an observer to the list of each observer interface it implements. It panics if there is none. Call it before the first call.
func (s *Service) Observe(o any) {
	l := &s.observers
	observe.Require("call", o, observe.Add(&l.legs, o), observe.Add(&l.agents, o), observe.Add(&l.answers, o), observe.Add(&l.ends, o),
		observe.Add(&l.enrichments, o), observe.Add(&l.recordings, o), observe.Add(&l.notes, o))
}

func (l *observers) writeRecordings(ctx context.Context, tx db.Querier, c Change) error {
	if len(c.Recordings) == 0 {
		return nil
	}
	return observe.Each(l.recordings, func(o RecordingStore) error { return o.WriteRecordings(ctx, tx, c) })
}

// agentsLeft notifies of the users who served the call and whose legs ended.
func (l *observers) agentsLeft(ctx context.Context, tx db.Querier, c Change) error {
	for _, leg := range c.Legs {
		if leg.UserID == "" || leg.Work == nil {
			continue
		}
		if err := observe.Each(l.agents, func(o AgentObserver) error { return o.AgentLeft(ctx, tx, c.Org, c.ID, leg.UserID) }); err != nil {
			return err
		}
	}
	return nil
}

func (l *observers) stopRecordings(ctx context.Context, tx db.Querier, e Ended) error {
	return observe.Each(l.recordings, func(o RecordingStore) error { return o.StopRecordings(ctx, tx, e.Org, e.ID, e.At) })
}

func (l *observers) finishRecordings(ctx context.Context, tx db.Querier, e Ended) error {
	return observe.Each(l.recordings, func(o RecordingStore) error { return o.FinishRecordings(ctx, tx, e.Org, e.ID) })
}
