package recording

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/personal"
	"soniq/internal/telephony/call"
)

// WriteRecordings inserts the recordings that begin, and updates the state of those in progress. It implements
// call.RecordingStore.
func (s *Service) WriteRecordings(ctx context.Context, tx db.Querier, c call.Change) error {
	for _, r := range c.Recordings {
		if r.New != nil {
			if err := s.insertRecording(ctx, tx, c.Org, c.ID, *r.New, c.At); err != nil {
				return err
			}
			if r.Status == "recording" && len(r.Pauses) == 0 {
				continue // the insert has stored this state
			}
		}
		if err := updateRecording(ctx, tx, c, r); err != nil {
			return err
		}
	}
	return nil
}

func updateRecording(ctx context.Context, tx db.Querier, c call.Change, r call.RecordingChange) error {
	var ended db.Time
	if r.Status == "processing" {
		ended = db.At(c.At)
	}
	pauses := r.Pauses
	if pauses == nil {
		pauses = []call.Pause{}
	}
	const q = `UPDATE recordings SET status = $3, pauses = $4, ended_at = $5
		WHERE org_id = $1 AND id = $2 AND status IN ('recording', 'paused')`
	if _, err := tx.Exec(ctx, q, c.Org, r.ID, r.Status, db.AsJSON(pauses), ended); err != nil {
		return fmt.Errorf("write recording %s: %w", r.ID, err)
	}
	return nil
}

// EraseRecordings deletes the recordings of a call, even under legal hold. It implements call.RecordingStore.
func (s *Service) EraseRecordings(ctx context.Context, tx db.Querier, org, callID string) error {
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

// ExportCall exports the recordings of a call, with the sound of those that may be heard.
func (s *Service) ExportCall(ctx context.Context, q db.Querier, org, callID string, w personal.Writer) error {
	const text = `SELECT *, status = 'available' AS has_sound FROM recordings WHERE org_id = $1 AND call_id = $2 AND status <> 'deleted' ORDER BY id`
	return personal.RowsWithSound(ctx, q, w, "recordings", text, org, callID)
}
