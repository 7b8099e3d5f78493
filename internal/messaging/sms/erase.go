package sms

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/personal"
)

// eraseBatch is the number of messages erased in one transaction.
const eraseBatch = 200

// Conditions on rows with a phone number.
const (
	withNumber     = `org_id = $1 AND (from_number = $2 OR to_number = $2)`
	betweenNumbers = `org_id = $1 AND (peer_number = $2 OR org_number = $2)`
	optedOut       = `org_id = $1 AND phone = $2`
)

// CountForNumber returns the number of messages with a phone number, plus its opt-outs.
func (s *Service) CountForNumber(ctx context.Context, q db.Querier, org, phone string) (n int, err error) {
	const text = `SELECT (SELECT count(*) FROM messages WHERE ` + withNumber + `) + (SELECT count(*) FROM opt_outs WHERE ` + optedOut + `)`
	err = q.QueryRow(ctx, text, org, phone).Scan(&n)
	return n, err
}

// EraseForNumber erases a batch of messages with a phone number, then its conversations, and the number in its
// opt-outs. The digest of the opt-out stays, so that the number still receives no messages. It returns the number of
// erased items; call it until that is 0.
func (s *Service) EraseForNumber(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	all := 0
	for _, q := range []string{
		`DELETE FROM message_parts WHERE org_id = $1 AND message_id IN (SELECT id FROM messages WHERE ` + withNumber + `)`,
		fmt.Sprintf(`DELETE FROM messages WHERE org_id = $1 AND id IN (SELECT id FROM messages WHERE `+withNumber+` LIMIT %d)`, eraseBatch),
		`DELETE FROM conversations WHERE ` + betweenNumbers + ` AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.org_id = $1 AND m.conversation_id = conversations.id)`,
		`UPDATE opt_outs SET phone = NULL WHERE ` + optedOut,
	} {
		r, err := tx.Exec(ctx, q, org, phone)
		if err != nil {
			return all, fmt.Errorf("erase messages: %w", err)
		}
		n, err := r.RowsAffected()
		if err != nil {
			return all, err
		}
		all += int(n)
	}
	return all, nil
}

// ExportForNumber exports the messages with a phone number, its conversations and its opt-outs.
func (s *Service) ExportForNumber(ctx context.Context, q db.Querier, org, phone string, w personal.Writer) error {
	for kind, text := range map[string]string{
		"messages":      `SELECT * FROM messages WHERE ` + withNumber + ` ORDER BY id`,
		"message_parts": `SELECT * FROM message_parts WHERE org_id = $1 AND message_id IN (SELECT id FROM messages WHERE ` + withNumber + `) ORDER BY message_id, part`,
		"conversations": `SELECT * FROM conversations WHERE ` + betweenNumbers + ` ORDER BY id`,
		"opt_outs":      `SELECT * FROM opt_outs WHERE ` + optedOut + ` ORDER BY id`,
	} {
		if err := personal.Rows(ctx, q, w, kind, text, org, phone); err != nil {
			return err
		}
	}
	return nil
}

// Count returns the numbers of messages that an organisation has sent and received in a period.
func (s *Service) Count(ctx context.Context, org string, since, until db.Time) (sent, received int, err error) {
	count := func(condition string) (n int, err error) {
		return db.Where(`SELECT id FROM messages WHERE org_id = $1`, org).And(condition).Between("created_at", since, until).Count(ctx,
			s.cfg.DB.Read(ctx))
	}
	if sent, err = count("direction = 'outbound' AND sent_at IS NOT NULL"); err != nil {
		return 0, 0, err
	}
	received, err = count("direction = 'inbound'")
	return sent, received, err
}
