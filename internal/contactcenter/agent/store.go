package agent

import (
	"cmp"
	"context"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
)

// inUsers restricts a statement to users; nil means all.
func inUsers(f *db.Filter, column string, users []string) *db.Filter { return f.In(column, users) }

func readRows(ctx context.Context, q db.Querier, org string, users []string) (map[string]*State, error) {
	const text = `SELECT u.id, u.dnd, u.dnd_until, u.created_at, a.availability, a.reason, a.until_at, a.next, a.wrap_up_until,
			a.missed_streak, a.paused_until, a.idle_since, a.status, a.status_reason, a.status_call_id, a.status_since, a.status_until,
			a.due_at, u.status = 'suspended', a.wrap_up_call_id, a.ended_call_id
		FROM users u LEFT JOIN agents a ON a.org_id = u.org_id AND a.user_id = u.id
		WHERE u.org_id = $1 AND u.status <> 'removed'`
	statement, args := inUsers(db.Where(text, org), "u.id", users).SQL()
	found, err := q.Query(ctx, statement, args...)
	if err != nil {
		return nil, err
	}
	defer found.Close()
	all := map[string]*State{}
	for found.Next() {
		x, err := scanState(found.Scan)
		if err != nil {
			return nil, err
		}
		all[x.UserID] = x
	}
	return all, found.Err()
}

func scanState(scan func(...any) error) (*State, error) {
	var x State
	var dnd user.DND
	var created db.Time
	var availability, status, reason, call, wrapUpCall, endedCall db.Null
	var next db.JSON[*choice]
	var streak *int
	r := &x.row
	err := scan(&x.UserID, &dnd.Enabled, &dnd.Until, &created, &availability, &r.choiceReason, &r.choiceUntil, &next, &r.wrapUpUntil,
		&streak, &r.pausedUntil, &r.idleSince, &status, &reason, &call, &r.published.since, &r.published.until, &r.dueAt,
		&x.suspended, &wrapUpCall, &endedCall)
	r.wrapUpCall, r.endedCall = string(wrapUpCall), string(endedCall)
	x.dnd, r.availability, r.nextChoice = dnd, string(availability), next.V
	r.published.status, r.published.reason, r.published.call = string(status), string(reason), string(call)
	if streak != nil {
		r.exists, r.missedStreak = true, *streak
	} else {
		r.published.status, r.published.since, r.idleSince = Offline, created, created
	}
	return &x, err
}

// readDevices counts the registered phones of users.
func readDevices(ctx context.Context, q db.Querier, org string, users []string, now time.Time, all map[string]*State) error {
	const text = `SELECT d.user_id, COUNT(DISTINCT d.id) FROM registrations r JOIN devices d ON d.org_id = r.org_id AND d.id = r.device_id
		WHERE r.org_id = $1 AND d.status = 'active' AND r.expires_at > $2`
	statement, args := inUsers(db.Where(text, org, db.At(now)), "d.user_id", users).SQL()
	return db.ForEach(ctx, q, "find phones of agents", statement+` GROUP BY d.user_id`, args, func(scan func(...any) error) error {
		var id string
		var n int
		err := scan(&id, &n)
		if x := all[id]; x != nil {
			x.Devices = n
		}
		return err
	})
}

// readLostBrowsers sets when the browsers of users without a registered phone became unreachable.
func readLostBrowsers(ctx context.Context, q db.Querier, org string, users []string, all map[string]*State) error {
	const text = `SELECT user_id, MAX(lost_at) FROM devices WHERE org_id = $1 AND lost_at IS NOT NULL AND status = 'active'`
	statement, args := inUsers(db.Where(text, org), "user_id", users).SQL()
	return db.ForEach(ctx, q, "find lost browsers", statement+` GROUP BY user_id`, args, func(scan func(...any) error) error {
		var id string
		var at db.Time
		err := scan(&id, &at)
		if x := all[id]; x != nil && x.Devices == 0 {
			x.lostAt = at
		}
		return err
	})
}

// readCalls sets the current and the ringing call of users. A user who calls from a phone is on the call from its
// start.
func readCalls(ctx context.Context, q db.Querier, org string, users []string, _ time.Time, all map[string]*State) error {
	const text = `SELECT l.user_id, l.call_id, l.status IN ('answered', 'held') OR l.role = 'caller' AND c.source
		NOT IN ('api', 'mcp', 'console', 'callback'), c.source = 'callback'
		FROM legs l JOIN calls c ON c.org_id = l.org_id AND c.id = l.call_id
		WHERE l.org_id = $1 AND l.ended_at IS NULL AND l.user_id IS NOT NULL AND c.ended_at IS NULL`
	statement, args := inUsers(db.Where(text, org), "l.user_id", users).SQL()
	return db.ForEach(ctx, q, "find calls of agents", statement+` ORDER BY l.id`, args, func(scan func(...any) error) error {
		var id, call string
		var busy, callback bool
		err := scan(&id, &call, &busy, &callback)
		x := all[id]
		switch {
		case x == nil:
		case busy && x.busyCall == "":
			x.busyCall, x.inCallback = call, callback
		case !busy && x.ringingCall == "":
			x.ringingCall = call
		}
		return err
	})
}

// readOffers sets the ringing call of users with an open offer of a queue.
func readOffers(ctx context.Context, q db.Querier, org string, users []string, now time.Time, all map[string]*State) error {
	const text = `SELECT agent_id, call_id FROM queue_offers WHERE org_id = $1 AND lease_until > $2 AND status = 'offering'`
	statement, args := inUsers(db.Where(text, org, db.At(now)), "agent_id", users).SQL()
	return db.ForEach(ctx, q, "find offers", statement, args, func(scan func(...any) error) error {
		var id, call string
		err := scan(&id, &call)
		if x := all[id]; x != nil {
			x.offeredCall, x.ringingCall = call, cmp.Or(x.ringingCall, call)
		}
		return err
	})
}

// ensureRow inserts the row of an agent if there is none.
func ensureRow(ctx context.Context, tx db.Querier, org, id string, now db.Time) error {
	const text = `INSERT INTO agents (org_id, user_id, availability, missed_streak, idle_since, status, status_since)
		SELECT u.org_id, u.id, 'available', 0, CAST($3 AS BIGINT), 'offline', u.created_at FROM users u WHERE u.org_id = $1 AND u.id = $2
		ON CONFLICT (org_id, user_id) DO NOTHING`
	_, err := tx.Exec(ctx, text, org, id, now)
	return err
}

// storeChoice stores an agent's choice, for now or for the time after the current call.
func storeChoice(ctx context.Context, tx db.Querier, org, id string, c choice, later bool) error {
	if later {
		const text = `UPDATE agents SET next = $3 WHERE org_id = $1 AND user_id = $2`
		_, err := tx.Exec(ctx, text, org, id, db.AsJSON(c))
		return err
	}
	const text = `UPDATE agents SET availability = $3, reason = $4, until_at = $5, next = NULL WHERE org_id = $1 AND user_id = $2`
	if c.Status == DND { // DND is stored with the user; afterwards the agent is available
		c.Status, c.Until = Available, db.Time{}
	}
	_, err := tx.Exec(ctx, text, org, id, c.Status, db.Null(c.Reason), c.Until)
	return err
}

// clearPauses ends wrap-up, unless it waits for a disposition, and the pause after missed offers.
func clearPauses(ctx context.Context, tx db.Querier, org, id string) error {
	const text = `UPDATE agents SET wrap_up_until = CASE WHEN wrap_up_call_id IS NULL THEN NULL ELSE wrap_up_until END, paused_until = NULL,
		missed_streak = 0 WHERE org_id = $1 AND user_id = $2`
	_, err := tx.Exec(ctx, text, org, id)
	return err
}

// storePublished stores a presence as the one published last. It returns false if a concurrent transaction published
// another one meanwhile. An agent who becomes available is idle since now, unless idle_since is the end of the call of the
// presence published before, or was set after that presence: then the end of a call is published only now.
func storePublished(ctx context.Context, tx db.Querier, org string, x *State) (bool, error) {
	const text = `UPDATE agents SET status = $4, status_reason = $5, status_call_id = $6, status_since = $7, status_until = $8, due_at = $9,
			idle_since = CASE WHEN $4 = 'available' AND status <> 'ringing' AND idle_since < status_since
				AND COALESCE(ended_call_id <> status_call_id, TRUE) THEN $7 ELSE idle_since END
		WHERE org_id = $1 AND user_id = $2 AND status_since = $3`
	p := x.Presence
	r, err := tx.Exec(ctx, text, org, x.UserID, x.row.published.since, p.Status, p.Reason, db.Null(x.CallID), p.Since, p.Until,
		x.nextChangeAt)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n > 0, err
}

// insertSpell stores a past interval of presence.
func insertSpell(ctx context.Context, tx db.Querier, org string, x *State) error {
	const text = `INSERT INTO agent_spells (org_id, user_id, since, id, until_at, status, reason) VALUES ($1, $2, $3, $4, $5, $6, $7)`
	t := x.row.published
	_, err := tx.Exec(ctx, text, org, x.UserID, t.since, db.NewID("spl"), x.Presence.Since, t.status, db.Null(t.reason))
	return err
}

func setDue(ctx context.Context, tx db.Querier, org, id string, due db.Time) error {
	const text = `UPDATE agents SET due_at = $3 WHERE org_id = $1 AND user_id = $2`
	_, err := tx.Exec(ctx, text, org, id, due)
	return err
}

// deleteRow deletes the row of a removed user.
func deleteRow(ctx context.Context, tx db.Querier, org, id string) error {
	_, err := tx.Exec(ctx, `DELETE FROM agents WHERE org_id = $1 AND user_id = $2`, org, id)
	return err
}
