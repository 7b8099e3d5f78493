package sms

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// erasedAtOnce is how many messages are erased in one transaction.
const erasedAtOnce = 200

// CountWith counts the messages with a number, and whether it opted out.
func (s *Service) CountWith(ctx context.Context, q db.Querier, org, phone string) (n int, err error) {
	const text = `SELECT (SELECT count(*) FROM messages WHERE org_id = $1 AND (from_number = $2 OR to_number = $2))
		+ (SELECT count(*) FROM opt_outs WHERE org_id = $1 AND phone = $2)`
	err = q.QueryRow(ctx, text, org, phone).Scan(&n)
	return n, err
}

// EraseWith erases some messages with a number, then its conversations, and the number itself out of its opt-outs: a digest
// stays, so that it is not written to after all. It returns how many things it erased.
func (s *Service) EraseWith(ctx context.Context, tx db.Querier, org, phone string) (int, error) {
	all := 0
	for _, q := range []string{
		`DELETE FROM message_parts WHERE org_id = $1 AND message_id IN (SELECT id FROM messages WHERE org_id = $1 AND (from_number = $2 OR to_number = $2))`,
		fmt.Sprintf(`DELETE FROM messages WHERE org_id = $1 AND id IN
			(SELECT id FROM messages WHERE org_id = $1 AND (from_number = $2 OR to_number = $2) LIMIT %d)`, erasedAtOnce),
		`DELETE FROM conversations WHERE org_id = $1 AND (peer_number = $2 OR org_number = $2)
			AND NOT EXISTS (SELECT 1 FROM messages m WHERE m.org_id = $1 AND m.conversation_id = conversations.id)`,
		`UPDATE opt_outs SET phone = NULL WHERE org_id = $1 AND phone = $2`,
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

// Count counts the messages an organisation has sent and received in a time.
func (s *Service) Count(ctx context.Context, org string, since, until db.Time) (sent, received int, err error) {
	count := func(condition string) (n int, err error) {
		return db.Where(`SELECT id FROM messages WHERE org_id = $1`, org).And(condition).Between("created_at", since, until).Count(ctx, s.DB.Read(ctx))
	}
	if sent, err = count("direction = 'outbound' AND sent_at IS NOT NULL"); err != nil {
		return 0, 0, err
	}
	received, err = count("direction = 'inbound'")
	return sent, received, err
}
