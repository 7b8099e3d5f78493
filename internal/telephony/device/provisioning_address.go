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

// AddressLifetime is how long an address can be fetched without the HTTP login.
const AddressLifetime = 24 * time.Hour

const addressTokenLength = 22 // base62 characters, 131 bits

// The provisioning states of a phone.
const (
	statusNone    = "none"
	statusPending = "pending"
	statusServed  = "served"
	statusFailed  = "failed"
)

// Template returns the template of a phone, or "" if its record names none.
func (s *Service) Template(d Device) string {
	var template, vendor string
	if d.TemplateID != nil {
		template = *d.TemplateID
	}
	if d.Vendor != nil {
		vendor = *d.Vendor
	}
	return s.config.Templates.Template(template, vendor)
}

// AddressURL returns the URL of a phone's configuration: a file if its template has one name for it, else a folder.
func (s *Service) AddressURL(d Device, token string) string {
	return s.FolderURL(token) + s.config.Templates.Main(s.Template(d))
}

// FolderURL returns the URL of the folder with the files of a token.
func (s *Service) FolderURL(token string) string {
	return s.config.Server.ProvisionBase() + "/provision/" + token + "/"
}

// issueAddress replaces the address of a phone by a new one. The URL is in the device d, and is not available later,
// because only a digest of its token is stored. Browser phones get none.
func (s *Service) issueAddress(ctx context.Context, tx db.Querier, d *Device) error {
	if d.Kind == "webrtc" {
		return nil
	}
	if err := deleteAddress(ctx, tx, d.OrgID, d.ID); err != nil {
		return fmt.Errorf("replace address: %w", err)
	}
	token, now := seal.Random(addressTokenLength), s.now()
	if err := insertAddress(ctx, tx, *d, s.sealer.Digest(token), db.At(now), db.At(now.Add(AddressLifetime))); err != nil {
		return fmt.Errorf("insert address: %w", err)
	}
	address := s.AddressURL(*d, token)
	d.ProvisioningURL = &address
	return nil
}

// applyProvisioningStatus deletes or replaces the address, as a change of provisioning.status requests.
func (s *Service) applyProvisioningStatus(ctx context.Context, tx db.Querier, d *Device, status string) error {
	if status == statusNone {
		return deleteAddress(ctx, tx, d.OrgID, d.ID)
	}
	return s.issueAddress(ctx, tx, d)
}

// checkTemplate returns the violations of a phone's template.
func (s *Service) checkTemplate(d Device) []op.Violation {
	if known := s.config.Templates.Templates(); d.TemplateID != nil && !slices.Contains(known, *d.TemplateID) {
		return []op.Violation{op.Field("template_id", "invalid_value", "must be one of "+strings.Join(known, ", "))}
	}
	return nil
}

// checkPatch returns the violations of a change's template and provisioning status.
func (s *Service) checkPatch(d Device, p Patch) []op.Violation {
	var wrong []op.Violation
	if p.TemplateID.Set {
		wrong = s.checkTemplate(d)
	}
	asked := p.Provisioning.V.Status.V
	switch {
	case asked != "" && asked != statusPending && asked != statusNone:
		wrong = append(wrong, op.Field("provisioning.status", "invalid_value", "can be set to pending, which makes a new address, or none"))
	case asked == statusPending && d.Kind == "webrtc":
		wrong = append(wrong, op.Field("provisioning.status", "invalid_value", "a telephone in a page fetches nothing"))
	}
	return wrong
}

// firmwareVersion matches the version in the User-Agent of a phone.
var firmwareVersion = regexp.MustCompile(`[0-9]+(?:\.[0-9]+){1,5}`)

// addProvisioning adds the provisioning state and the firmware version to phones.
func (s *Service) addProvisioning(ctx context.Context, q db.Querier, org string, all []Device) error {
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
		p.Status, p.URL = statusNone, all[i].ProvisioningURL
		a, ok := found[all[i].ID]
		if !ok || a.BoundAt.IsZero() && !s.now().Before(a.OpenUntil.Time) && a.status == statusPending {
			continue
		}
		p.Status, p.LastFetchAt = a.status, a.LastFetchAt
		all[i].Firmware = db.Null(firmwareVersion.FindString(a.UserAgent)).Ptr()
	}
	return nil
}

func insertAddress(ctx context.Context, q db.Querier, d Device, digest string, now, until db.Time) error {
	const text = `INSERT INTO provisionings (org_id, device_id, digest, status, created_at, open_until) VALUES ($1, $2, $3, $4, $5, $6)`
	_, err := q.Exec(ctx, text, d.OrgID, d.ID, digest, statusPending, now, until)
	return err
}

func deleteAddress(ctx context.Context, q db.Querier, org, device string) error {
	_, err := q.Exec(ctx, `DELETE FROM provisionings WHERE org_id = $1 AND device_id = $2`, org, device)
	return err
}

// deleteUnusedAddresses deletes expired addresses from which no phone has fetched.
func deleteUnusedAddresses(ctx context.Context, q db.Querier, gone *int64, now db.Time) error {
	// tenant: a sweep over all organisations
	return db.Affected(ctx, q, gone, `DELETE FROM provisionings WHERE open_until <= $1 AND bound_at IS NULL`, now)
}

const addressColumns = `p.device_id, p.status, p.open_until, p.bound_at, p.user_agent, p.last_fetch_at`

func scanAddress(scan func(...any) error, more ...any) (ProvisioningAddress, error) {
	var a ProvisioningAddress
	var agent db.Null
	err := scan(append([]any{&a.Device.ID, &a.status, &a.OpenUntil, &a.BoundAt, &agent, &a.LastFetchAt}, more...)...)
	a.UserAgent = string(agent)
	return a, err
}

func addresses(ctx context.Context, q db.Querier, org string, devices []string) (map[string]ProvisioningAddress, error) {
	text, args := db.Where(`SELECT `+addressColumns+` FROM provisionings p WHERE p.org_id = $1`, org).In("p.device_id", devices).SQL()
	rows, err := q.Query(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	all := map[string]ProvisioningAddress{}
	for rows.Next() {
		a, err := scanAddress(rows.Scan)
		if err != nil {
			return nil, err
		}
		all[a.Device.ID] = a
	}
	return all, rows.Err()
}
