package number

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"soniq/internal/platform/db"
)

const insertColumns = `INSERT INTO numbers (org_id, id, number, country, region, locality, type, capabilities, status, label,
	provider, trunk_id, user_id, sms_enabled, caller_id_name, recording_mode, fallback, emergency, created_at,
	updated_at, allocated_at, flow_id, queue_id, monthly_cost, account_id, status_detail,
	proven_at) VALUES `

// insertTypes lists the casts of the values of insertColumns; "" means no cast.
var insertTypes = make([]string, 27)

func (n Number) insertValues() []any {
	return []any{n.OrgID, n.ID, n.Number, n.Country, n.Region, n.Locality, n.Type, db.AsJSON(n.Capabilities), n.Status, n.Label, n.Provider,
		n.TrunkID,
		n.AssignedTo.idIf("user"), n.SMSEnabled, n.CallerIDName, n.RecordingMode, n.Fallback, db.AsJSON(n.Emergency), n.CreatedAt,
		n.UpdatedAt,
		n.AllocatedAt, n.AssignedTo.idIf("flow"), n.AssignedTo.idIf("queue"), costValue(n.MonthlyCost), n.account, n.StatusDetail,
		n.provenAt}
}

func insertNumber(ctx context.Context, q db.Querier, n Number) error {
	_, err := q.Exec(ctx, insertColumns+db.Values(1, 1, insertTypes...), n.insertValues()...)
	return err
}

// insertAll inserts many numbers with few statements.
func insertAll(ctx context.Context, q db.Querier, all []Number) error {
	return db.Bulk(len(all), func(from, to int) error {
		args := make([]any, 0, (to-from)*len(insertTypes))
		for _, n := range all[from:to] {
			args = append(args, n.insertValues()...)
		}
		_, err := q.Exec(ctx, insertColumns+db.Values(1, to-from, insertTypes...), args...)
		return err
	})
}

func updateNumber(ctx context.Context, q db.Querier, n Number) error {
	const text = `UPDATE numbers SET label = $3, user_id = $4, sms_enabled = $5, caller_id_name = $6, recording_mode = $7,
			fallback = $8, emergency = $9, status = $10, trunk_id = $11, released_at = $12, updated_at = $13, flow_id = $14, queue_id = $15,
			status_detail = $16, proven_at = $17, allocated_at = $18
		WHERE org_id = $1 AND id = $2`
	_, err := q.Exec(ctx, text, n.OrgID, n.ID, n.Label, n.AssignedTo.idIf("user"), n.SMSEnabled, n.CallerIDName, n.RecordingMode,
		n.Fallback, db.AsJSON(n.Emergency), n.Status, n.TrunkID, n.ReleasedAt, n.UpdatedAt, n.AssignedTo.idIf("flow"),
		n.AssignedTo.idIf("queue"), n.StatusDetail, n.provenAt, n.AllocatedAt)
	return err
}

// idIf returns the id of the assignment if it has the type, else nil.
func (a Assignment) idIf(kind string) *string {
	if a.Type == kind {
		return a.ID
	}
	return nil
}

// selectNumbers selects numbers with the name of their assignment.
const selectNumbers = `SELECT n.org_id, n.id, n.number, n.country, n.region, n.locality, n.type, n.capabilities, n.status, n.label,
	n.provider, n.trunk_id, n.user_id, n.sms_enabled, n.caller_id_name, n.recording_mode, n.fallback, n.emergency,
	n.created_at, n.updated_at, n.allocated_at, n.released_at, n.flow_id, n.queue_id, n.monthly_cost, n.account_id, n.status_detail,
	n.proven_at, u.first_name, u.last_name,
	COALESCE(f.name, k.name)
	FROM numbers n LEFT JOIN users u ON u.org_id = n.org_id AND u.id = n.user_id
	LEFT JOIN flows f ON f.org_id = n.org_id AND f.id = n.flow_id LEFT JOIN queues k ON k.org_id = n.org_id AND k.id = n.queue_id `

// capabilities returns the capabilities of a number. For an owned number they are unknown, so the organisation
// enables sms by sms_enabled.
func (n Number) capabilities() []string {
	can := slices.Clone(n.Capabilities)
	if n.SMSEnabled && n.account == "" && n.Provider != ProviderSandbox && !slices.Contains(can, "sms") {
		can = append(can, "sms")
	}
	return can
}

func scanNumber(scan func(...any) error) (Number, error) {
	var n Number
	var capabilities db.JSON[[]string]
	var emergency db.JSON[Emergency]
	var first, last, leads db.Null
	var user, flow, queue *string
	var cost db.JSON[*Cost]
	err := scan(&n.OrgID, &n.ID, &n.Number, &n.Country, &n.Region, &n.Locality, &n.Type, &capabilities, &n.Status, &n.Label,
		&n.Provider, &n.TrunkID, &user, &n.SMSEnabled, &n.CallerIDName, &n.RecordingMode, &n.Fallback, &emergency,
		&n.CreatedAt, &n.UpdatedAt, &n.AllocatedAt, &n.ReleasedAt, &flow, &queue, &cost, &n.account, &n.StatusDetail,
		&n.provenAt, &first, &last, &leads)
	n.Capabilities, n.Emergency, n.MonthlyCost = append([]string{}, capabilities.V...), emergency.V, cost.V
	n.Capabilities = n.capabilities()
	name := string(leads)
	switch {
	case user != nil:
		name = strings.TrimSpace(string(first) + " " + string(last))
		n.AssignedTo = Assignment{Type: "user", ID: user, Name: &name}
	case flow != nil:
		n.AssignedTo = Assignment{Type: "flow", ID: flow, Name: &name}
	case queue != nil:
		n.AssignedTo = Assignment{Type: "queue", ID: queue, Name: &name}
	default:
		n.AssignedTo = Assignment{Type: "none"}
	}
	return n, err
}

func getNumber(ctx context.Context, q db.Querier, org, id string) (Number, error) {
	return scanNumber(q.QueryRow(ctx, selectNumbers+`WHERE n.org_id = $1 AND n.id = $2`, org, id).Scan)
}

// byNumber returns the entries of a number that was dialled, the oldest first.
func byNumber(ctx context.Context, q db.Querier, e164 string) ([]Number, error) {
	// tenant: the organisation of an inbound call is unknown; the trunks that match its source decide
	const text = selectNumbers + `WHERE n.number = $1 AND n.status NOT IN ('released', 'failed', 'port_failed') AND n.provider <> 'sandbox' ORDER BY n.id`
	rows, err := q.Query(ctx, text, e164)
	if err != nil {
		return nil, err
	}
	return scanNumbers(rows)
}

func scanNumbers(rows *sql.Rows) (all []Number, err error) {
	defer rows.Close()
	for rows.Next() {
		n, err := scanNumber(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, rows.Err()
}

// activeOfOrg returns an active number of the organisation, including one of its sandbox.
func activeOfOrg(ctx context.Context, q db.Querier, org, e164 string) (Number, error) {
	return scanNumber(q.QueryRow(ctx, selectNumbers+`WHERE n.org_id = $1 AND n.number = $2 AND n.status = 'active'`, org, e164).Scan)
}

// countNumbers counts the numbers that the organisation has or has ordered.
func countNumbers(ctx context.Context, q db.Querier, org string) (n int, err error) {
	const text = `SELECT COUNT(*) FROM numbers WHERE org_id = $1 AND status NOT IN ('released', 'failed', 'port_failed')`
	err = q.QueryRow(ctx, text, org).Scan(&n)
	return n, err
}

// callbackNumber prefers a number assigned to the user, then the user's chosen number, then the organisation's
// oldest. callerIDNumber prefers the chosen number to an assigned one.
func callbackNumber(ctx context.Context, q db.Querier, org, user string) (Number, error) {
	const text = selectNumbers + `LEFT JOIN users me ON me.org_id = n.org_id AND me.id = $2
		WHERE n.org_id = $1 AND n.status = 'active'
		ORDER BY CASE WHEN n.user_id = $2 THEN 0 WHEN n.id = me.outbound_number_id THEN 1 ELSE 2 END, n.id LIMIT 1`
	return scanNumber(q.QueryRow(ctx, text, org, user).Scan)
}

func callerIDNumber(ctx context.Context, q db.Querier, org, user string) (Number, error) {
	const text = selectNumbers + `LEFT JOIN users me ON me.org_id = n.org_id AND me.id = $2
		WHERE n.org_id = $1 AND n.status = 'active'
		ORDER BY CASE WHEN n.id = me.outbound_number_id THEN 0 WHEN n.user_id = $2 THEN 1 ELSE 2 END, n.id LIMIT 1`
	return scanNumber(q.QueryRow(ctx, text, org, user).Scan)
}

// filter holds the filters and the page of a list.
type filter struct {
	statuses, capabilities []string
	user, flow, q          string
	after                  string
	limit                  int
}

// query returns the statement of a list without its page.
func (by filter) query(org string) *db.Filter {
	f := db.Where(selectNumbers+`WHERE n.org_id = $1`, org).In("n.status", by.statuses).Equal("n.user_id", by.user).Equal("n.flow_id",
		by.flow)
	if len(by.statuses) == 0 {
		f.And("n.status <> ?", Released)
	}
	for _, c := range by.capabilities {
		can := "n.capabilities LIKE ?"
		if c == "sms" {
			can += " OR n.sms_enabled AND n.account_id IS NULL AND n.provider <> '" + ProviderSandbox + "'" // as Number.capabilities
		}
		f.And(can, `%"`+c+`"%`)
	}
	if by.q != "" {
		like := "%" + db.Escape(by.q) + "%"
		f.And(`n.number LIKE ? ESCAPE '\' OR lower(n.label) LIKE lower(?) ESCAPE '\'`, like, like)
	}
	return f
}

func listNumbers(ctx context.Context, q db.Querier, org string, by filter) ([]Number, error) {
	f := by.query(org)
	if by.after != "" {
		f.And("n.id > ?", by.after)
	}
	limit := f.Arg(by.limit + 1)
	text, args := f.SQL()
	rows, err := q.Query(ctx, text+" ORDER BY n.id LIMIT "+limit, args...)
	if err != nil {
		return nil, fmt.Errorf("list numbers: %w", err)
	}
	return scanNumbers(rows)
}

// reassign moves the numbers of one user to another, or to none, and returns them in E.164.
func reassign(ctx context.Context, q db.Querier, org, from, to string, now db.Time) ([]string, error) {
	const text = `UPDATE numbers SET user_id = $3, updated_at = $4 WHERE org_id = $1 AND user_id = $2 RETURNING number`
	return db.Strings(ctx, q, "reassign numbers", text, org, from, db.Null(to), now)
}

// existing reports which parts of an assignment the organisation has. An empty id counts as existing.
type existing struct{ trunk, user, flow, published, queue bool }

func findExisting(ctx context.Context, q db.Querier, org, trunk, user, flow, queue string) (x existing, err error) {
	const text = `SELECT $2 = '' OR EXISTS (SELECT 1 FROM trunks WHERE org_id = $1 AND id = $2),
		$3 = '' OR EXISTS (SELECT 1 FROM users WHERE org_id = $1 AND id = $3 AND status <> 'removed'),
		$4 = '' OR EXISTS (SELECT 1 FROM flows WHERE org_id = $1 AND id = $4 AND archived_at IS NULL),
		$4 = '' OR EXISTS (SELECT 1 FROM flows WHERE org_id = $1 AND id = $4 AND archived_at IS NULL AND version > 0),
		$5 = '' OR EXISTS (SELECT 1 FROM queues WHERE org_id = $1 AND id = $5 AND removed_at IS NULL)`
	err = q.QueryRow(ctx, text, org, trunk, user, flow, queue).Scan(&x.trunk, &x.user, &x.flow, &x.published, &x.queue)
	return x, err
}

// assignedIDs returns the ids of unreleased numbers by the value of column: flow_id, queue_id or account_id.
func assignedIDs(ctx context.Context, q db.Querier, org, column string, ids []string) (map[string][]string, error) {
	f := db.Where(`SELECT `+column+`, id FROM numbers WHERE org_id = $1 AND status NOT IN ('released', 'failed', 'port_failed')`,
		org).In(column, ids)
	text, args := f.SQL()
	rows, err := q.Query(ctx, text+` ORDER BY id`, args...)
	if err != nil {
		return nil, fmt.Errorf("find numbers: %w", err)
	}
	defer rows.Close()
	found := map[string][]string{}
	for rows.Next() {
		var to db.Null
		var id string
		if err := rows.Scan(&to, &id); err != nil {
			return nil, err
		}
		found[string(to)] = append(found[string(to)], id)
	}
	return found, rows.Err()
}
