package call

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// Observers of calls. Observe adds them; each observer method is called in the order of Observe. An error of one that runs in a transaction rolls the
// transaction back.

// LegObserver is notified after the commit of a change in which a leg rings, answers or ends.
type LegObserver interface {
	LegsChanged(org, callID string)
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

// RecordingObserver is notified of recordings in the transaction of the change.
type RecordingObserver interface {
	// RecordingsReady is called if the recordings of a call finish before the call ends. ok reports whether any of them is available.
	RecordingsReady(ctx context.Context, tx db.Querier, org, callID string, ok bool) error
	RecordingDeleted(ctx context.Context, tx db.Querier, org, callID, recordingID string) error
}

// NoteObserver is notified of notes in the transaction of the change.
type NoteObserver interface {
	// NoteWritten has the external number of the call. sync is true if the note is to be synchronised with the connected CRM systems.
	NoteWritten(ctx context.Context, tx db.Querier, org string, n Note, phone string, sync bool) error
	NoteDeleted(ctx context.Context, tx db.Querier, org, noteID string) error
}

// CallbackObserver is notified in the transaction that cancels a callback of a queue. origin is the call in which the caller requested it.
type CallbackObserver interface {
	CallbackCanceled(ctx context.Context, tx db.Querier, org, origin string) error
}

// observers has the observers by interface.
type observers struct {
	legs        []LegObserver
	answers     []AnswerObserver
	ends        []EndObserver
	enrichments []EnrichmentObserver
	recordings  []RecordingObserver
	notes       []NoteObserver
	callbacks   []CallbackObserver
}

// Observe adds an observer to the list of each observer interface it implements. It panics if there is none. Call it before the first call.
func (s *Service) Observe(o any) {
	l := &s.observers
	added := add(&l.legs, o)
	added = add(&l.answers, o) || added
	added = add(&l.ends, o) || added
	added = add(&l.enrichments, o) || added
	added = add(&l.recordings, o) || added
	added = add(&l.notes, o) || added
	added = add(&l.callbacks, o) || added
	if !added {
		panic(fmt.Sprintf("call: %T implements no observer", o))
	}
}

func add[T any](list *[]T, o any) bool {
	t, ok := o.(T)
	if ok {
		*list = append(*list, t)
	}
	return ok
}

// each calls f with every observer until one fails.
func each[T any](list []T, f func(T) error) error {
	for _, o := range list {
		if err := f(o); err != nil {
			return err
		}
	}
	return nil
}

// recordingsReady calls the recording observers. It is an OnRecorded.
func (s *Service) recordingsReady(ctx context.Context, tx db.Querier, org, callID string, ok bool) error {
	return each(s.observers.recordings, func(o RecordingObserver) error { return o.RecordingsReady(ctx, tx, org, callID, ok) })
}
