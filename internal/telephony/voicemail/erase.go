package voicemail

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/personal"
)

// EraseCall deletes the messages that were left in a call, including the caller's number, contact and transcript.
func (s *Service) EraseCall(ctx context.Context, tx db.Querier, org, call string) error {
	const text = `UPDATE voicemails SET status = 'deleted', from_number = 'anonymous', contact = NULL, text = NULL, ai_summary = NULL,
		updated_at = $3
		WHERE org_id = $1 AND call_id = $2 RETURNING blob, mailbox_type, mailbox_id, assignee_id`
	rows, err := tx.Query(ctx, text, org, call, db.At(s.cfg.Clock.Now()))
	if err != nil {
		return fmt.Errorf("erase messages: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		v := Voicemail{OrgID: org}
		if err := rows.Scan(&v.blob, &v.Mailbox.Type, &v.Mailbox.ID, &v.AssigneeID); err != nil {
			return err
		}
		s.publishChanged(tx, v, nil)
		db.OnCommit(tx, func() { _ = s.cfg.Files.Delete(context.WithoutCancel(ctx), v.blob) })
	}
	return rows.Err()
}

// ExportCall exports the messages that were left in a call, with their sound.
func (s *Service) ExportCall(ctx context.Context, q db.Querier, org, call string, w personal.Writer) error {
	const text = `SELECT *, TRUE AS has_sound FROM voicemails WHERE org_id = $1 AND call_id = $2 AND status <> 'deleted' ORDER BY id`
	return personal.RowsWithSound(ctx, q, w, "voicemails", text, org, call)
}
