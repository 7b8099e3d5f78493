package sms

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/platform/observe"
)

// Observers of messages. All run in the transaction of the change, in the order of Observe; an error rolls the transaction back.

// StoreObserver is notified of each message that was sent or received, except of replies to keywords.
type StoreObserver interface {
	MessageStored(ctx context.Context, tx db.Querier, org string, m Message) error
}

// FinalObserver is notified when an outbound message reaches a final state.
type FinalObserver interface {
	MessageFinal(ctx context.Context, tx db.Querier, org string, m Message) error
}

// ReceiveObserver is notified of each message received for a number of the organisation.
type ReceiveObserver interface {
	MessageReceived(ctx context.Context, tx db.Querier, org string, n OwnNumber, m Message) error
}

// observers has the observers by interface.
type observers struct {
	stored   []StoreObserver
	final    []FinalObserver
	received []ReceiveObserver
}

// Observe adds an observer to the list of each observer interface it implements. It panics if there is none. Call it before the first
// message.
func (s *Service) Observe(o any) {
	l := &s.observers
	observe.Require("sms", o, observe.Add(&l.stored, o), observe.Add(&l.final, o), observe.Add(&l.received, o))
}

// notifyStored notifies observers of a message that was sent or received, except of replies to keywords.
func (s *Service) notifyStored(ctx context.Context, tx db.Querier, m Message) error {
	if m.automatic {
		return nil
	}
	return observe.Each(s.observers.stored, func(o StoreObserver) error { return o.MessageStored(ctx, tx, m.org, m) })
}

// notifyFinal notifies observers if the state of a message is final.
func (s *Service) notifyFinal(ctx context.Context, tx db.Querier, m Message) error {
	if !m.Final() {
		return nil
	}
	return observe.Each(s.observers.final, func(o FinalObserver) error { return o.MessageFinal(ctx, tx, m.org, m) })
}

// notifyReceived notifies observers of a message for a number of the organisation.
func (s *Service) notifyReceived(ctx context.Context, tx db.Querier, n OwnNumber, m Message) error {
	if n.ID == "" {
		return nil
	}
	return observe.Each(s.observers.received, func(o ReceiveObserver) error { return o.MessageReceived(ctx, tx, m.org, n, m) })
}
