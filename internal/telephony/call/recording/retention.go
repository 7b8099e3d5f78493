package recording

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/call"
)

// Retention of recordings: legal hold, retention_until, deletion by request and by the sweep, removal of the audio
// file.

const removeKind = "recording.remove"

// removeJobArgs holds the arguments of the job that removes the audio of a recording.
type removeJobArgs struct {
	Name string `json:"name"`
}

func (s *Service) retentionOperations() []op.Operation {
	return []op.Operation{
		op.New("recordings.update", "PATCH /recordings/{id}", access.Both(access.CallsWrite, access.UsersAdmin),
			"Change how long a recording is kept", s.UpdateRecording).Fails("gone"),
		op.Delete("recordings.delete", "DELETE /recordings/{id}", access.CallsWrite, "Delete a recording", s.DeleteRecording).Fails("gone"),
	}
}

// KeepIn holds the input of UpdateRecording.
type KeepIn struct {
	ID   string `path:"id" maxLength:"40"`
	Body KeepPatch
}

// KeepPatch is a merge patch (RFC 7396) of a recording's retention.
type KeepPatch struct {
	LegalHold      op.Change[bool]    `json:"legal_hold,omitzero" doc:"true: nobody and nothing deletes it"`
	RetentionUntil op.Change[db.Time] `json:"retention_until,omitzero" doc:"When it is deleted by itself; null: never"`
}

// UpdateRecording sets or lifts the legal hold of a recording, and changes when it is deleted.
func (s *Service) UpdateRecording(ctx context.Context, in *KeepIn) (*op.Out[Recording], error) {
	org := access.Org(ctx)
	var r Recording
	err := s.cfg.DB.Tx(ctx, func(tx db.Querier) (err error) {
		if r, err = findRecording(ctx, tx, org, in.ID); err != nil {
			return err
		}
		if r.Status == "deleted" {
			return op.Fail("gone", "the recording was deleted")
		}
		if err = s.applyPatch(&r, in.Body); err != nil {
			return err
		}
		const q = `UPDATE recordings SET legal_hold = $3, retention_until = $4 WHERE org_id = $1 AND id = $2`
		_, err = tx.Exec(ctx, q, org, r.ID, r.LegalHold, timeOrZero(r.RetentionUntil))
		return err
	})
	if err != nil {
		return nil, err
	}
	s.addSignedURL(ctx, &r)
	return op.OK(r)
}

func (s *Service) applyPatch(r *Recording, p KeepPatch) error {
	var wrong []op.Violation
	if p.LegalHold.Null {
		wrong = append(wrong, op.Field("legal_hold", "required", "must be true or false"))
	}
	if p.RetentionUntil.Set && !p.RetentionUntil.Null && !p.RetentionUntil.V.After(s.cfg.Clock.Now()) {
		wrong = append(wrong, op.Field("retention_until", "out_of_range", "must lie in the future; DELETE removes a recording now"))
	}
	if len(wrong) > 0 {
		return op.Invalid(wrong...)
	}
	p.LegalHold.Apply(&r.LegalHold)
	if p.RetentionUntil.Set {
		r.RetentionUntil = p.RetentionUntil.V.Ptr()
	}
	return nil
}

func timeOrZero(t *db.Time) db.Time {
	if t == nil {
		return db.Time{}
	}
	return *t
}

func findRecording(ctx context.Context, q db.Querier, org, id string) (Recording, error) {
	r, err := getRecording(ctx, q, org, id)
	if db.IsNone(err) {
		return r, op.NotFound("recording")
	}
	return r, err
}

// DeleteRecording removes the audio of a finished recording. Its row stays with the status deleted. Deleting twice is
// not an error. A recording under legal hold is refused.
func (s *Service) DeleteRecording(ctx context.Context, in *GetRecordingIn) error {
	org := access.Org(ctx)
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		r, err := findRecording(ctx, tx, org, in.ID)
		switch {
		case err != nil:
			return err
		case r.Status == "deleted":
			return nil
		case r.LegalHold:
			return op.State("the recording is under legal hold: lift it first", r.Status, "update")
		case !slices.Contains([]string{"available", "failed"}, r.Status):
			return notReady(r)
		}
		return s.tombstone(ctx, tx, org, r)
	})
}

// tombstone marks a recording as deleted and enqueues the removal of its audio. From then on its URL is no longer in
// the call.
func (s *Service) tombstone(ctx context.Context, tx db.Querier, org string, r Recording) error {
	const mark = `UPDATE recordings SET status = 'deleted' WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, mark, org, r.ID); err != nil {
		return err
	}
	if err := s.cfg.Calls.SetRecordingReady(ctx, tx, org, r.CallID, r.ID, false); err != nil {
		return err
	}
	for _, o := range s.observers {
		if err := o.RecordingDeleted(ctx, tx, org, r.CallID, r.ID); err != nil {
			return err
		}
	}
	return s.cfg.Jobs.Enqueue(ctx, tx, job.Spec{Org: org, Queue: call.JobQueue, Kind: removeKind, Args: removeJobArgs{r.blob},
		UniqueKey: removeKind + " " + r.ID})
}

// removeAudio removes the file of a deleted recording, finished or not. A missing file is not an error.
func (s *Service) removeAudio(ctx context.Context, j job.Job) error {
	var ref removeJobArgs
	if err := j.Bind(&ref); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	return s.cfg.Files.Delete(ctx, ref.Name)
}

// sweepBatch is how many recordings one transaction deletes.
const sweepBatch = 200

// SweepRecordings deletes recordings past their retention, except those under legal hold, and returns how many.
func (s *Service) SweepRecordings(ctx context.Context, now time.Time) (n int, err error) {
	for {
		due, err := s.expiredRecordings(ctx, now)
		if err != nil || len(due) == 0 {
			return n, err
		}
		if err := s.deleteExpired(ctx, due); err != nil {
			return n, fmt.Errorf("delete recordings past their retention: %w", err)
		}
		n += len(due)
	}
}

// ownedRecording is a recording with the id of its organisation.
type ownedRecording struct {
	org string
	Recording
}

func (s *Service) expiredRecordings(ctx context.Context, now time.Time) ([]ownedRecording, error) {
	// tenant: one sweep applies the retention of all organisations
	const q = `SELECT org_id, id, call_id, blob FROM recordings
		WHERE retention_until < $1 AND retention_until IS NOT NULL AND legal_hold = FALSE AND status IN ('available', 'failed')
		ORDER BY retention_until LIMIT $2`
	rows, err := s.cfg.DB.Read(ctx).Query(ctx, q, db.At(now), sweepBatch)
	if err != nil {
		return nil, fmt.Errorf("find recordings past their retention: %w", err)
	}
	defer rows.Close()
	var due []ownedRecording
	for rows.Next() {
		var r ownedRecording
		if err := rows.Scan(&r.org, &r.ID, &r.CallID, &r.blob); err != nil {
			return nil, err
		}
		due = append(due, r)
	}
	return due, rows.Err()
}

// deleteExpired deletes recordings. It reads each again in the transaction, and skips it if a legal hold was set
// meanwhile.
func (s *Service) deleteExpired(ctx context.Context, due []ownedRecording) error {
	return s.cfg.DB.Tx(ctx, func(tx db.Querier) error {
		for _, r := range due {
			now, err := getRecording(ctx, tx, r.org, r.ID)
			if err != nil {
				return err
			}
			if now.LegalHold || now.Status == "deleted" {
				continue
			}
			if err := s.tombstone(ctx, tx, r.org, now); err != nil {
				return err
			}
		}
		return nil
	})
}
