package sms

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/telephony/number"
)

// One conversation for all spellings of the other party's number.

// conversationPeer returns the number under which the conversation of a message stands. It is the spelling of the last message
// that was received, so that an answer goes to the number it came from. Conversations with other spellings are merged.
func (s *Service) conversationPeer(ctx context.Context, tx db.Querier, m Message) (string, error) {
	peer, other := number.Spellings(m.peer())
	if other == peer {
		return peer, nil
	}
	rows, err := s.conversationsWith(ctx, tx, m.org, m.ownNumber(), peer, other)
	if err != nil || len(rows) == 0 {
		return peer, err
	}
	keep := rows[0]
	for _, c := range rows[1:] {
		if err := mergeConversation(ctx, tx, m.org, keep.id, c.id); err != nil {
			return "", err
		}
	}
	if m.Direction == outbound || keep.peer == peer {
		return keep.peer, nil
	}
	const q = `UPDATE conversations SET peer_number = $3 WHERE org_id = $1 AND id = $2`
	if _, err := tx.Exec(ctx, q, m.org, keep.id, peer); err != nil {
		return "", fmt.Errorf("set number of conversation: %w", err)
	}
	return peer, nil
}

// conversationKey is a conversation and the number of its other party.
type conversationKey struct{ id, peer string }

// conversationsWith returns the conversations of one of our numbers with the spellings of another one, the latest first.
func (s *Service) conversationsWith(ctx context.Context, tx db.Querier, org, own, peer, other string) (all []conversationKey, err error) {
	const q = `SELECT id, peer_number FROM conversations WHERE org_id = $1 AND org_number = $2 AND peer_number IN ($3, $4)
		ORDER BY last_message_at DESC, id`
	rows, err := tx.Query(ctx, q, org, own, peer, other)
	if err != nil {
		return nil, fmt.Errorf("find conversations: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var c conversationKey
		if err := rows.Scan(&c.id, &c.peer); err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, rows.Err()
}

// mergeConversation moves the messages of a conversation to another one and deletes it.
func mergeConversation(ctx context.Context, tx db.Querier, org, to, from string) error {
	for _, q := range []string{
		`UPDATE messages SET conversation_id = $2 WHERE org_id = $1 AND conversation_id = $3`,
		`UPDATE conversations SET unread_count = unread_count + (SELECT c.unread_count FROM conversations c WHERE c.org_id = $1
			AND c.id = $3)
			WHERE org_id = $1 AND id = $2`,
	} {
		if _, err := tx.Exec(ctx, q, org, to, from); err != nil {
			return fmt.Errorf("merge conversations: %w", err)
		}
	}
	if _, err := tx.Exec(ctx, `DELETE FROM conversations WHERE org_id = $1 AND id = $2`, org, from); err != nil {
		return fmt.Errorf("delete merged conversation: %w", err)
	}
	return nil
}
