package sms

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// PhoneMessage is a message that a user wrote on a telephone (SIP MESSAGE, RFC 3428).
type PhoneMessage struct {
	Org, UserID    string
	From, To, Body string
	Reference      string // a message with the same reference is stored once
	Sandbox        bool
}

// SendFromPhone stores and queues a message that was written on a telephone, or refuses it with an *op.Error.
func (s *Service) SendFromPhone(ctx context.Context, w PhoneMessage) (m Message, err error) {
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		fresh := false
		if fresh, err = s.isNewReference(ctx, tx, w); err != nil || !fresh {
			return err
		}
		m = Message{ID: db.NewID("sms"), Direction: outbound, Status: queued, Body: w.Body, Media: []Media{}, Source: "console",
			UserID: db.Null(w.UserID).Ptr(), CreatedAt: db.At(s.cfg.Clock.Now()), Metadata: map[string]string{}, Sandbox: w.Sandbox,
			org:    w.Org,
			origin: w.Reference}
		m.Encoding, m.Segments = Segments(w.Body)
		from, violation, err := s.senderNumber(ctx, tx, w.Org, w.From)
		if err != nil {
			return err
		}
		if violation != nil {
			return op.Fail("destination_not_allowed", violation.Message)
		}
		m.FromNumber = from.Number
		if m.carrier, m.ToNumber, err = s.cfg.Router.RouteMessage(ctx, w.Org, from, w.To); err != nil {
			return err
		}
		out, err := s.isOptedOut(ctx, tx, w.Org, from.ID, m.ToNumber)
		if err != nil {
			return err
		}
		if out {
			return op.Fail("opted_out", m.ToNumber+" asked not to receive messages")
		}
		return s.storeAndEnqueue(ctx, tx, &m, from.ID)
	})
	return m, err
}

// isNewReference reports whether no message with this reference is stored yet.
func (s *Service) isNewReference(ctx context.Context, tx db.Querier, w PhoneMessage) (bool, error) {
	if w.Reference == "" {
		return true, nil
	}
	known := false
	const q = `SELECT EXISTS (SELECT 1 FROM messages WHERE org_id = $1 AND origin = $2)`
	err := tx.QueryRow(ctx, q, w.Org, w.Reference).Scan(&known)
	return !known, err
}
