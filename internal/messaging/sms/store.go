package sms

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

const columns = `org_id, id, conversation_id, direction, status, from_number, to_number, body, segments, encoding, media, user_id,
	source, error, scheduled_at, created_at, sent_at, delivered_at, metadata, sandbox, carrier, reference, automatic, origin,
	sending_since`

func insert(ctx context.Context, tx db.Querier, m Message) error {
	const q = `INSERT INTO messages (` + columns + `)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25)`
	_, err := tx.Exec(ctx, q, m.org, m.ID, m.ConversationID, m.Direction, m.Status, m.FromNumber, m.ToNumber, m.Body, m.Segments,
		m.Encoding, db.AsJSON(m.Media), m.UserID, m.Source, faultColumn(m.Error), m.ScheduledAt, m.CreatedAt, m.SentAt, m.DeliveredAt,
		db.AsJSON(m.Metadata), m.Sandbox, m.carrier, db.Null(m.reference), m.automatic, db.Null(m.origin), m.sendingSince)
	return err
}

// faultColumn returns a fault as it is stored; NULL if there is none.
func faultColumn(f *Fault) any {
	if f == nil {
		return nil
	}
	return db.AsJSON(*f)
}

func scan(scan func(...any) error) (Message, error) {
	var m Message
	var media db.JSON[[]Media]
	var fault db.JSON[*Fault]
	var metadata db.JSON[map[string]string]
	var reference, origin db.Null
	err := scan(&m.org, &m.ID, &m.ConversationID, &m.Direction, &m.Status, &m.FromNumber, &m.ToNumber, &m.Body, &m.Segments,
		&m.Encoding, &media, &m.UserID, &m.Source, &fault, &m.ScheduledAt, &m.CreatedAt, &m.SentAt, &m.DeliveredAt, &metadata,
		&m.Sandbox, &m.carrier, &reference, &m.automatic, &origin, &m.sendingSince)
	m.origin = string(origin)
	m.Media, m.Error, m.Metadata, m.reference = append([]Media{}, media.V...), fault.V, metadata.V, string(reference)
	if m.Metadata == nil {
		m.Metadata = map[string]string{}
	}
	return m, err
}

func get(ctx context.Context, q db.Querier, org, id string) (Message, error) {
	return scan(q.QueryRow(ctx, `SELECT `+columns+` FROM messages WHERE org_id = $1 AND id = $2`, org, id).Scan)
}

// updateStatus stores the new state of a message if it is still in the state from. It reports whether it was.
func updateStatus(ctx context.Context, tx db.Querier, m Message, from string) (bool, error) {
	const q = `UPDATE messages SET status = $3, error = $4, sent_at = $5, delivered_at = $6, reference = $7, sending_since = $8
		WHERE org_id = $1 AND id = $2 AND status = $9`
	r, err := tx.Exec(ctx, q, m.org, m.ID, m.Status, faultColumn(m.Error), m.SentAt, m.DeliveredAt, db.Null(m.reference),
		m.sendingSince, from)
	if err != nil {
		return false, fmt.Errorf("change message %s: %w", m.ID, err)
	}
	n, err := r.RowsAffected()
	return n == 1, err
}

// changeStatus is updateStatus. It publishes a state that no other event reports: a final one, or the end of waiting. It redacts m and the
// stored text if the message will not be sent again.
func (s *Service) changeStatus(ctx context.Context, tx db.Querier, m *Message, from string) (bool, error) {
	moved, err := updateStatus(ctx, tx, *m, from)
	if err != nil || !moved {
		return moved, err
	}
	if err := s.redactOutgoing(ctx, tx, m); err != nil {
		return true, err
	}
	if !m.Final() && from != scheduled {
		return true, nil
	}
	return true, s.publishStatus(ctx, tx, *m)
}

// publishStatus publishes the state of a message.
func (s *Service) publishStatus(ctx context.Context, tx db.Querier, m Message) error {
	e := event.SMSStatus{MessageID: m.ID, ConversationID: m.ConversationID, Status: m.Status, At: db.At(s.cfg.Clock.Now())}
	if m.Error != nil {
		e.ErrorCode = &m.Error.Code
	}
	return s.cfg.Outbox.Publish(ctx, tx, m.org, e)
}

func queryMessages(ctx context.Context, q db.Querier, f *db.Filter) ([]Message, error) {
	text, args := f.SQL()
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list messages: %w", err)
	}
	defer rows.Close()
	var all []Message
	for rows.Next() {
		m, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, rows.Err()
}
