package device

import (
	"context"
	"fmt"
	"slices"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// RotateIn holds the input of RotateCredentials.
type RotateIn struct {
	ID   string `path:"id" example:"usr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Body RotateBody
}

// RotateBody names the phone, if the user has several.
type RotateBody struct {
	DeviceID string `json:"device_id,omitempty" doc:"The user's first phone unless given"`
}

// Credentials hold a new SIP password and the account it belongs to.
type Credentials struct {
	Username  string  `json:"username"`
	Domain    string  `json:"domain"`
	Password  string  `json:"password" secret:"true" doc:"Given once"`
	Transport string  `json:"transport" enum:"udp,tcp,tls"`
	DeviceID  string  `json:"device_id"`
	RotatedAt db.Time `json:"rotated_at"`
}

// RotateCredentials replaces a phone's password. The old one is invalid at once, and the phone's registration ends.
func (s *Service) RotateCredentials(ctx context.Context, in *RotateIn) (*op.Out[Credentials], error) {
	var c Credentials
	err := s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		d, err := s.findDevice(ctx, tx, access.Org(ctx), in.ID, in.Body.DeviceID)
		if err != nil {
			return err
		}
		d.RotatedAt = db.At(s.now())
		password, sealed, err := s.newCredentials(d)
		if err != nil {
			return err
		}
		if err := updateCredentials(ctx, tx, d, sealed); err != nil {
			return fmt.Errorf("rotate credentials: %w", err)
		}
		if err := s.storePassword(ctx, tx, d, password); err != nil {
			return err
		}
		if err := s.endRegistration(ctx, tx, d.OrgID, d.ID); err != nil {
			return err
		}
		s.publishChanged(tx, d)
		c = Credentials{d.SIP.Username, s.domain, password, d.SIP.Transport, d.ID, d.RotatedAt}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return op.OK(c)
}

// findDevice returns the named phone of a user, or the first one.
func (s *Service) findDevice(ctx context.Context, tx db.Querier, org, userID, deviceID string) (Device, error) {
	if _, err := s.users.Get(ctx, tx, org, userID); db.IsNone(err) {
		return Device{}, op.NotFound("user")
	} else if err != nil {
		return Device{}, fmt.Errorf("find user: %w", err)
	}
	all, err := listDevices(ctx, tx, org, filter{users: []string{userID}, limit: 1000})
	if err != nil {
		return Device{}, err
	}
	if len(all) == 0 {
		return Device{}, op.State("the user has no phone; add one with POST /devices", "no_device")
	}
	if deviceID == "" {
		return all[0], nil
	}
	i := slices.IndexFunc(all, func(d Device) bool { return d.ID == deviceID })
	if i < 0 {
		return Device{}, op.Invalid(op.Field("device_id", "not_found", "no such phone of this user"))
	}
	return all[i], nil
}
