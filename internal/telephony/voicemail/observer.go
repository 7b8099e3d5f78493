package voicemail

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
)

// Observers of messages. All run in the transaction of the change, in the order of Observe; an error rolls the transaction back.

// ReceiveObserver is notified of a new message.
type ReceiveObserver interface {
	VoicemailReceived(ctx context.Context, tx db.Querier, org, id string) error
}

// SaveObserver is notified when the draft of a call becomes a message.
type SaveObserver interface {
	VoicemailSaved(ctx context.Context, tx db.Querier, org, callID, id string) error
}

// RemoveObserver is notified of a message that is deleted, with its state before.
type RemoveObserver interface {
	VoicemailRemoved(ctx context.Context, tx db.Querier, v Voicemail) error
}

// observers has the observers by interface.
type observers struct {
	receive []ReceiveObserver
	save    []SaveObserver
	remove  []RemoveObserver
}

// Observe adds an observer to the list of each observer interface it implements. It panics if there is none. Call it before the first
// message.
func (s *Service) Observe(o any) {
	l := &s.observers
	observe.Require("voicemail", o, observe.Add(&l.receive, o), observe.Add(&l.save, o), observe.Add(&l.remove, o))
}
