package voicemail

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

// Changed is the bus subject on which a Box is published whose messages are others than before, once that is written down.
const Changed = "changed.voicemail"

// A Box is the messages a user is to hear: those of their own mailbox, and of others those they look after.
type Box struct{ Org, User string }

// A Count is how many messages somebody has.
type Count struct {
	New, Old             int // not heard, heard; those put away count as neither
	UrgentNew, UrgentOld int // of these
}

// mine are the messages of $2.
const mine = `v.org_id = $1 AND (v.mailbox_id = $2 OR v.assignee_id = $2)`

// Count counts a user's messages.
func (s *Service) Count(ctx context.Context, q db.Querier, org, user string) (c Count, err error) {
	const text = `SELECT v.status, COUNT(*), COALESCE(SUM(CASE WHEN v.urgency = 'high' THEN 1 ELSE 0 END), 0) FROM voicemails v
		WHERE ` + mine + ` AND v.status IN ('new', 'read') GROUP BY v.status`
	rows, err := q.Query(ctx, text, org, user)
	if err != nil {
		return c, fmt.Errorf("count messages: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var status string
		var all, urgent int
		if err := rows.Scan(&status, &all, &urgent); err != nil {
			return c, err
		}
		if status == New {
			c.New, c.UrgentNew = all, urgent
		} else {
			c.Old, c.UrgentOld = all, urgent
		}
	}
	return c, rows.Err()
}

// changed tells who has other messages than before, after commit.
func (s *Service) changed(tx db.Querier, v Voicemail, before *string) {
	users := map[string]bool{}
	if v.Mailbox.Type == "user" {
		users[v.Mailbox.ID] = true
	}
	for _, a := range []*string{v.AssigneeID, before} {
		if a != nil {
			users[*a] = true
		}
	}
	for u := range users {
		db.OnCommit(tx, func() { s.Bus.Publish(Changed, Box{v.OrgID, u}) })
	}
}
