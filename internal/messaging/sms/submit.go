package sms

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Submit stores and queues a message that arrived by another interface than POST /sms. It uses the caller's
// transaction and the given id. The principal in ctx is the sender. Errors are the same *op.Error as over HTTP.
func (s *Service) Submit(ctx context.Context, tx db.Querier, id string, b Create) (Message, error) {
	m, from, err := s.newMessage(ctx, tx, b)
	if err != nil {
		return m, err
	}
	m.ID = id
	return m, s.enqueueUnlessOptedOut(ctx, tx, &m, from.ID)
}

// enqueueUnlessOptedOut stores and queues a new message, unless its recipient has opted out.
func (s *Service) enqueueUnlessOptedOut(ctx context.Context, tx db.Querier, m *Message, numberID string) error {
	out, err := s.isOptedOut(ctx, tx, m.org, numberID, m.ToNumber)
	if err != nil {
		return err
	}
	if out {
		return op.Fail("opted_out", m.ToNumber+" asked not to receive messages from "+m.FromNumber)
	}
	return s.storeAndEnqueue(ctx, tx, m, numberID)
}

// Find returns a message, or db.ErrNone.
func (s *Service) Find(ctx context.Context, q db.Querier, org, id string) (Message, error) {
	return get(ctx, q, org, id)
}

// Final reports whether the state of a message can no longer change.
func (m Message) Final() bool {
	switch m.Status {
	case Delivered, Undelivered, Failed, canceled:
		return true
	}
	return false
}

// Canceled reports whether a message was cancelled before its time.
func (m Message) Canceled() bool { return m.Status == canceled }
