package sms

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Submit writes a message down that a program hands over in another way than by POST /sms, in the caller's transaction and under the
// identifier that the program is told. Whoever ctx names is the sender; what is wrong is the same *op.Error as over HTTP.
func (s *Service) Submit(ctx context.Context, tx db.Querier, id string, b Create) (Message, error) {
	m, from, err := s.fresh(ctx, tx, b)
	if err != nil {
		return m, err
	}
	m.ID = id
	return m, s.admit(ctx, tx, &m, from.ID)
}

// admit writes a new message down to be sent, unless its recipient opted out.
func (s *Service) admit(ctx context.Context, tx db.Querier, m *Message, numberID string) error {
	out, err := s.opted(ctx, tx, m.org, numberID, m.ToNumber)
	if err != nil {
		return err
	}
	if out {
		return op.Fail("opted_out", m.ToNumber+" asked not to receive messages from "+m.FromNumber)
	}
	return s.post(ctx, tx, m, numberID)
}

// Find returns a message, or db.ErrNone.
func (s *Service) Find(ctx context.Context, q db.Querier, org, id string) (Message, error) {
	return get(ctx, q, org, id)
}

// Final reports whether nothing more will become of a message.
func (m Message) Final() bool {
	switch m.Status {
	case Delivered, Undelivered, Failed, canceled:
		return true
	}
	return false
}

// Canceled reports whether a message was taken back before its time.
func (m Message) Canceled() bool { return m.Status == canceled }

// ended tells who wants to know that a message has become what it will be.
func (s *Service) ended(ctx context.Context, tx db.Querier, m Message) error {
	if s.OnEnd == nil || !m.Final() {
		return nil
	}
	return s.OnEnd(ctx, tx, m.org, m)
}
