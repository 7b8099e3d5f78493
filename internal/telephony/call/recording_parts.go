package call

import (
	"context"
	"fmt"
	"io"
	"time"

	"soniq/internal/platform/db"
)

// RecordingPart is one of the recordings of a call. A recording that was stopped and started again makes two parts.
type RecordingPart struct {
	ID        string
	Name      string // in the blob store
	StartedAt time.Time
	Available bool
}

// RecordingParts lists the recordings of a call in the order of their start.
func (s *Service) RecordingParts(ctx context.Context, org, callID string) ([]RecordingPart, error) {
	const q = `SELECT id, blob, started_at, status FROM recordings WHERE org_id = $1 AND call_id = $2 ORDER BY started_at, id`
	rows, err := s.DB.Read(ctx).Query(ctx, q, org, callID)
	if err != nil {
		return nil, fmt.Errorf("list recordings of call %s: %w", callID, err)
	}
	defer rows.Close()
	var all []RecordingPart
	for rows.Next() {
		var p RecordingPart
		var started db.Time
		var status string
		if err := rows.Scan(&p.ID, &p.Name, &started, &status); err != nil {
			return nil, err
		}
		p.StartedAt, p.Available = started.Time, status == "available"
		all = append(all, p)
	}
	return all, rows.Err()
}

// OpenRecordingPart opens the audio of an available recording.
func (s *Service) OpenRecordingPart(ctx context.Context, p RecordingPart) (io.ReadSeekCloser, int64, error) {
	return s.Files.Open(ctx, p.Name)
}

// recordingsDone reports whether a call has ended and none of its recordings is in progress, and whether any
// recording is available. The transaction must hold the lock on the call's row (lockCall). Otherwise the end and the
// last recording, written concurrently, could each see the other as missing.
func recordingsDone(ctx context.Context, tx db.Querier, org, callID string) (done, any bool, err error) {
	const q = `SELECT (SELECT ended_at FROM calls WHERE org_id = $1 AND id = $2),
		count(CASE WHEN status IN ('recording', 'paused', 'processing') THEN 1 END), count(CASE WHEN status = 'available' THEN 1 END)
		FROM recordings WHERE org_id = $1 AND call_id = $2`
	var ended db.Time
	var open, available int
	err = tx.QueryRow(ctx, q, org, callID).Scan(&ended, &open, &available)
	return !ended.IsZero() && open == 0, available > 0, err
}

// lockCall locks the row of a call until the transaction ends. It does nothing on SQLite, which has one writer.
func (s *Service) lockCall(ctx context.Context, tx db.Querier, org, callID string) error {
	hold := s.DB.ForUpdate()
	if hold == "" {
		return nil
	}
	var id string
	err := tx.QueryRow(ctx, `SELECT id FROM calls WHERE org_id = $1 AND id = $2`+hold, org, callID).Scan(&id)
	if db.IsNone(err) {
		return nil
	}
	return err
}

// runOnRecorded calls then once the call has ended and all its recordings have finished.
func (s *Service) runOnRecorded(ctx context.Context, tx db.Querier, org, callID string, then OnRecorded) error {
	done, any, err := recordingsDone(ctx, tx, org, callID)
	if err != nil || !done || then == nil {
		return err
	}
	return then(ctx, tx, org, callID, any)
}
