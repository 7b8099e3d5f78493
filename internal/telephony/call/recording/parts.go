package recording

import (
	"context"
	"fmt"
	"io"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/telephony/call"
)

// Part is one of the recordings of a call. A recording that was stopped and started again makes two parts.
type Part struct {
	ID        string
	Name      string // in the blob store
	StartedAt time.Time
	Available bool
	Node      string // the server that has its file
	Redaction string // state of the removal of numbers: empty, pending, done or withheld
}

// Parts lists the recordings of a call in the order of their start.
func (s *Service) Parts(ctx context.Context, org, callID string) ([]Part, error) {
	const q = `SELECT id, blob, started_at, status, node, redaction FROM recordings WHERE org_id = $1 AND call_id = $2 ORDER BY started_at, id`
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, q, org, callID)
	if err != nil {
		return nil, fmt.Errorf("list recordings of call %s: %w", callID, err)
	}
	defer rows.Close()
	var all []Part
	for rows.Next() {
		var p Part
		var started db.Time
		var status string
		if err := rows.Scan(&p.ID, &p.Name, &started, &status, &p.Node, &p.Redaction); err != nil {
			return nil, err
		}
		p.StartedAt = started.Time
		p.Available = status == "available" || status == "processing" && p.Pending() ||
			status == "failed" && p.Redaction == redactionWithheld
		all = append(all, p)
	}
	return all, rows.Err()
}

// Pending reports whether the recording waits for the removal of numbers.
func (p Part) Pending() bool { return p.Redaction == redactionPending }

// Open opens the audio of an available recording.
func (s *Service) Open(ctx context.Context, p Part) (io.ReadSeekCloser, int64, error) {
	return s.cfg.Files.Open(ctx, p.Name)
}

// recordingsDone reports whether a call has ended and none of its recordings is in progress, and whether any
// recording is available. The transaction must hold the lock on the call's row (call.Service.Lock). Otherwise the end and the
// last recording, written concurrently, could each see the other as missing.
func recordingsDone(ctx context.Context, tx db.Querier, org, callID string) (done, any bool, err error) {
	const q = `SELECT (SELECT ended_at FROM calls WHERE org_id = $1 AND id = $2),
		count(CASE WHEN status IN ('recording', 'paused', 'processing') AND redaction = '' THEN 1 END),
		count(CASE WHEN status = 'available' OR redaction = 'pending' THEN 1 END)
		FROM recordings WHERE org_id = $1 AND call_id = $2`
	var ended db.Time
	var open, available int
	err = tx.QueryRow(ctx, q, org, callID).Scan(&ended, &open, &available)
	return !ended.IsZero() && open == 0, available > 0, err
}

// runOnRecorded calls then once the call has ended and all its recordings have finished.
func (s *Service) runOnRecorded(ctx context.Context, tx db.Querier, org, callID string, then call.OnRecorded) error {
	done, any, err := recordingsDone(ctx, tx, org, callID)
	if err != nil || !done || then == nil {
		return err
	}
	return then(ctx, tx, org, callID, any)
}

// FinishRecordings notifies the observers if all recordings of an ended call have finished. It implements
// call.RecordingStore.
func (s *Service) FinishRecordings(ctx context.Context, tx db.Querier, org, callID string) error {
	return s.runOnRecorded(ctx, tx, org, callID, s.recordingsReady)
}

// Path returns the path of a recording's file.
func (s *Service) Path(p Part) (string, error) { return s.cfg.Files.Path(p.Name) }
