// Package visibility has the rule by which users see calls of their organisation, and everything that belongs to a call: recordings,
// transcripts, messages, memory, events. docs/visibility.md describes it.
package visibility

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// View is what a principal sees of the calls of its organisation: all of them, or those in which its user or a queue of its user
// had a part. The zero View shows everything.
type View struct {
	org  string
	user string // whose calls are shown; empty: all calls
}

// From returns the view of the context's principal. A context without a principal shows everything, because jobs and the switch
// act for the organisation.
func From(ctx context.Context, q db.Querier) (View, error) {
	p, _ := access.From(ctx)
	return Of(ctx, q, p.OrgID, p.UserID)
}

// Of returns the view of a user. An empty user stands for a credential of the organisation itself, which shows everything.
func Of(ctx context.Context, q db.Querier, org, user string) (View, error) {
	if user == "" {
		return View{org: org}, nil
	}
	const text = `SELECT role, EXISTS (SELECT 1 FROM queue_members WHERE org_id = $1 AND user_id = $2) FROM users WHERE org_id = $1 AND id = $2`
	var role string
	var queues bool
	err := q.QueryRow(ctx, text, org, user).Scan(&role, &queues)
	switch {
	case db.IsNone(err): // an unknown user has no part in any call
	case err != nil:
		return View{}, fmt.Errorf("read role of user: %w", err)
	case seesEverything(role, queues):
		user = ""
	}
	return View{org, user}, nil
}

// seesEverything is the rule of roles. Supervisors without queues supervise the whole organisation.
func seesEverything(role string, queues bool) bool {
	switch role {
	case "owner", "admin", "viewer":
		return true
	case "supervisor":
		return !queues
	}
	return false
}

// Everything reports whether the view shows all calls.
func (v View) Everything() bool { return v.user == "" }

// queuesOf selects the queues of a user.
const queuesOf = `SELECT queue_id FROM queue_members WHERE org_id = $1 AND user_id = %s`

// A part is a way in which a user has part in a call. The condition names the organisation as $1 and the user as %s.
type part struct{ from, call, condition string }

// parts are all ways. The first five are recorded with the call; through queues, users have part as members of today.
var parts = []part{
	{"legs", "legs.call_id", "legs.org_id = $1 AND legs.user_id = %s"},
	{"calls c", "c.id", "c.org_id = $1 AND c.user_id = %s"},
	{"calls c", "c.id", "c.org_id = $1 AND c.agent_id = %s"},
	{"voicemails v", "v.call_id", "v.org_id = $1 AND v.mailbox_id = %s"},
	{"voicemails v", "v.call_id", "v.org_id = $1 AND v.assignee_id = %s"},
	{"queue_entries e", "e.call_id", "e.org_id = $1 AND e.queue_id IN (" + queuesOf + ")"},
	{"calls c", "c.id", "c.org_id = $1 AND c.queue_id IN (" + queuesOf + ")"},
	{"voicemails v", "v.call_id", "v.org_id = $1 AND v.mailbox_id IN (" + queuesOf + ")"},
}

// calls returns a subquery of the IDs of the calls in which a user had a part. The organisation is $1, user is a placeholder.
func calls(user string) string {
	all := make([]string, len(parts))
	for i, p := range parts {
		all[i] = "SELECT " + p.call + " FROM " + p.from + " WHERE " + fmt.Sprintf(p.condition, user)
	}
	return strings.Join(all, " UNION ALL ")
}

// hasPart answers whether the user $2 had a part in the call $3 of the organisation $1.
var hasPart = func() string {
	all := make([]string, len(parts))
	for i, p := range parts {
		all[i] = "EXISTS (SELECT 1 FROM " + p.from + " WHERE " + fmt.Sprintf(p.condition, "$2") + " AND " + p.call + " = $3)"
	}
	return "SELECT " + strings.Join(all, " OR ")
}()

// Condition returns the condition that the call in a column is shown: empty if all are. The organisation is $1 in the statement, user
// is the placeholder of the argument that User returns.
func (v View) Condition(column, user string) string {
	if v.Everything() {
		return ""
	}
	return column + " IN (" + calls(user) + ")"
}

// User returns the argument of Condition.
func (v View) User() string { return v.user }

// Narrow limits a list to rows whose call is shown. column has the ID of the call.
func (v View) Narrow(f *db.Filter, column string) *db.Filter {
	if v.Everything() {
		return f
	}
	return f.And(v.Condition(column, f.Arg(v.user)))
}

// NarrowOptional is Narrow for rows of which some have no call: those are always shown.
func (v View) NarrowOptional(f *db.Filter, column string) *db.Filter {
	if v.Everything() {
		return f
	}
	return f.And(column + " IS NULL OR " + column + " = '' OR " + v.Condition(column, f.Arg(v.user)))
}

// NarrowCallbacks limits a list of callbacks to those of the user, of a queue of the user, or of a call that is shown.
func (v View) NarrowCallbacks(f *db.Filter) *db.Filter {
	if v.Everything() {
		return f
	}
	user := f.Arg(v.user)
	return f.And("user_id = " + user + " OR queue_id IN (" + fmt.Sprintf(queuesOf, user) + ") OR " + v.Condition("call_id", user) + " OR " +
		v.Condition("origin_call_id", user))
}

// NarrowOwn limits a list to rows of the user, by the column with their creator.
func (v View) NarrowOwn(f *db.Filter, column string) *db.Filter { return f.Equal(column, v.user) }

// Sees reports whether a call is shown. An empty ID is: it stands for what belongs to no call.
func (v View) Sees(ctx context.Context, q db.Querier, callID string) (bool, error) {
	if v.Everything() || callID == "" {
		return true, nil
	}
	var sees bool
	if err := q.QueryRow(ctx, hasPart, v.org, v.user, callID).Scan(&sees); err != nil {
		return false, fmt.Errorf("look for a part in call %s: %w", callID, err)
	}
	return sees, nil
}

// Supervises reports whether the principal of the view may act for an agent: everybody if all calls are shown, else the members of the
// queues of the view's user.
func (v View) Supervises(ctx context.Context, q db.Querier, agent string) (bool, error) {
	if v.Everything() {
		return true, nil
	}
	const text = `SELECT EXISTS (SELECT 1 FROM queue_members WHERE org_id = $1 AND user_id = $3 AND queue_id IN (SELECT queue_id
		FROM queue_members WHERE org_id = $1 AND user_id = $2))`
	var yes bool
	if err := q.QueryRow(ctx, text, v.org, v.user, agent).Scan(&yes); err != nil {
		return false, fmt.Errorf("look for a common queue with %s: %w", agent, err)
	}
	return yes, nil
}
