package sms

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/db"
)

// sentPart is a part of a message that a carrier accepted, with the carrier's identifier of it.
type sentPart struct {
	id     string
	status string // of the last receipt; "" before the first
	fault  *Fault
}

// maxEarlyReceipts limits, per carrier, the stored receipts whose message is not known yet.
const maxEarlyReceipts = 1000

// sentIDs returns the carrier's identifiers of the parts that were sent already.
func sentIDs(ctx context.Context, q db.Querier, m Message) ([]string, error) {
	all, err := partsOf(ctx, q, m)
	ids := make([]string, 0, len(all))
	for _, p := range all {
		ids = append(ids, p.id)
	}
	return ids, err
}

func partsOf(ctx context.Context, q db.Querier, m Message) ([]sentPart, error) {
	const text = `SELECT remote_id, status, error FROM message_parts WHERE org_id = $1 AND message_id = $2 AND carrier = $3 ORDER BY part`
	rows, err := q.Query(ctx, text, m.org, m.ID, m.carrier)
	if err != nil {
		return nil, fmt.Errorf("read parts of message %s: %w", m.ID, err)
	}
	defer rows.Close()
	var all []sentPart
	for rows.Next() {
		var p sentPart
		var fault db.JSON[*Fault]
		if err := rows.Scan(&p.id, &p.status, &fault); err != nil {
			return nil, err
		}
		p.fault = fault.V
		all = append(all, p)
	}
	return all, rows.Err()
}

// saveParts stores the carrier's identifiers of the parts of a message. The status of a receipt that came earlier is
// kept. An identifier that the carrier used before for another message now belongs to this one.
func (s *Service) saveParts(ctx context.Context, tx db.Querier, m Message, ids []string) error {
	for i, id := range ids {
		if id == "" {
			continue
		}
		const q = `INSERT INTO message_parts (org_id, carrier, remote_id, message_id, part, status, error, created_at)
			VALUES ($1, $2, $3, $4, $5, '', NULL, $6)
			ON CONFLICT (org_id, carrier, remote_id) DO UPDATE SET message_id = excluded.message_id, part = excluded.part,
				created_at = excluded.created_at,
				status = CASE WHEN message_parts.message_id IS NULL OR message_parts.message_id = excluded.message_id
					THEN message_parts.status ELSE '' END,
				error = CASE WHEN message_parts.message_id IS NULL OR message_parts.message_id = excluded.message_id
					THEN message_parts.error END`
		if _, err := tx.Exec(ctx, q, m.org, m.carrier, id, m.ID, i+1, db.At(s.cfg.Clock.Now())); err != nil {
			return fmt.Errorf("keep parts of message %s: %w", m.ID, err)
		}
	}
	return nil
}

// updateFromParts updates a sent message from the status of its parts. It is delivered when all parts are, and
// undelivered when one is.
func (s *Service) updateFromParts(ctx context.Context, tx db.Querier, m Message) error {
	all, err := partsOf(ctx, tx, m)
	if err != nil || m.Status != Sent || len(all) == 0 {
		return err
	}
	delivered := 0
	for _, p := range all {
		switch p.status {
		case Undelivered, Failed:
			return s.applyResult(ctx, tx, &m, Sent, Result{Status: Undelivered, Fault: p.fault})
		case Delivered:
			delivered++
		}
	}
	if delivered < len(all) {
		return nil
	}
	return s.applyResult(ctx, tx, &m, Sent, Result{Status: Delivered})
}

// isFinal reports whether the status of a receipt is final.
func isFinal(status string) bool {
	return status == Delivered || status == Undelivered || status == Failed
}

// Receipt stores a delivery receipt for a message or a part of it. id is the carrier's identifier, or our reference
// for carriers without identifiers. An unknown or repeated receipt has no effect. If the receipt arrives before the
// identifiers of the message are stored, it is kept for that message.
func (s *Service) Receipt(ctx context.Context, org, carrier, id string, r Result) error {
	if !isFinal(r.Status) {
		return nil
	}
	if r.Status == Failed {
		r.Status = Undelivered
	}
	return s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		for range 2 { // if the identifiers are stored concurrently, the second look-up finds them
			message, err := messageOfPart(ctx, tx, org, carrier, id)
			switch {
			case err == nil:
				return s.applyReceipt(ctx, tx, org, carrier, id, message, r)
			case !db.IsNone(err):
				return fmt.Errorf("find part of receipt: %w", err)
			}
			if kept, err := s.handleUnmatched(ctx, tx, org, carrier, id, r); err != nil || kept {
				return err
			}
		}
		return nil
	})
}

// messageOfPart returns the message of a part; "" if it is not known yet.
func messageOfPart(ctx context.Context, tx db.Querier, org, carrier, id string) (string, error) {
	var message db.Null
	const q = `SELECT message_id FROM message_parts WHERE org_id = $1 AND carrier = $2 AND remote_id = $3`
	err := tx.QueryRow(ctx, q, org, carrier, id).Scan(&message)
	return string(message), err
}

// applyReceipt stores the first final receipt of a part. It locks the message first. If receipts for several parts
// arrive at the same time, the last transaction therefore sees all others.
func (s *Service) applyReceipt(ctx context.Context, tx db.Querier, org, carrier, id, message string, r Result) error {
	if message == "" {
		return nil
	}
	const take = `UPDATE messages SET status = status WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, take, org, message); err != nil {
		return fmt.Errorf("take message of receipt: %w", err)
	}
	const word = `UPDATE message_parts SET status = $4, error = $5 WHERE org_id = $1 AND carrier = $2 AND remote_id = $3 AND status = ''`
	changed, err := tx.Exec(ctx, word, org, carrier, id, r.Status, faultColumn(r.Fault))
	if err != nil {
		return fmt.Errorf("keep receipt: %w", err)
	}
	if n, err := changed.RowsAffected(); err != nil || n == 0 {
		return err
	}
	m, err := get(ctx, tx, org, message)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("find message of receipt: %w", err)
	}
	return s.updateFromParts(ctx, tx, m)
}

// handleUnmatched handles a receipt for an unknown part. It may be for a message that is known by our reference, or
// for one whose identifiers are not stored yet. It reports whether the receipt was used or kept.
func (s *Service) handleUnmatched(ctx context.Context, tx db.Querier, org, carrier, id string, r Result) (bool, error) {
	const q = `SELECT ` + columns + ` FROM messages WHERE org_id = $1 AND carrier = $2 AND reference = $3`
	m, err := scan(tx.QueryRow(ctx, q, org, carrier, id).Scan)
	switch {
	case err == nil && m.Status != Sent:
		return true, nil
	case err == nil:
		return true, s.applyResult(ctx, tx, &m, Sent, r)
	case !db.IsNone(err):
		return false, fmt.Errorf("find message of receipt: %w", err)
	}
	const early = `INSERT INTO message_parts (org_id, carrier, remote_id, message_id, part, status, error, created_at)
		SELECT $1, $2, $3, NULL, 0, $4, $5, $6 FROM orgs WHERE id = $1
			AND EXISTS (SELECT 1 FROM messages WHERE org_id = $1 AND carrier = $2 AND status = 'sending'
			AND status IN ('queued', 'sending'))
			AND (SELECT COUNT(*) FROM message_parts WHERE org_id = $1 AND carrier = $2 AND message_id IS NULL) < $7
		ON CONFLICT (org_id, carrier, remote_id) DO NOTHING`
	kept, err := tx.Exec(ctx, early, org, carrier, id, r.Status, faultColumn(r.Fault), db.At(s.cfg.Clock.Now()), maxEarlyReceipts)
	if err != nil {
		return false, fmt.Errorf("keep early receipt: %w", err)
	}
	n, err := kept.RowsAffected()
	return n == 1, err
}

// Retention of the carriers' identifiers, and of receipts without a message.
const (
	partTTL         = 30 * 24 * time.Hour
	earlyReceiptTTL = time.Hour
)

// Sweep deletes old identifiers of carriers, and receipts for which no message appeared. It returns their number.
func (s *Service) Sweep(ctx context.Context) (gone int64, err error) {
	now := s.cfg.Clock.Now()
	err = s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		gone = 0
		// tenant: a sweep over all organisations
		const q = `DELETE FROM message_parts WHERE message_id IS NULL AND created_at < $1`
		if err := db.Affected(ctx, tx, &gone, q, db.At(now.Add(-earlyReceiptTTL))); err != nil {
			return fmt.Errorf("forget early receipts: %w", err)
		}
		// tenant: a sweep over all organisations
		const old = `DELETE FROM message_parts WHERE created_at < $1`
		if err := db.Affected(ctx, tx, &gone, old, db.At(now.Add(-partTTL))); err != nil {
			return fmt.Errorf("forget parts: %w", err)
		}
		return nil
	})
	return gone, err
}
