package visibility

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
)

// Guard finds the records that a principal must not see. The pipeline of all operations calls it (op.Visibility).
type Guard struct {
	DB    *db.DB
	Calls Calls // nil: this process carries no calls
}

// Calls waits for the rows of calls in progress. pbx.Switch implements it.
type Calls interface {
	// AwaitInsert waits until the INSERT of a call's row has ended, if it has not.
	AwaitInsert(ctx context.Context, org, id string)
	// AwaitWrites waits until everything that has happened in a call so far is written.
	AwaitWrites(ctx context.Context, org, id string)
}

// callOf has the statements that find the call of a record, by the prefix of the record's ID.
var callOf = map[string]string{
	"call": `SELECT id FROM calls WHERE org_id = $1 AND id = $2`,
	"cdr":  `SELECT id FROM calls WHERE org_id = $1 AND cdr_id = $2`,
	"leg":  `SELECT call_id FROM legs WHERE org_id = $1 AND id = $2`,
	"rec":  `SELECT call_id FROM recordings WHERE org_id = $1 AND id = $2`,
	"trn":  `SELECT call_id FROM transcripts WHERE org_id = $1 AND id = $2`,
	"vm":   `SELECT call_id FROM voicemails WHERE org_id = $1 AND id = $2`,
	"mon":  `SELECT call_id FROM monitors WHERE org_id = $1 AND id = $2`,
	"note": `SELECT call_id FROM notes WHERE org_id = $1 AND id = $2`,
	"qen":  `SELECT call_id FROM queue_entries WHERE org_id = $1 AND id = $2`,
	"syn":  `SELECT call_id FROM crm_syncs WHERE org_id = $1 AND id = $2`,
	"dlv":  `SELECT call_id FROM webhook_deliveries WHERE org_id = $1 AND id = $2`,
	"evt":  `SELECT call_id FROM events WHERE org_id = $1 AND id = $2`,
	"mem": `SELECT call_id FROM memory_items WHERE org_id = $1 AND id = $2
		UNION ALL SELECT call_id FROM memory_facts WHERE org_id = $1 AND id = $2`,
}

// rowsOf has the statements for records that are not seen by their call alone.
var rowsOf = map[string]struct {
	text   string
	narrow func(View, *db.Filter) *db.Filter
}{
	"cbk": {`SELECT id FROM callbacks WHERE org_id = $1 AND id = $2`, View.NarrowCallbacks},
	"exp": {`SELECT id FROM cdr_exports WHERE org_id = $1 AND id = $2`,
		func(v View, f *db.Filter) *db.Filter { return v.NarrowOwn(f, "user_id") }},
}

// Concerns reports whether an ID names a record that visibility can hide.
func (g Guard) Concerns(id string) bool {
	prefix, rest, _ := strings.Cut(id, "_")
	if rest == "" {
		return false
	}
	_, own := rowsOf[prefix]
	_, call := callOf[prefix]
	return own || call
}

// AwaitRecord waits until the row of a call is stored, because its phones know its ID from the INVITE on.
func (g Guard) AwaitRecord(ctx context.Context, id string) {
	if g.Calls != nil && strings.HasPrefix(id, "call_") {
		g.Calls.AwaitInsert(ctx, access.Org(ctx), id)
	}
}

// Hidden reports whether the context's principal must not see a record. Records that do not exist are not hidden.
func (g Guard) Hidden(ctx context.Context, id string) (bool, error) {
	if p, _ := access.From(ctx); p.UserID == "" || !g.Concerns(id) {
		return false, nil
	}
	q := g.DB.Read(ctx)
	v, err := From(ctx, q)
	if err != nil || v.Everything() {
		return false, err
	}
	prefix, _, _ := strings.Cut(id, "_")
	if own, ok := rowsOf[prefix]; ok {
		n, err := own.narrow(v, db.Where(own.text, v.org, id)).Count(ctx, q)
		return n == 0, err
	}
	var callID db.Null
	err = q.QueryRow(ctx, callOf[prefix], v.org, id).Scan(&callID)
	if db.IsNone(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("find the call of %s: %w", id, err)
	}
	sees, err := v.Sees(ctx, q, string(callID))
	if err == nil && !sees && g.Calls != nil { // the leg that shows the call may be among the writes in progress
		g.Calls.AwaitWrites(ctx, v.org, string(callID))
		sees, err = v.Sees(ctx, q, string(callID))
	}
	return !sees, err
}
