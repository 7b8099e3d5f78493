package call

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// endedWithNumber selects ended calls with a number on either side and without a recording under legal hold.
const endedWithNumber = `org_id = $1 AND (from_number = $2 OR to_number = $2) AND ended_at IS NOT NULL AND NOT EXISTS
	(SELECT 1 FROM recordings r WHERE r.org_id = calls.org_id AND r.call_id = calls.id AND r.legal_hold = TRUE AND r.status <> 'deleted')`

// CountEndedWith counts the calls with a number that can be erased.
func (s *Service) CountEndedWith(ctx context.Context, q db.Querier, org, phone string) (n int, err error) {
	err = q.QueryRow(ctx, `SELECT count(*) FROM calls WHERE `+endedWithNumber, org, phone).Scan(&n)
	return n, err
}

// EndedCall identifies a call that has ended.
type EndedCall struct {
	ID        string
	StartedAt db.Time
}

// EndedCallsWith lists the calls with a number that can be erased, at most limit.
func (s *Service) EndedCallsWith(ctx context.Context, q db.Querier, org, phone string, limit int) (all []EndedCall, err error) {
	rows, err := q.Query(ctx, `SELECT id, started_at FROM calls WHERE `+endedWithNumber+` ORDER BY id LIMIT $3`, org, phone, limit)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var c EndedCall
		if err := rows.Scan(&c.ID, &c.StartedAt); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

// HasActiveCallWith reports whether a call with a number is in progress.
func (s *Service) HasActiveCallWith(ctx context.Context, org, phone string) (live bool, err error) {
	const q = `SELECT EXISTS (SELECT 1 FROM calls WHERE org_id = $1 AND (from_number = $2 OR to_number = $2) AND ended_at IS NULL)`
	err = s.DB.Read(ctx).QueryRow(ctx, q, org, phone).Scan(&live)
	return live, err
}

// Erase removes the personal data of a number from an ended call in the transaction tx. Recordings, notes, timeline
// and SIP messages are deleted, and the number in the record becomes anonymous. The existence, time and duration of
// the call remain.
func (s *Service) Erase(ctx context.Context, tx db.Querier, org, callID, phone string) error {
	if err := s.eraseRecordings(ctx, tx, org, callID); err != nil {
		return err
	}
	if err := s.eraseTimeline(ctx, tx, org, callID); err != nil {
		return fmt.Errorf("erase timeline of call %s: %w", callID, err)
	}
	if _, err := tx.Exec(ctx, `DELETE FROM notes WHERE org_id = $1 AND call_id = $2`, org, callID); err != nil {
		return fmt.Errorf("erase notes of call %s: %w", callID, err)
	}
	const legs = `UPDATE legs SET number = 'anonymous' WHERE org_id = $1 AND call_id = $2 AND number = $3`
	if _, err := tx.Exec(ctx, legs, org, callID, phone); err != nil {
		return fmt.Errorf("erase number from legs of %s: %w", callID, err)
	}
	const record = `UPDATE calls SET from_number = CASE WHEN from_number = $3 THEN 'anonymous' ELSE from_number END,
			to_number = CASE WHEN to_number = $3 THEN 'anonymous' ELSE to_number END,
			from_name = NULL, contact_id = NULL, contact = NULL, transfer = NULL, transferred_to = NULL, disposition = NULL, notes_count = 0, metadata = '{}',
			client_reference = NULL, transcript_id = NULL, ai_summary = NULL, sentiment = NULL, revision = revision + 1
		WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, record, org, callID, phone); err != nil {
		return fmt.Errorf("erase number from call %s: %w", callID, err)
	}
	return nil
}

func (s *Service) eraseRecordings(ctx context.Context, tx db.Querier, org, callID string) error {
	const q = `SELECT id, blob FROM recordings WHERE org_id = $1 AND call_id = $2 AND status <> 'deleted'`
	rows, err := tx.Query(ctx, q, org, callID)
	if err != nil {
		return err
	}
	var all []Recording
	for rows.Next() {
		r := Recording{CallID: callID}
		if err := rows.Scan(&r.ID, &r.blob); err != nil {
			rows.Close()
			return err
		}
		all = append(all, r)
	}
	if err := rows.Close(); err != nil {
		return err
	}
	for _, r := range all {
		if err := s.tombstone(ctx, tx, org, r); err != nil {
			return fmt.Errorf("erase recording %s: %w", r.ID, err)
		}
	}
	return nil
}

// CountCallbacks counts the callbacks to a number.
func (s *Service) CountCallbacks(ctx context.Context, q db.Querier, org, phone string) (n int, err error) {
	err = q.QueryRow(ctx, `SELECT count(*) FROM callbacks WHERE org_id = $1 AND to_number = $2`, org, phone).Scan(&n)
	return n, err
}

// EraseCallbacks deletes the callbacks to a number, including scheduled ones.
func (s *Service) EraseCallbacks(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	return rowCount(tx.Exec(ctx, `DELETE FROM callbacks WHERE org_id = $1 AND to_number = $2`, org, phone))
}

func rowCount(r interface{ RowsAffected() (int64, error) }, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	n, err := r.RowsAffected()
	return int(n), err
}
