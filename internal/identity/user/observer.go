package user

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
)

// Observers of users. Observe adds them; each observer method is called in the transaction of the change, in the order of Observe. An
// error rolls the transaction back.

// ChangeObserver is notified when a user was added or changed, except by SwitchDND.
type ChangeObserver interface {
	UserChanged(ctx context.Context, tx db.Querier, u User) error
}

// StatusObserver is notified when a user is suspended or active again.
type StatusObserver interface {
	UserStatusChanged(ctx context.Context, tx db.Querier, u User) error
}

// RemovalObserver is notified when a user is removed.
type RemovalObserver interface {
	UserRemoved(ctx context.Context, tx db.Querier, r Removal) error
}

// observers has the observers by interface.
type observers struct {
	changes  []ChangeObserver
	statuses []StatusObserver
	removals []RemovalObserver
}

// Observe adds an observer to the list of each observer interface it implements. It panics if there is none. Call it before
// the first request.
func (s *Service) Observe(o any) {
	l := &s.observers
	observe.Require("user", o, observe.Add(&l.changes, o), observe.Add(&l.statuses, o), observe.Add(&l.removals, o))
}
