package smppserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/protocol/smpp"
)

// A submission is a part of a message, or all of it, as it was answered.
type submission struct {
	org, id, application, message string
	receipt                       smpp.Wish
	source, destination           smpp.Address
	at                            db.Time
}

// When a message that comes again is the one before: its connection broke off within doubt after it, and within recall it comes on
// another one.
const (
	doubt  = 10 * time.Second
	recall = time.Hour
	// remembered is how long it is known what an application submitted: longer than any message waits for its time.
	remembered = 60 * 24 * time.Hour
)

// submitted tells whether a message was written down under an identifier.
func submitted(ctx context.Context, tx db.Querier, org, id string) (known bool, err error) {
	const q = `SELECT EXISTS (SELECT 1 FROM sms_submissions WHERE org_id = $1 AND id = $2)`
	err = tx.QueryRow(ctx, q, org, id).Scan(&known)
	return known, err
}

// print tells messages apart.
func (s *Service) print(in smpp.Incoming) string {
	return s.Digest(fmt.Sprintf("submission %q %q %q %q %q %d", in.Account, in.From.String(), in.To.String(), in.Text, in.Schedule, in.Reference))
}

// note writes down under which identifiers a message was answered.
func (s *Service) note(ctx context.Context, tx db.Querier, a Application, in smpp.Incoming, message, peer string) error {
	const q = `INSERT INTO sms_submissions (org_id, id, application_id, message_id, receipt, source, destination, peer, digest, bind, node, created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
	digest := s.print(in)
	for i, id := range in.MessageIDs {
		_, err := tx.Exec(ctx, q, a.org, id, a.ID, message, int(in.Receipts[i]), db.AsJSON(in.From), db.AsJSON(in.To), peer, digest,
			db.Null(in.Bind), s.Node, db.At(s.Now()))
		if err != nil {
			return fmt.Errorf("write submission: %w", err)
		}
	}
	return nil
}

// again finds the message that a message is which came on a connection that broke off before its answer was surely heard. Each is
// found once: who says the same twice is heard twice.
func (s *Service) again(ctx context.Context, tx db.Querier, a Application, in smpp.Incoming) (message string, err error) {
	const q = `SELECT message_id, bind FROM sms_submissions
		WHERE org_id = $1 AND application_id = $2 AND digest = $3 AND created_at >= $4 AND bind IS NOT NULL ORDER BY created_at, id LIMIT 200`
	rows, err := tx.Query(ctx, q, a.org, a.ID, s.print(in), db.At(s.Now().Add(-recall)))
	if err != nil {
		return "", fmt.Errorf("find submission: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, bind string
		if err := rows.Scan(&id, &bind); err != nil {
			return "", err
		}
		if bind != in.Bind && !s.server.Alive(a.account(), bind) {
			return id, nil
		}
	}
	return "", rows.Err()
}

// alias answers a message that came again under new identifiers: receipts are told under these.
func (s *Service) alias(ctx context.Context, tx db.Querier, a Application, in smpp.Incoming, message string) error {
	const q = `UPDATE sms_submissions SET bind = NULL, node = NULL, receipt = 0 WHERE org_id = $1 AND message_id = $2`
	if _, err := tx.Exec(ctx, q, a.org, message); err != nil {
		return fmt.Errorf("change submission: %w", err)
	}
	m, err := s.Messages.Find(ctx, tx, a.org, message)
	if err != nil {
		return fmt.Errorf("find message: %w", err)
	}
	s.Log.Info("smpp: a message came again whose answer was lost", "application", a.ID, "message", message)
	if err := s.note(ctx, tx, a, in, message, m.ToNumber); err != nil {
		return err
	}
	return s.ended(ctx, tx, a.org, m)
}

// incomplete ends a message of which parts never came. Nothing is sent: a text with a hole may say the contrary. Receipts say so,
// unless something newer went the same way, which then is the same message sent again.
func (s *Service) incomplete(ctx context.Context, tx db.Querier, a Application, in smpp.Incoming) error {
	s.Log.Warn("smpp: parts of a message never came: it was not sent", "application", a.ID, "parts", in.Parts, "missing", in.Missing)
	peer, err := s.recipient(ctx, a, in.To)
	if err != nil {
		return err
	}
	newer := false
	const q = `SELECT EXISTS (SELECT 1 FROM sms_submissions WHERE org_id = $1 AND application_id = $2 AND peer = $3 AND created_at >= $4)`
	if err := tx.QueryRow(ctx, q, a.org, a.ID, peer, db.At(s.Now().Add(-s.PartsAge-time.Minute))).Scan(&newer); err != nil || newer {
		return err
	}
	in.Bind = ""
	if err := s.note(ctx, tx, a, in, "", peer); err != nil {
		return err
	}
	for i, id := range in.MessageIDs {
		if in.Receipts[i].Wants(smpp.Undeliverable) {
			if err := s.tell(ctx, tx, a.org, a.ID, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func one(ctx context.Context, q db.Querier, org, id string) (x submission, err error) {
	const text = `SELECT org_id, id, application_id, message_id, receipt, source, destination, created_at FROM sms_submissions
		WHERE org_id = $1 AND id = $2`
	var source, destination db.JSON[smpp.Address]
	var receipt int
	err = q.QueryRow(ctx, text, org, id).Scan(&x.org, &x.id, &x.application, &x.message, &receipt, &source, &destination, &x.at)
	x.receipt, x.source, x.destination = smpp.Wish(receipt), source.V, destination.V
	return x, err
}

// Recover forgets doubts of connections of this node that ended long before it was last alive.
func (s *Service) Recover(ctx context.Context, alive time.Time) error {
	if alive.IsZero() {
		return nil
	}
	return s.DB.Tx(ctx, func(tx db.Querier) error {
		// tenant: all connections of a node end with it
		const q = `UPDATE sms_submissions SET bind = NULL, node = NULL WHERE bind IS NOT NULL AND node = $1 AND created_at < $2`
		_, err := tx.Exec(ctx, q, s.Node, db.At(alive.Add(-doubt)))
		return err
	})
}

func asProblem(err error) *op.Error {
	var e *op.Error
	errors.As(err, &e)
	return e
}
