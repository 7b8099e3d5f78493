package voicemail

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/db"
)

// deleteBatch is how many messages one transaction deletes, so that other writes run in between.
const deleteBatch = 50

// DeleteBefore deletes messages of an organisation that were received before a time, with audio and transcript. It
// deletes at most deleteBatch and returns how many. Call it until it returns 0.
func (s *Service) DeleteBefore(ctx context.Context, org string, before time.Time) (n int64, err error) {
	const text = selectMessages + ` AND v.received_at < $2 AND v.status <> 'deleted' ORDER BY v.received_at, v.id LIMIT $3`
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		all, err := queryMessages(ctx, tx, text, org, db.At(before), deleteBatch)
		if err != nil {
			return fmt.Errorf("find old messages: %w", err)
		}
		for _, v := range all {
			if err := s.deleteMessage(ctx, tx, v); err != nil {
				return err
			}
		}
		n = int64(len(all))
		return nil
	})
	return n, err
}

// DeleteTranscriptsBefore deletes the transcripts of messages that were received before a time; the audio stays. It
// deletes at most 500 and returns how many.
func (s *Service) DeleteTranscriptsBefore(ctx context.Context, org string, before time.Time) (int64, error) {
	const text = `UPDATE voicemails SET text = NULL, ai_summary = NULL, transcript_id = NULL, transcript_status = 'skipped', updated_at = $3
		WHERE org_id = $1 AND id IN (SELECT id FROM voicemails WHERE org_id = $1 AND received_at < $2 AND text IS NOT NULL
			ORDER BY received_at LIMIT 500)`
	var n int64
	err := s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		r, err := tx.Exec(ctx, text, org, db.At(before), db.At(s.cfg.Clock.Now()))
		if err != nil {
			return fmt.Errorf("delete transcripts of old messages: %w", err)
		}
		n, err = r.RowsAffected()
		return err
	})
	return n, err
}

// queryMessages reads messages. The rows are closed when it returns.
func queryMessages(ctx context.Context, q db.Querier, text string, args ...any) ([]Voicemail, error) {
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list voicemail: %w", err)
	}
	defer rows.Close()
	var all []Voicemail
	for rows.Next() {
		v, err := scanMessage(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, rows.Err()
}
