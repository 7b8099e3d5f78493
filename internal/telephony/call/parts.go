package call

import (
	"context"
	"fmt"
	"io"
	"time"

	"soniq/internal/platform/db"
)

// A Part is one of the recordings of a call; a recording that was stopped and started again makes two.
type Part struct {
	ID        string
	Name      string // in the blob store
	StartedAt time.Time
	Available bool
}

// Parts lists the recordings of a call in the order in which they were made.
func (s *Service) Parts(ctx context.Context, org, callID string) ([]Part, error) {
	const q = `SELECT id, blob, started_at, status FROM recordings WHERE org_id = $1 AND call_id = $2 ORDER BY started_at, id`
	rows, err := s.DB.Read(ctx).Query(ctx, q, org, callID)
	if err != nil {
		return nil, fmt.Errorf("list recordings of call %s: %w", callID, err)
	}
	defer rows.Close()
	var all []Part
	for rows.Next() {
		var p Part
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

// OpenPart opens the audio of an available recording.
func (s *Service) OpenPart(ctx context.Context, p Part) (io.ReadSeekCloser, int64, error) {
	return s.Files.Open(ctx, p.Name)
}

// settled reports whether a call is over with all its recordings, and whether any of them is there. The caller holds the row of
// the call, so that its end and the last recording, written at the same time, do not both take the other for missing.
func settled(ctx context.Context, tx db.Querier, org, callID string) (done, any bool, err error) {
	const q = `SELECT (SELECT ended_at FROM calls WHERE org_id = $1 AND id = $2),
		count(CASE WHEN status IN ('recording', 'paused', 'processing') THEN 1 END), count(CASE WHEN status = 'available' THEN 1 END)
		FROM recordings WHERE org_id = $1 AND call_id = $2`
	var ended db.Time
	var open, available int
	err = tx.QueryRow(ctx, q, org, callID).Scan(&ended, &open, &available)
	return !ended.IsZero() && open == 0, available > 0, err
}

// holdRow keeps others from changing a call until the transaction ends.
func (s *Service) holdRow(ctx context.Context, tx db.Querier, org, callID string) error {
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

// understand has the words of a call's recordings understood, once all of them are there.
func (s *Service) understand(ctx context.Context, tx db.Querier, org, callID string, then OnRecorded) error {
	done, any, err := settled(ctx, tx, org, callID)
	if err != nil || !done || then == nil {
		return err
	}
	return then(ctx, tx, org, callID, any)
}
