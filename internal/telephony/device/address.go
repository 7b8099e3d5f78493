package device

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/seal"
)

// Provisioner is what the addresses need from which phones fetch their configuration.
type Provisioner struct {
	Digest func(token string) string
	// Base is the address of this server, as phones reach it, without a slash at its end.
	Base func() string
	// Templates are the names of the templates there are.
	Templates []string
	// Template is the template of a phone by what its record says, or "".
	Template func(template, vendor string) string
	// Main is the file that the address of a template names, or "".
	Main func(template string) string
	// Event is what a NOTIFY names that has a phone of a template fetch again.
	Event func(template string, reboot bool) string
}

// AddressLife is how long an address can be used by whoever knows it.
const AddressLife = 24 * time.Hour

const addressToken = 22 // base62 characters, 131 bits

// What a phone's provisioning can be.
const (
	notProvisioned = "none"
	awaited        = "pending"
	served         = "served"
	failed         = "failed"
)

// Template is the template a phone is configured by; "" where its record does not say.
func (s *Service) Template(d Device) string {
	if s.Provisioner.Template == nil {
		return ""
	}
	var template, vendor string
	if d.TemplateID != nil {
		template = *d.TemplateID
	}
	if d.Vendor != nil {
		vendor = *d.Vendor
	}
	return s.Provisioner.Template(template, vendor)
}

// AddressOf is the address of a phone with a token: a file where its template has one name for it, else the folder.
func (s *Service) AddressOf(d Device, token string) string {
	return s.FolderOf(token) + s.Provisioner.Main(s.Template(d))
}

// FolderOf is the address below which the files of a token are.
func (s *Service) FolderOf(token string) string {
	return s.Provisioner.Base() + "/provision/" + token + "/"
}

// issue gives a phone a new address, in place of the one it had, and shows it in its record, this once.
func (s *Service) issue(ctx context.Context, tx db.Querier, d *Device) error {
	if s.Provisioner.Digest == nil || d.Kind == "webrtc" {
		return nil
	}
	if err := dropAddress(ctx, tx, d.OrgID, d.ID); err != nil {
		return fmt.Errorf("replace address: %w", err)
	}
	token, now := seal.Random(addressToken), s.now()
	if err := insertAddress(ctx, tx, *d, s.Provisioner.Digest(token), db.At(now), db.At(now.Add(AddressLife))); err != nil {
		return fmt.Errorf("make address: %w", err)
	}
	address := s.AddressOf(*d, token)
	d.ProvisioningURL = &address
	return nil
}

// readdress does what a change of provisioning.status asks for.
func (s *Service) readdress(ctx context.Context, tx db.Querier, d *Device, status string) error {
	if status == notProvisioned {
		return dropAddress(ctx, tx, d.OrgID, d.ID)
	}
	return s.issue(ctx, tx, d)
}

// checkTemplate says what is wrong with the template of a phone.
func (s *Service) checkTemplate(d Device) []op.Violation {
	if known := s.Provisioner.Templates; d.TemplateID != nil && len(known) > 0 && !slices.Contains(known, *d.TemplateID) {
		return []op.Violation{op.Field("template_id", "invalid_value", "must be one of "+strings.Join(known, ", "))}
	}
	return nil
}

// checkPatch says what is wrong with what a change asks for.
func (s *Service) checkPatch(d Device, p Patch) []op.Violation {
	var wrong []op.Violation
	if p.TemplateID.Set {
		wrong = s.checkTemplate(d)
	}
	asked := p.Provisioning.V.Status.V
	switch {
	case asked != "" && asked != awaited && asked != notProvisioned:
		wrong = append(wrong, op.Field("provisioning.status", "invalid_value", "can be set to pending, which makes a new address, or none"))
	case asked == awaited && d.Kind == "webrtc":
		wrong = append(wrong, op.Field("provisioning.status", "invalid_value", "a telephone in a page fetches nothing"))
	}
	return wrong
}

// firmware is the version in what a phone says of itself.
var firmware = regexp.MustCompile(`[0-9]+(?:\.[0-9]+){1,5}`)

// provisioned adds how far the provisioning of phones is.
func (s *Service) provisioned(ctx context.Context, q db.Querier, org string, all []Device) error {
	ids := make([]string, len(all))
	for i, d := range all {
		ids[i] = d.ID
	}
	found, err := addresses(ctx, q, org, ids)
	if err != nil {
		return fmt.Errorf("find addresses: %w", err)
	}
	for i := range all {
		p := &all[i].Provisioning
		p.Status, p.URL = notProvisioned, all[i].ProvisioningURL
		a, ok := found[all[i].ID]
		if !ok || a.BoundAt.IsZero() && !s.now().Before(a.OpenUntil.Time) && a.status == awaited {
			continue
		}
		p.Status, p.LastFetchAt = a.status, a.LastFetchAt
		all[i].Firmware = db.Null(firmware.FindString(a.UserAgent)).Ptr()
	}
	return nil
}

func insertAddress(ctx context.Context, q db.Querier, d Device, digest string, now, until db.Time) error {
	const text = `INSERT INTO provisionings (org_id, device_id, digest, status, created_at, open_until) VALUES ($1, $2, $3, $4, $5, $6)`
	_, err := q.Exec(ctx, text, d.OrgID, d.ID, digest, awaited, now, until)
	return err
}

func dropAddress(ctx context.Context, q db.Querier, org, device string) error {
	_, err := q.Exec(ctx, `DELETE FROM provisionings WHERE org_id = $1 AND device_id = $2`, org, device)
	return err
}

// sweepAddresses deletes addresses that no phone ever came to.
func sweepAddresses(ctx context.Context, q db.Querier, now db.Time) error {
	// tenant: a sweep over all organisations
	_, err := q.Exec(ctx, `DELETE FROM provisionings WHERE open_until <= $1 AND bound_at IS NULL`, now)
	return err
}

const addressColumns = `p.device_id, p.status, p.open_until, p.bound_at, p.user_agent, p.last_fetch_at`

func scanAddress(scan func(...any) error, more ...any) (Address, error) {
	var a Address
	var agent db.Null
	err := scan(append([]any{&a.Device.ID, &a.status, &a.OpenUntil, &a.BoundAt, &agent, &a.LastFetchAt}, more...)...)
	a.UserAgent = string(agent)
	return a, err
}

func addresses(ctx context.Context, q db.Querier, org string, devices []string) (map[string]Address, error) {
	text, args := db.Where(`SELECT `+addressColumns+` FROM provisionings p WHERE p.org_id = $1`, org).In("p.device_id", devices).SQL()
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]Address{}
	for rows.Next() {
		a, err := scanAddress(rows.Scan)
		if err != nil {
			return nil, err
		}
		all[a.Device.ID] = a
	}
	return all, rows.Err()
}
