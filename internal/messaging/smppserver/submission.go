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

// submission is a message, or a part of one, that was acknowledged with an identifier.
type submission struct {
	org, id, application, message string
	receipt                       smpp.ReceiptRequest
	source, destination           smpp.Address
	at                            db.Time
}

// A message is taken for a repetition of an earlier one if two conditions hold: the connection of the earlier one ended
// within responseGrace after it, and this one comes within duplicateWindow on another connection.
const (
	responseGrace   = 10 * time.Second
	duplicateWindow = time.Hour
	// submissionRetention is the retention of submissions. It is longer than any message can be scheduled ahead.
	submissionRetention = 60 * 24 * time.Hour
)

// isSubmitted reports whether a message with this identifier is stored.
func isSubmitted(ctx context.Context, tx db.Querier, org, id string) (known bool, err error) {
	const q = `SELECT EXISTS (SELECT 1 FROM sms_submissions WHERE org_id = $1 AND id = $2)`
	err = tx.QueryRow(ctx, q, org, id).Scan(&known)
	return known, err
}

// fingerprint returns a digest that distinguishes messages.
func (s *Service) fingerprint(in smpp.Incoming) string {
	return s.cfg.Digester.Digest(fmt.Sprintf("submission %q %q %q %q %q %d", in.Account, in.From.String(), in.To.String(), in.Text,
		in.Schedule, in.Reference))
}

// storeSubmission stores the identifiers under which a message was acknowledged.
func (s *Service) storeSubmission(ctx context.Context, tx db.Querier, a Application, in smpp.Incoming, message, peer string) error {
	const q = `INSERT INTO sms_submissions (org_id, id, application_id, message_id, receipt, source, destination, peer, digest, bind, node,
		created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)`
	digest := s.fingerprint(in)
	for i, id := range in.MessageIDs {
		_, err := tx.Exec(ctx, q, a.org, id, a.ID, message, int(in.Receipts[i]), db.AsJSON(in.From), db.AsJSON(in.To), peer, digest,
			db.Null(in.Bind), s.cfg.Node, db.At(s.cfg.Clock.Now()))
		if err != nil {
			return fmt.Errorf("write submission: %w", err)
		}
	}
	return nil
}

// findRepeated returns the earlier message if this one repeats it: the connection of the earlier one ended before the
// application certainly received the response. Each is found once, so that two equal messages stay two.
func (s *Service) findRepeated(ctx context.Context, tx db.Querier, a Application, in smpp.Incoming) (message string, err error) {
	const q = `SELECT message_id, bind FROM sms_submissions
		WHERE org_id = $1 AND application_id = $2 AND digest = $3 AND created_at >= $4 AND bind IS NOT NULL ORDER BY created_at, id
		LIMIT 200`
	rows, err := tx.Query(ctx, q, a.org, a.ID, s.fingerprint(in), db.At(s.cfg.Clock.Now().Add(-duplicateWindow)))
	if err != nil {
		return "", fmt.Errorf("find submission: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var id, bind string
		if err := rows.Scan(&id, &bind); err != nil {
			return "", err
		}
		if bind != in.Bind && !s.server.IsBound(a.account(), bind) {
			return id, nil
		}
	}
	return "", rows.Err()
}

// acceptRepeated acknowledges a repeated message under new identifiers. Receipts are sent for the new ones.
func (s *Service) acceptRepeated(ctx context.Context, tx db.Querier, a Application, in smpp.Incoming, message string) error {
	const q = `UPDATE sms_submissions SET bind = NULL, node = NULL, receipt = 0 WHERE org_id = $1 AND message_id = $2`
	if _, err := tx.Exec(ctx, q, a.org, message); err != nil {
		return fmt.Errorf("change submission: %w", err)
	}
	m, err := s.cfg.Messages.Find(ctx, tx, a.org, message)
	if err != nil {
		return fmt.Errorf("find message: %w", err)
	}
	s.cfg.Log.Info("smpp: a repeated message was recognised; its first response was lost", "application", a.ID, "message", message)
	if err := s.storeSubmission(ctx, tx, a, in, message, m.ToNumber); err != nil {
		return err
	}
	return s.MessageFinal(ctx, tx, a.org, m)
}

// rejectIncomplete ends a message with missing parts. It is not sent, because an incomplete text may have the
// opposite meaning. Receipts report it as undeliverable. They are omitted if a newer message went to the same
// recipient, because that is probably a repetition.
func (s *Service) rejectIncomplete(ctx context.Context, tx db.Querier, a Application, in smpp.Incoming) error {
	s.cfg.Log.Warn("smpp: an incomplete message was not sent", "application", a.ID, "parts", in.Parts, "missing", in.Missing)
	peer, err := s.recipient(ctx, a, in.To)
	if err != nil {
		return err
	}
	newer := false
	const q = `SELECT EXISTS (SELECT 1 FROM sms_submissions WHERE org_id = $1 AND application_id = $2 AND peer = $3 AND created_at >= $4)`
	if err := tx.QueryRow(ctx, q, a.org, a.ID, peer, db.At(s.cfg.Clock.Now().Add(-s.cfg.PartsAge-time.Minute))).Scan(&newer); err != nil ||
		newer {
		return err
	}
	in.Bind = ""
	if err := s.storeSubmission(ctx, tx, a, in, "", peer); err != nil {
		return err
	}
	for i, id := range in.MessageIDs {
		if in.Receipts[i].Wants(smpp.Undeliverable) {
			if err := s.enqueueReceipts(ctx, tx, a.org, a.ID, id); err != nil {
				return err
			}
		}
	}
	return nil
}

func getSubmission(ctx context.Context, q db.Querier, org, id string) (x submission, err error) {
	const text = `SELECT org_id, id, application_id, message_id, receipt, source, destination, created_at FROM sms_submissions
		WHERE org_id = $1 AND id = $2`
	var source, destination db.JSON[smpp.Address]
	var receipt int
	err = q.QueryRow(ctx, text, org, id).Scan(&x.org, &x.id, &x.application, &x.message, &receipt, &source, &destination, &x.at)
	x.receipt, x.source, x.destination = smpp.ReceiptRequest(receipt), source.V, destination.V
	return x, err
}

// Recover marks responses of earlier connections of a node as received, except those shortly before the node was
// last alive. The zero time does nothing. It uses the transaction in the context.
func (s *Service) Recover(ctx context.Context, node string, alive time.Time) error {
	if alive.IsZero() {
		return nil
	}
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		// tenant: all connections of a node end with it
		const q = `UPDATE sms_submissions SET bind = NULL, node = NULL WHERE bind IS NOT NULL AND node = $1 AND created_at < $2`
		_, err := tx.Exec(ctx, q, node, db.At(alive.Add(-responseGrace)))
		return err
	})
}

func apiError(err error) *op.Error {
	var e *op.Error
	errors.As(err, &e)
	return e
}
