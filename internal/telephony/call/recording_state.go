package call

import (
	"context"

	"soniq/internal/platform/db"
)

// The columns of a call's row about its recording.

func (s *Service) startRecording(ctx context.Context, tx db.Querier, a Answer) error {
	r := a.Recording
	begun := Change{Org: a.Org, ID: a.ID, At: a.At, Recordings: []RecordingChange{{ID: r.ID, New: r, Status: "recording"}}}
	if err := s.observers.writeRecordings(ctx, tx, begun); err != nil {
		return err
	}
	const mark = `UPDATE calls SET recording_state = 'recording', recording_id = $3, consent = $4 WHERE org_id = $1 AND id = $2`
	_, err := tx.Exec(ctx, mark, a.Org, a.ID, r.ID, r.Consent)
	return err
}

// SetRecordingReady stores whether the audio of the call's recording can be fetched. It does nothing if recordingID is
// not the call's latest recording; "" names any.
func (s *Service) SetRecordingReady(ctx context.Context, tx db.Querier, org, id, recordingID string, ready bool) error {
	if recordingID == "" {
		_, err := tx.Exec(ctx, `UPDATE calls SET recording_ready = $3 WHERE org_id = $1 AND id = $2 AND recording_ready <> $3`, org, id,
			ready)
		return err
	}
	_, err := tx.Exec(ctx, `UPDATE calls SET recording_ready = $4 WHERE org_id = $1 AND id = $2 AND recording_id = $3`, org, id,
		recordingID, ready)
	return err
}

// IsSandbox reports whether a call belongs to the sandbox, or returns db.ErrNone.
func IsSandbox(ctx context.Context, tx db.Querier, org, callID string) (sandbox bool, err error) {
	err = tx.QueryRow(ctx, `SELECT sandbox FROM calls WHERE org_id = $1 AND id = $2`, org, callID).Scan(&sandbox)
	return sandbox, err
}

// Lock locks the row of a call until the transaction ends. It does nothing on SQLite, which has one writer.
func (s *Service) Lock(ctx context.Context, tx db.Querier, org, callID string) error {
	hold := s.cfg.DB.ForUpdate()
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
