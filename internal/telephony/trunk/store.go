package trunk

import (
	"context"
	"fmt"

	"soniq/internal/platform/db"
)

func insert(ctx context.Context, q db.Querier, t Trunk) error {
	const text = `INSERT INTO trunks (org_id, id, name, kind, host, port, transport, username, password, from_domain,
			allowed_ips, codecs, srtp, max_channels, calls_per_second, priority, prefix_rules, caller_id_mode, enabled,
			emergency_capable, inbound_ips, inbound_username, inbound_password, updated_at, direction, foreign_numbers, allow_refer,
			created_at)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23,
			$24, $25, $26, $27, $28)`
	_, err := q.Exec(ctx, text, append(t.values(), t.CreatedAt)...)
	return err
}

func update(ctx context.Context, q db.Querier, t Trunk) error {
	const text = `UPDATE trunks SET name = $3, kind = $4, host = $5, port = $6, transport = $7, username = $8, password = $9,
			from_domain = $10, allowed_ips = $11, codecs = $12, srtp = $13, max_channels = $14, calls_per_second = $15,
			priority = $16, prefix_rules = $17, caller_id_mode = $18, enabled = $19, emergency_capable = $20,
			inbound_ips = $21, inbound_username = $22, inbound_password = $23, updated_at = $24, direction = $25, foreign_numbers = $26,
			allow_refer = $27
		WHERE org_id = $1 AND id = $2`
	_, err := q.Exec(ctx, text, t.values()...)
	return err
}

// values returns all columns except created_at.
func (t Trunk) values() []any {
	return []any{t.OrgID, t.ID, t.Name, t.Kind, t.Host, t.Port, t.Transport, t.Username, t.password, t.FromDomain,
		db.AsJSON(t.AllowedIPs), db.AsJSON(t.Codecs), t.SRTP, t.MaxChannels, t.CallsPerSecond, t.Priority,
		db.AsJSON(t.PrefixRules), t.CallerIDMode, t.Enabled, t.EmergencyCapable, db.AsJSON(t.Inbound.AllowedIPs),
		t.Inbound.Username, t.inboundPassword, t.UpdatedAt, t.Direction, t.ForeignNumbers,
		t.AllowRefer}
}

func remove(ctx context.Context, q db.Querier, org, id string) error {
	_, err := q.Exec(ctx, `DELETE FROM trunks WHERE org_id = $1 AND id = $2`, org, id)
	return err
}

const columns = `org_id, id, name, kind, host, port, transport, username, password, from_domain, allowed_ips, codecs, srtp,
	max_channels, calls_per_second, priority, prefix_rules, caller_id_mode, enabled, emergency_capable, inbound_ips,
	inbound_username, inbound_password, created_at, updated_at, direction, foreign_numbers, allow_refer`

func scan(scan func(...any) error) (Trunk, error) {
	var t Trunk
	var ips, inbound, codecs db.JSON[[]string]
	var rules db.JSON[[]PrefixRule]
	err := scan(&t.OrgID, &t.ID, &t.Name, &t.Kind, &t.Host, &t.Port, &t.Transport, &t.Username, &t.password, &t.FromDomain,
		&ips, &codecs, &t.SRTP, &t.MaxChannels, &t.CallsPerSecond, &t.Priority, &rules, &t.CallerIDMode, &t.Enabled,
		&t.EmergencyCapable, &inbound, &t.Inbound.Username, &t.inboundPassword, &t.CreatedAt, &t.UpdatedAt, &t.Direction,
		&t.ForeignNumbers, &t.AllowRefer)
	t.AllowedIPs, t.Inbound.AllowedIPs = append([]string{}, ips.V...), append([]string{}, inbound.V...)
	t.Codecs, t.PrefixRules = append([]string{}, codecs.V...), append([]PrefixRule{}, rules.V...)
	return t, err
}

func get(ctx context.Context, q db.Querier, org, id string) (Trunk, error) {
	return scan(q.QueryRow(ctx, `SELECT `+columns+` FROM trunks WHERE org_id = $1 AND id = $2`, org, id).Scan)
}

func byInboundUsername(ctx context.Context, q db.Querier, username string) (Trunk, error) {
	// tenant: the user name determines the organisation, which signalling does not know yet
	const text = `SELECT ` + columns + ` FROM trunks WHERE inbound_username = $1 AND enabled AND inbound_password IS NOT NULL
		AND direction <> 'outbound' AND ` + notSandbox
	return scan(q.QueryRow(ctx, text, username).Scan)
}

// enabled returns the enabled trunks of all organisations but sandboxes, the oldest first.
func enabled(ctx context.Context, q db.Querier) ([]Trunk, error) {
	// tenant: the source address of a call determines the organisation
	const text = `SELECT ` + columns + ` FROM trunks WHERE enabled AND ` + notSandbox + ` ORDER BY id`
	return read(ctx, q, text)
}

// notSandbox excludes the trunks of sandboxes. They reach no carrier, and no call from outside is theirs.
const notSandbox = `org_id NOT IN (SELECT id FROM orgs WHERE live_id IS NOT NULL)`

// enabledByPriority returns an organisation's enabled trunks in the order in which they are tried.
func enabledByPriority(ctx context.Context, q db.Querier, org string) ([]Trunk, error) {
	return read(ctx, q, `SELECT `+columns+` FROM trunks WHERE org_id = $1 AND enabled ORDER BY priority, id`, org)
}

// listFilter returns the statement of a list, without its page.
func listFilter(org string) *db.Filter {
	return db.Where(`SELECT `+columns+` FROM trunks WHERE org_id = $1`, org)
}

func list(ctx context.Context, q db.Querier, org, after string, limit int) ([]Trunk, error) {
	text, args := listFilter(org).Page("id", false, after, after, limit).SQL()
	return read(ctx, q, text, args...)
}

func read(ctx context.Context, q db.Querier, text string, args ...any) ([]Trunk, error) {
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list trunks: %w", err)
	}
	defer rows.Close()
	var all []Trunk
	for rows.Next() {
		t, err := scan(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, rows.Err()
}

// soleNumber returns the number of a trunk that has exactly one active number; "" otherwise.
func soleNumber(ctx context.Context, q db.Querier, org, trunk string) (string, error) {
	var number string
	var n int
	const text = `SELECT COUNT(*), COALESCE(MAX(number), '') FROM numbers WHERE org_id = $1 AND trunk_id = $2 AND status = 'active'`
	if err := q.QueryRow(ctx, text, org, trunk).Scan(&n, &number); err != nil {
		return "", fmt.Errorf("find numbers of trunk: %w", err)
	}
	if n != 1 {
		return "", nil
	}
	return number, nil
}

// boundNumbers returns the ids of numbers that use the trunk.
func boundNumbers(ctx context.Context, q db.Querier, org, trunk string) ([]string, error) {
	return db.Strings(ctx, q, "find numbers of trunk", `SELECT id FROM numbers WHERE org_id = $1 AND trunk_id = $2 ORDER BY id`, org, trunk)
}
