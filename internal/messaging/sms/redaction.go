package sms

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/redact"
)

// messageRedaction returns the policy for text messages of an organisation. It removes nothing unless the organisation chose it.
func (s *Service) messageRedaction(ctx context.Context, org string) (redact.Policy, error) {
	policy, err := s.cfg.Redactions.Redaction(ctx, org)
	if err != nil || !policy.Messages {
		return redact.Policy{}, err
	}
	return policy, nil
}

// redactOutgoing removes numbers from the stored text of an outbound message that will not be sent again. Before, the text is needed.
func (s *Service) redactOutgoing(ctx context.Context, tx db.Querier, m *Message) error {
	switch m.Status {
	case scheduled, queued, sending:
		return nil
	}
	policy, err := s.messageRedaction(ctx, m.org)
	if err != nil {
		return err
	}
	body, last := policy.Text(m.Body), m.asLast()
	if body == m.Body {
		return nil
	}
	m.Body = body
	const q = `UPDATE messages SET body = $3 WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, q, m.org, m.ID, body); err != nil {
		return fmt.Errorf("redact message %s: %w", m.ID, err)
	}
	const of = `UPDATE conversations SET last_message = $3 WHERE org_id = $1 AND id = $2 AND last_message = $4`
	if _, err := tx.Exec(ctx, of, m.org, m.ConversationID, db.AsJSON(m.asLast()), db.AsJSON(last)); err != nil {
		return fmt.Errorf("redact conversation of message %s: %w", m.ID, err)
	}
	return nil
}
