package voicemail

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// Changed is the bus subject on which a MailboxUser is published after the commit of a change in the user's messages.
// Message waiting indication (MWI, RFC 3842) follows it.
const Changed = "changed.voicemail"

// MailboxUser identifies a user with messages: those of the user's mailbox, and those assigned to the user.
type MailboxUser struct{ Org, User string }

// Count holds the message counts of a user for MWI (RFC 3842).
type Count struct {
	New, Old             int // not heard, heard; archived messages are not counted
	UrgentNew, UrgentOld int // of these
}

// ofUser selects the messages of the user $2.
const ofUser = `v.org_id = $1 AND (v.mailbox_id = $2 OR v.assignee_id = $2)`

// Count counts a user's messages.
func (s *Service) Count(ctx context.Context, q db.Querier, org, user string) (c Count, err error) {
	const text = `SELECT v.status, COUNT(*), COALESCE(SUM(CASE WHEN v.urgency = 'high' THEN 1 ELSE 0 END), 0) FROM voicemails v
		WHERE ` + ofUser + ` AND v.status IN ('new', 'read') GROUP BY v.status`
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

// EverReceived reports whether a user has or had a message, including deleted ones and those that were assigned to the user for a time.
func (s *Service) EverReceived(ctx context.Context, q db.Querier, org, user string) (ever bool, err error) {
	const text = `SELECT EXISTS (SELECT 1 FROM voicemails v WHERE ` + ofUser + `)
		OR EXISTS (SELECT 1 FROM voicemail_assignees a WHERE a.org_id = $1 AND a.user_id = $2)`
	if err := q.QueryRow(ctx, text, org, user).Scan(&ever); err != nil {
		return false, fmt.Errorf("look for messages: %w", err)
	}
	return ever, nil
}

// publishUpdate publishes the new state of a message: to event streams, and Changed as publishChanged does.
func (s *Service) publishUpdate(ctx context.Context, tx db.Querier, v Voicemail, before *string) error {
	s.publishChanged(tx, v, before)
	return s.cfg.Outbox.Publish(ctx, tx, v.OrgID, event.VoicemailUpdated{VoicemailID: v.ID, CallID: v.CallID,
		Mailbox: event.Mailbox(v.Mailbox), Status: v.Status, AssigneeID: v.AssigneeID, At: v.UpdatedAt})
}

// publishChanged publishes Changed after the commit for the users of a message: the owner of the mailbox, the
// assignee, and the assignee before.
func (s *Service) publishChanged(tx db.Querier, v Voicemail, before *string) {
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
		db.OnCommit(tx, func() { s.cfg.Bus.Publish(Changed, MailboxUser{v.OrgID, u}) })
	}
}
