package voicemail

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/visibility"
)

// insertMessage inserts a message. It returns false if it was inserted before.
func insertMessage(ctx context.Context, tx db.Querier, v Voicemail, m Message) (bool, error) {
	const text = `INSERT INTO voicemails (org_id, id, call_id, mailbox_type, mailbox_id, from_number, contact, received_at, duration_ms,
			size_bytes, sha256, blob, status, updated_at, transcript_status)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15) ON CONFLICT (org_id, id) DO NOTHING`
	var contact any
	if v.Contact != nil {
		contact = db.AsJSON(v.Contact)
	}
	r, err := tx.Exec(ctx, text, v.OrgID, v.ID, v.CallID, v.Mailbox.Type, v.Mailbox.ID, v.FromNumber, contact, v.ReceivedAt,
		m.Duration.Milliseconds(), m.Size, m.SHA256, v.blob, v.Status, v.UpdatedAt, db.Null(m.TranscriptStatus))
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

func updateMessage(ctx context.Context, tx db.Querier, v Voicemail) error {
	const text = `UPDATE voicemails SET status = $3, assignee_id = $4, read_at = $5, updated_at = $6 WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, text, v.OrgID, v.ID, v.Status, v.AssigneeID, v.ReadAt, v.UpdatedAt); err != nil {
		return fmt.Errorf("change message: %w", err)
	}
	if v.AssigneeID == nil {
		return nil
	}
	const assigned = `INSERT INTO voicemail_assignees (org_id, user_id) VALUES ($1, $2) ON CONFLICT (org_id, user_id) DO NOTHING`
	if _, err := tx.Exec(ctx, assigned, v.OrgID, v.AssigneeID); err != nil {
		return fmt.Errorf("note the assignee of a message: %w", err)
	}
	return nil
}

// markDeleted sets a message to deleted and removes its text. The row stays.
func markDeleted(ctx context.Context, tx db.Querier, v Voicemail) error {
	const text = `UPDATE voicemails SET status = 'deleted', text = NULL, ai_summary = NULL, updated_at = $3 WHERE org_id = $1 AND id = $2`
	_, err := tx.Exec(ctx, text, v.OrgID, v.ID, v.UpdatedAt)
	return err
}

const selectMessages = `SELECT v.org_id, v.id, v.call_id, v.mailbox_type, v.mailbox_id,
	COALESCE(k.name, f.name, TRIM(u.first_name || ' ' || u.last_name), ''), v.from_number, v.contact, v.received_at, v.duration_ms,
	v.status, v.transcript_id, v.transcript_status, v.text, v.ai_summary, v.urgency, v.assignee_id, v.read_at, v.updated_at, v.blob
	FROM voicemails v LEFT JOIN users u ON u.org_id = v.org_id AND u.id = v.mailbox_id
	LEFT JOIN queues k ON k.org_id = v.org_id AND k.id = v.mailbox_id LEFT JOIN flows f ON f.org_id = v.org_id AND f.id = v.mailbox_id
	WHERE v.org_id = $1`

func scanMessage(scan func(...any) error) (Voicemail, error) {
	var v Voicemail
	var contact db.JSON[*event.Contact]
	var ms int64
	var transcript, status, text *string
	err := scan(&v.OrgID, &v.ID, &v.CallID, &v.Mailbox.Type, &v.Mailbox.ID, &v.Mailbox.Name, &v.FromNumber, &contact, &v.ReceivedAt, &ms,
		&v.Status, &transcript, &status, &text, &v.AISummary, &v.Urgency, &v.AssigneeID, &v.ReadAt, &v.UpdatedAt, &v.blob)
	v.Contact = contact.V
	v.DurationSeconds = max(int((time.Duration(ms)*time.Millisecond).Round(time.Second)/time.Second), 1)
	if status != nil && v.Status != Deleted {
		v.Transcript = &Transcript{ID: transcript, Status: *status, Text: text}
	}
	return v, err
}

func getMessage(ctx context.Context, q db.Querier, org, id string) (Voicemail, error) {
	return scanMessage(q.QueryRow(ctx, selectMessages+` AND v.id = $2`, org, id).Scan)
}

// query returns the statement of a list without its page.
func (in *ListIn) query(view visibility.View, org, phone string) (*db.Filter, error) {
	since, until, err := in.Times()
	if err != nil {
		return nil, err
	}
	f := view.Narrow(db.Where(selectMessages, org), "v.call_id").Equal("v.mailbox_type", in.MailboxType).Equal("v.mailbox_id",
		in.MailboxID).Equal("v.from_number", phone).
		In("v.status", in.Status).Between("v.received_at", since, until)
	if len(in.Status) == 0 {
		f.And("v.status <> ?", Deleted)
	}
	return f, nil
}

func listMessages(ctx context.Context, q db.Querier, f *db.Filter, after db.Time, id string, descending bool, limit int) ([]Voicemail,
	error) {
	than, direction := ">", "ASC"
	if descending {
		than, direction = "<", "DESC"
	}
	if id != "" {
		f.And("(v.received_at, v.id) "+than+" (?, ?)", after, id)
	}
	text, args := f.SQL()
	return queryMessages(ctx, q, text+fmt.Sprintf(" ORDER BY v.received_at %s, v.id %s LIMIT %d", direction, direction, limit), args...)
}
