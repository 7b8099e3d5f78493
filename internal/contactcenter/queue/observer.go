package queue

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
)

// Observers of queues. All run in the transaction of the change, in the order of Observe; an error rolls the transaction back.

// EnterObserver is notified when a call enters a queue.
type EnterObserver interface {
	QueueEntered(ctx context.Context, tx db.Querier, org, callID, queueID string) error
}

// CallbackObserver is notified of changes of callbacks.
type CallbackObserver interface {
	CallbackChanged(ctx context.Context, tx db.Querier, c CallbackChange) error
}

// observers has the observers by interface.
type observers struct {
	enter     []EnterObserver
	callbacks []CallbackObserver
}

// Observe adds an observer to the list of each observer interface it implements. It panics if there is none. Call it before the first
// request.
func (s *Service) Observe(o any) {
	l := &s.observers
	observe.Require("queue", o, observe.Add(&l.enter, o), observe.Add(&l.callbacks, o))
}
