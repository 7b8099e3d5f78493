package device

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
)

func insertDevice(ctx context.Context, q db.Querier, d Device, s sealedDigests) error {
	const text = `INSERT INTO devices (org_id, id, user_id, name, kind, mac, vendor, model, template_id, username, ha1_md5,
			ha1_sha256, digest, transport, srtp, codecs, line_keys, status, created_at, updated_at, rotated_at, location)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22)`
	_, err := q.Exec(ctx, text, d.OrgID, d.ID, d.UserID, d.Name, d.Kind, d.MAC, d.Vendor, d.Model, d.TemplateID,
		d.SIP.Username, s.md5, s.sha256, d.SIP.Digest, d.SIP.Transport, d.SRTP, db.AsJSON(d.Codecs), db.AsJSON(d.LineKeys),
		d.Status, d.CreatedAt, d.UpdatedAt, d.RotatedAt, db.AsJSON(d.Location))
	return err
}

func updateDevice(ctx context.Context, q db.Querier, d Device) error {
	const text = `UPDATE devices SET name = $3, kind = $4, mac = $5, vendor = $6, model = $7, template_id = $8, digest = $9,
			transport = $10, srtp = $11, codecs = $12, line_keys = $13, status = $14, updated_at = $15, location = $16
		WHERE org_id = $1 AND id = $2`
	_, err := q.Exec(ctx, text, d.OrgID, d.ID, d.Name, d.Kind, d.MAC, d.Vendor, d.Model, d.TemplateID, d.SIP.Digest,
		d.SIP.Transport, d.SRTP, db.AsJSON(d.Codecs), db.AsJSON(d.LineKeys), d.Status, d.UpdatedAt,
		db.AsJSON(d.Location))
	return err
}

// updateCredentials replaces the digests.
func updateCredentials(ctx context.Context, q db.Querier, d Device, s sealedDigests) error {
	const text = `UPDATE devices SET ha1_md5 = $3, ha1_sha256 = $4, rotated_at = $5, updated_at = $5
		WHERE org_id = $1 AND id = $2`
	_, err := q.Exec(ctx, text, d.OrgID, d.ID, s.md5, s.sha256, d.RotatedAt)
	return err
}

func deleteDevice(ctx context.Context, q db.Querier, org, id string) error {
	_, err := q.Exec(ctx, `DELETE FROM devices WHERE org_id = $1 AND id = $2`, org, id)
	return err
}

// setLastSeen sets last_seen_at.
func setLastSeen(ctx context.Context, q db.Querier, org, id string, now db.Time) error {
	_, err := q.Exec(ctx, `UPDATE devices SET last_seen_at = $3 WHERE org_id = $1 AND id = $2`, org, id, now)
	return err
}

// setLost stores when a browser became unreachable, unless it was before. Other phones have no such time.
func setLost(ctx context.Context, q db.Querier, org, id string, at db.Time) error {
	const text = `UPDATE devices SET lost_at = $3 WHERE org_id = $1 AND id = $2 AND kind = 'webrtc' AND lost_at IS NULL`
	_, err := q.Exec(ctx, text, org, id, at)
	return err
}

// clearLost forgets which browsers of the user of a device became unreachable: the device registers, or its user turns it off.
func clearLost(ctx context.Context, q db.Querier, org, id string) error {
	const text = `UPDATE devices SET lost_at = NULL WHERE org_id = $1 AND lost_at IS NOT NULL
		AND user_id = (SELECT d.user_id FROM devices d WHERE d.org_id = $1 AND d.id = $2)`
	_, err := q.Exec(ctx, text, org, id)
	return err
}

const deviceColumns = `org_id, id, user_id, name, kind, mac, vendor, model, template_id, username, digest, transport, srtp,
	codecs, line_keys, status, created_at, updated_at, rotated_at, last_seen_at,
	location`

func scanDevice(scan func(...any) error, more ...any) (Device, error) {
	var d Device
	var codecs db.JSON[[]string]
	var keys db.JSON[[]LineKey]
	var location db.JSON[*org.Civic]
	err := scan(append([]any{&d.OrgID, &d.ID, &d.UserID, &d.Name, &d.Kind, &d.MAC, &d.Vendor, &d.Model, &d.TemplateID,
		&d.SIP.Username, &d.SIP.Digest, &d.SIP.Transport, &d.SRTP, &codecs, &keys, &d.Status, &d.CreatedAt, &d.UpdatedAt,
		&d.RotatedAt, &d.LastSeenAt, &location}, more...)...)
	d.Location = location.V
	d.Codecs, d.LineKeys = append([]string{}, codecs.V...), append([]LineKey{}, keys.V...)
	return d, err
}

func getDevice(ctx context.Context, q db.Querier, org, id string) (Device, error) {
	return scanDevice(q.QueryRow(ctx, `SELECT `+deviceColumns+` FROM devices WHERE org_id = $1 AND id = $2`, org, id).Scan)
}

// byUsername returns an active device by its SIP user name, with its sealed digests.
func byUsername(ctx context.Context, q db.Querier, username string) (Device, sealedDigests, error) {
	// tenant: the organisation follows from the SIP user name
	const text = `SELECT ` + deviceColumns + `, ha1_md5, ha1_sha256 FROM devices WHERE username = $1 AND status = 'active'`
	var s sealedDigests
	d, err := scanDevice(q.QueryRow(ctx, text, username).Scan, &s.md5, &s.sha256)
	return d, s, err
}

// orgOf returns the organisation of a device.
func orgOf(ctx context.Context, q db.Querier, id string) (string, error) {
	// tenant: signalling identifies a registered device by its id alone
	const text = `SELECT org_id FROM devices WHERE id = $1`
	var org string
	err := q.QueryRow(ctx, text, id).Scan(&org)
	return org, err
}

// filter holds the filters and the page of a list.
type filter struct {
	users, kinds []string
	vendor, q    string
	registered   *bool
	active       bool
	now          db.Time // time for registered
	after        string
	limit        int
}

// query returns the statement of a list without its page.
func (by filter) query(org string) *db.Filter {
	f := db.Where(`SELECT `+deviceColumns+` FROM devices WHERE org_id = $1`, org).In("user_id", by.users).In("kind", by.kinds)
	f.Equal("lower(vendor)", by.vendor)
	if by.active {
		f.And("status = 'active'")
	}
	if by.q != "" {
		like := "%" + db.Escape(by.q) + "%"
		f.And(`lower(name) LIKE lower(?) ESCAPE '\' OR lower(mac) LIKE lower(?) ESCAPE '\' OR username = lower(?)`, like, like, by.q)
	}
	if by.registered != nil {
		not := "NOT "
		if *by.registered {
			not = ""
		}
		f.And(not+`EXISTS (SELECT 1 FROM registrations r WHERE r.org_id = devices.org_id AND r.device_id = devices.id
			AND r.expires_at > ?)`, by.now)
	}
	return f
}

func listDevices(ctx context.Context, q db.Querier, org string, by filter) ([]Device, error) {
	text, args := by.query(org).Page("id", false, by.after, by.after, by.limit).SQL()
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, fmt.Errorf("list devices: %w", err)
	}
	defer rows.Close()
	var all []Device
	for rows.Next() {
		d, err := scanDevice(rows.Scan)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	return all, rows.Err()
}

func deleteBindings(ctx context.Context, q db.Querier, org, device string) error {
	_, err := q.Exec(ctx, `DELETE FROM registrations WHERE org_id = $1 AND device_id = $2`, org, device)
	return err
}

func insertBinding(ctx context.Context, q db.Querier, org string, n int, b Binding) error {
	const text = `INSERT INTO registrations (org_id, device_id, id, contact, path, source, transport, flow, instance, call_id,
			cseq, priority, user_agent, registered_at, expires_at, node)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)`
	_, err := q.Exec(ctx, text, org, b.DeviceID, strconv.Itoa(n), b.Contact, db.AsJSON(b.Path), b.Source.String(), b.Transport,
		int64(b.Flow), b.Instance, b.CallID, int64(b.CSeq), b.Priority, b.UserAgent, db.At(b.Registered), db.At(b.Expires), b.Node)
	return err
}

const bindingColumns = `r.device_id, r.contact, r.path, r.source, r.transport, r.flow, r.instance, r.call_id, r.cseq,
	r.priority, r.user_agent, r.registered_at, r.expires_at, r.node`

func scanBinding(scan func(...any) error, more func(*Binding) []any) (Binding, error) {
	var b Binding
	var path db.JSON[[]string]
	var source string
	var flow, cseq int64
	var registered, expires db.Time
	to := []any{&b.DeviceID, &b.Contact, &path, &source, &b.Transport, &flow, &b.Instance, &b.CallID, &cseq, &b.Priority,
		&b.UserAgent, &registered, &expires, &b.Node}
	if more != nil {
		to = append(to, more(&b)...)
	}
	err := scan(to...)
	b.Path, b.Flow, b.CSeq, b.Registered, b.Expires = path.V, uint64(flow), uint32(cseq), registered.Time, expires.Time
	b.Source, _ = netip.ParseAddrPort(source)
	return b, err
}

// bindings returns the bindings that expire after beyond by device, the highest q-value first. A zero beyond returns
// all.
func bindings(ctx context.Context, q db.Querier, org string, devices []string, beyond db.Time) (map[string][]Binding, error) {
	f := db.Where(`SELECT `+bindingColumns+` FROM registrations r WHERE r.org_id = $1`, org).In("r.device_id", devices)
	if !beyond.IsZero() {
		f.And("r.expires_at > ?", beyond)
	}
	text, args := f.SQL()
	all, err := readBindings(ctx, q, text+` ORDER BY r.priority DESC, r.registered_at DESC, r.id`, args, nil)
	found := map[string][]Binding{}
	for _, b := range all {
		found[b.DeviceID] = append(found[b.DeviceID], b)
	}
	return found, err
}

func bindingsOfUser(ctx context.Context, q db.Querier, org, user string, beyond db.Time) ([]Binding, error) {
	const text = `SELECT ` + bindingColumns + `, d.srtp, d.username FROM registrations r
		JOIN devices d ON d.org_id = r.org_id AND d.id = r.device_id
		WHERE r.org_id = $1 AND d.user_id = $2 AND d.status = 'active' AND r.expires_at > $3
		ORDER BY d.id, r.priority DESC, r.registered_at DESC, r.id`
	return readBindings(ctx, q, text, []any{org, user, beyond}, func(b *Binding) []any { return []any{&b.SRTP, &b.Username} })
}

// readBindings reads bindings. more returns the destinations of additional columns; it may be nil.
func readBindings(ctx context.Context, q db.Querier, text string, args []any, more func(*Binding) []any) ([]Binding, error) {
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var all []Binding
	for rows.Next() {
		b, err := scanBinding(rows.Scan, more)
		if err != nil {
			return nil, err
		}
		all = append(all, b)
	}
	return all, rows.Err()
}
