package device

import (
	"context"
	"fmt"

	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/seal"
)

// ProvisioningAddress is an address from which a phone fetches its configuration, with the data of the file.
type ProvisioningAddress struct {
	Device      Device
	User        user.User
	OpenUntil   db.Time // from then on a fetch needs the HTTP login
	BoundAt     db.Time // first fetch by a phone; zero: none yet
	UserAgent   string  // of the phone
	LastFetchAt db.Time
	Login       string // HTTP password; the HTTP user is the SIP user name; "" until the address is bound
	Password    string // SIP password; "" until the address is bound

	status string
}

// Fetch is a request for a configuration file.
type Fetch struct {
	UserAgent string
	MAC       string // MAC address in the file name, normalised; "" if none
	File      string
	Code      string // error code of a refusal; "" if the file was sent
}

const loginLength = 28 // base62 characters, 166 bits

// FindAddress returns the address of a token. ok is false if there is none, if it expired unused, or if its phone or
// user is not active.
func (s *Service) FindAddress(ctx context.Context, token string) (a ProvisioningAddress, ok bool, err error) {
	q := s.db.Read(ctx)
	org, id, err := addressByToken(ctx, q, s.sealer.Digest(token))
	if err == nil {
		a, err = s.address(ctx, q, org, id)
	}
	if db.IsNone(err) {
		return a, false, nil
	}
	if err != nil {
		return a, false, fmt.Errorf("find address: %w", err)
	}
	over := a.BoundAt.IsZero() && !s.now().Before(a.OpenUntil.Time)
	return a, !over && a.Device.Status == "active" && a.User.Status != user.Suspended, nil
}

func addressByToken(ctx context.Context, q db.Querier, digest string) (org, device string, err error) {
	// tenant: the organisation follows from the token
	const text = `SELECT org_id, device_id FROM provisionings WHERE digest = $1`
	err = q.QueryRow(ctx, text, digest).Scan(&org, &device)
	return org, device, err
}

// address reads the address of a phone with its unsealed passwords.
func (s *Service) address(ctx context.Context, q db.Querier, org, id string) (ProvisioningAddress, error) {
	const text = `SELECT ` + addressColumns + `, p.login, p.password FROM provisionings p WHERE p.org_id = $1 AND p.device_id = $2`
	var login, password []byte
	a, err := scanAddress(q.QueryRow(ctx, text, org, id).Scan, &login, &password)
	if err != nil {
		return a, err
	}
	if a.Device, err = getDevice(ctx, q, org, id); err != nil {
		return a, err
	}
	if a.User, err = s.users.Get(ctx, q, org, a.Device.UserID); err != nil {
		return a, err
	}
	if len(login) == 0 {
		return a, nil
	}
	for _, x := range []struct {
		sealed []byte
		column string
		to     *string
	}{{login, "provision_login", &a.Login}, {password, "provision_password", &a.Password}} {
		open, err := s.sealer.Unseal(x.sealed, additionalData(a.Device, x.column))
		if err != nil {
			return a, fmt.Errorf("unseal provisioning of %s: %w", id, err)
		}
		*x.to = string(open)
	}
	return a, nil
}

// RecordFetch stores that a phone fetched its file. The first fetch binds the address to the phone and creates a new
// SIP password, which only this phone gets. Registrations with the previous password end.
func (s *Service) RecordFetch(ctx context.Context, a ProvisioningAddress, f Fetch) (ProvisioningAddress, error) {
	err := s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if a.BoundAt.IsZero() {
			if err := s.bindAddress(ctx, tx, a.Device, f); err != nil {
				return err
			}
		}
		if err := s.writeFetchStatus(ctx, tx, a.Device, statusServed, f.UserAgent); err != nil {
			return err
		}
		org, id := a.Device.OrgID, a.Device.ID
		if a, err = s.address(ctx, tx, org, id); err != nil {
			return err
		}
		return s.writeAudit(ctx, tx, a, f)
	})
	return a, err
}

// RecordRefusal stores that a request for a file was refused.
func (s *Service) RecordRefusal(ctx context.Context, a ProvisioningAddress, f Fetch) error {
	return s.db.Tx(ctx, func(tx db.Querier) error {
		if err := s.writeFetchStatus(ctx, tx, a.Device, statusFailed, ""); err != nil {
			return err
		}
		return s.writeAudit(ctx, tx, a, f)
	})
}

// RecordPublicFetch stores that a file without secrets was fetched.
func (s *Service) RecordPublicFetch(ctx context.Context, a ProvisioningAddress, f Fetch) error {
	return s.db.Tx(ctx, func(tx db.Querier) error { return s.writeAudit(ctx, tx, a, f) })
}

// bindAddress creates the passwords of an address, unless a concurrent request has created them.
func (s *Service) bindAddress(ctx context.Context, tx db.Querier, d Device, f Fetch) error {
	password, secrets, err := s.newCredentials(d)
	if err != nil {
		return err
	}
	sealedPassword, err := s.sealer.Seal([]byte(password), additionalData(d, "provision_password"))
	if err != nil {
		return fmt.Errorf("seal password: %w", err)
	}
	login, err := s.sealer.Seal([]byte(seal.Random(loginLength)), additionalData(d, "provision_login"))
	if err != nil {
		return fmt.Errorf("seal login: %w", err)
	}
	const text = `UPDATE provisionings SET bound_at = $3, user_agent = $4, login = $5, password = $6
		WHERE org_id = $1 AND device_id = $2 AND bound_at IS NULL`
	now := db.At(s.now())
	r, err := tx.Exec(ctx, text, d.OrgID, d.ID, now, f.UserAgent, login, sealedPassword)
	if err != nil {
		return fmt.Errorf("bind address: %w", err)
	}
	if n, err := r.RowsAffected(); err != nil || n == 0 {
		return err
	}
	d.RotatedAt = now
	return s.setCredentials(ctx, tx, d, secrets, f.MAC)
}

// setCredentials stores the new password of a phone, and its MAC address if it was unknown, and ends its
// registration.
func (s *Service) setCredentials(ctx context.Context, tx db.Querier, d Device, secrets sealedDigests, mac string) error {
	if err := updateCredentials(ctx, tx, d, secrets); err != nil {
		return fmt.Errorf("rotate credentials: %w", err)
	}
	if d.MAC == nil && mac != "" {
		d.MAC, d.UpdatedAt = &mac, d.RotatedAt
		if err := updateDevice(ctx, tx, d); err != nil {
			return fmt.Errorf("bind MAC address: %w", err)
		}
	}
	if err := s.endRegistration(ctx, tx, d.OrgID, d.ID); err != nil {
		return err
	}
	s.publishChanged(tx, d)
	return nil
}

// storePassword stores a new password for the phone's next fetch, if the phone is provisioned.
func (s *Service) storePassword(ctx context.Context, tx db.Querier, d Device, password string) error {
	sealed, err := s.sealer.Seal([]byte(password), additionalData(d, "provision_password"))
	if err != nil {
		return fmt.Errorf("seal password: %w", err)
	}
	const text = `UPDATE provisionings SET password = $3 WHERE org_id = $1 AND device_id = $2 AND bound_at IS NOT NULL`
	_, err = tx.Exec(ctx, text, d.OrgID, d.ID, sealed)
	return err
}

// writeFetchStatus stores the result of the last fetch, and of a successful one the phone's User-Agent.
func (s *Service) writeFetchStatus(ctx context.Context, tx db.Querier, d Device, status, agent string) error {
	text := `UPDATE provisionings SET status = $3 WHERE org_id = $1 AND device_id = $2`
	args := []any{d.OrgID, d.ID, status}
	if status == statusServed {
		text = `UPDATE provisionings SET status = $3, last_fetch_at = $4, user_agent = $5 WHERE org_id = $1 AND device_id = $2`
		args = append(args, db.At(s.now()), agent)
	}
	if _, err := tx.Exec(ctx, text, args...); err != nil {
		return fmt.Errorf("write fetch status: %w", err)
	}
	return nil
}

// writeAudit writes the request to the audit log, without the token.
func (s *Service) writeAudit(ctx context.Context, tx db.Querier, a ProvisioningAddress, f Fetch) error {
	line := op.AuditLine{Org: a.Device.OrgID, Operation: "devices.provision", Target: "GET /provision/…/" + f.File, KeyID: a.Device.ID,
		KeyName: f.UserAgent, Credential: "device", UserID: a.Device.UserID, Record: a.Device.ID, Status: 200, Code: f.Code}
	if f.Code != "" {
		line.Status = op.Fail(f.Code, "").Status()
	}
	return op.WriteAudit(ctx, tx, db.At(s.now()), line)
}
