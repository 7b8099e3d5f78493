package device

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Operations lists the API operations on phones.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("devices.list", "GET /devices", access.UsersAdmin, "List phones", s.List),
		op.New("me.devices.list", "GET /me/devices", access.Any, "List the own phones", s.ListOwn).ForPerson(),
		op.New("devices.create", "POST /devices", access.UsersAdmin, "Add a phone", s.Create).Status(201),
		op.New("devices.get", "GET /devices/{id}", access.UsersAdmin, "Get one phone", s.Show),
		op.New("devices.update", "PATCH /devices/{id}", access.UsersAdmin, "Change a phone", s.Update),
		op.Delete("devices.delete", "DELETE /devices/{id}", access.UsersAdmin, "Remove a phone", s.Delete),
		op.New("users.webrtc_token", "POST /users/{id}/webrtc-token", access.Any,
			"Let a page connect a telephone; for another user than one's own this needs users:admin", s.CreateToken),
		op.New("devices.resync", "POST /devices/{id}/resync", access.UsersAdmin, "Have a phone fetch its configuration again",
			s.Resync).Status(202).WithSideEffects(),
		op.New("users.sip.rotate", "POST /users/{id}/sip-credentials/rotate", access.UsersAdmin,
			"Replace the SIP password of a user's phone", s.RotateCredentials),
	}
}

// ListIn holds the filters of List.
type ListIn struct {
	op.Paging
	UserID     string   `query:"user_id"`
	Kind       []string `query:"kind" enum:"desk_phone,softphone,webrtc,ata,mobile,gateway"`
	Registered string   `query:"registered" enum:"true,false"`
	Vendor     string   `query:"vendor" maxLength:"120"`
	Q          string   `query:"q" maxLength:"120" doc:"Part of a name or MAC address, or a SIP user name"`
}

// List returns phones in the order in which they were added.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Device]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	by := filter{kinds: in.Kind, vendor: strings.ToLower(in.Vendor), q: in.Q, after: after.ID, limit: in.Limit, now: db.At(s.now())}
	if in.UserID != "" {
		by.users = []string{in.UserID}
	}
	if in.Registered != "" {
		yes := in.Registered == "true"
		by.registered = &yes
	}
	q, org := s.db.Read(ctx), access.Org(ctx)
	rows, err := listDevices(ctx, q, org, by)
	if err != nil {
		return nil, err
	}
	if err := s.addComputed(ctx, q, org, rows); err != nil {
		return nil, err
	}
	page := op.Paged(ctx, in.Paging, rows, func(d Device) op.Position { return op.Position{ID: d.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return by.query(org).Count(ctx, q) })
}

// OwnIn selects the phones of the credential's user.
type OwnIn struct{ op.Paging }

// ListOwn returns the phones of the credential's user, without secrets.
func (s *Service) ListOwn(ctx context.Context, in *OwnIn) (*op.Out[op.Page[Device]], error) {
	p, _ := access.From(ctx)
	return s.List(ctx, &ListIn{Paging: in.Paging, UserID: p.UserID})
}

// CreateIn holds the input of Create.
type CreateIn struct{ Body Fresh }

// Fresh describes a new phone.
type Fresh struct {
	UserID     string    `json:"user_id"`
	Name       string    `json:"name"`
	Kind       string    `json:"kind" doc:"desk_phone, softphone, webrtc, ata, mobile or gateway"`
	MAC        string    `json:"mac,omitempty"`
	Vendor     string    `json:"vendor,omitempty" maxLength:"120"`
	Model      string    `json:"model,omitempty" maxLength:"120"`
	TemplateID string    `json:"template_id,omitempty" maxLength:"120"`
	SRTP       string    `json:"srtp,omitempty" default:"off" doc:"off, preferred or required"`
	Codecs     []string  `json:"codecs,omitempty"`
	LineKeys   []LineKey `json:"line_keys,omitempty"`
	SIP        FreshSIP  `json:"sip,omitzero"`

	Location *org.Civic `json:"emergency_location,omitempty"`
}

// FreshSIP holds the SIP settings of a new phone.
type FreshSIP struct {
	Transport string `json:"transport,omitempty" default:"udp"`
	Digest    string `json:"digest,omitempty" default:"md5" doc:"md5, which every phone knows, or sha256 (RFC 8760)"`
}

// Create adds a phone. Only this response contains its password.
func (s *Service) Create(ctx context.Context, in *CreateIn) (*op.Out[Device], error) {
	b := in.Body
	d := Device{OrgID: access.Org(ctx), UserID: b.UserID, Name: b.Name, Kind: b.Kind, MAC: db.Null(b.MAC).Ptr(),
		Vendor: db.Null(b.Vendor).Ptr(), Model: db.Null(b.Model).Ptr(), TemplateID: db.Null(b.TemplateID).Ptr(),
		SRTP: b.SRTP, Codecs: append([]string{}, b.Codecs...), LineKeys: append([]LineKey{}, b.LineKeys...), Status: "active"}
	if d.SRTP == "" {
		d.SRTP = "off"
	}
	d.SIP.Transport, d.SIP.Digest = orDefault(b.SIP.Transport, "udp"), orDefault(b.SIP.Digest, "md5")
	d.Location = b.Location
	err := s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		if err := s.validateWithUser(ctx, tx, &d); err != nil {
			return err
		}
		var err error
		if d, err = s.Add(ctx, tx, d); err != nil {
			return err
		}
		if err := s.issueAddress(ctx, tx, &d); err != nil {
			return err
		}
		return s.addComputedOne(ctx, tx, &d)
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[Device]{Body: d, Location: op.Prefix + "/devices/" + d.ID, ETag: op.Tag(d.UpdatedAt)}, nil
}

func orDefault(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (s *Service) validateWithUser(ctx context.Context, tx db.Querier, d *Device) error {
	wrong := append(d.validate(), s.checkTemplate(*d)...)
	if _, err := s.users.Get(ctx, tx, d.OrgID, d.UserID); db.IsNone(err) {
		wrong = append(wrong, op.Field("user_id", "not_found", "no such user"))
	} else if err != nil {
		return fmt.Errorf("find user: %w", err)
	}
	if len(wrong) > 0 {
		return op.Invalid(wrong...)
	}
	return nil
}

func (s *Service) addComputedOne(ctx context.Context, q db.Querier, d *Device) error {
	one := []Device{*d}
	err := s.addComputed(ctx, q, d.OrgID, one)
	*d = one[0]
	return err
}

// OneIn holds the id of a phone.
type OneIn struct {
	ID string `path:"id" example:"dev_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

func notFound(err error) error {
	if db.IsNone(err) {
		return op.NotFound("device")
	}
	if err != nil {
		return fmt.Errorf("get device: %w", err)
	}
	return nil
}

// Show returns a phone.
func (s *Service) Show(ctx context.Context, in *OneIn) (*op.Out[Device], error) {
	d, err := getDevice(ctx, s.db.Read(ctx), access.Org(ctx), in.ID)
	if err != nil {
		return nil, notFound(err)
	}
	if err := s.addComputedOne(ctx, s.db.Read(ctx), &d); err != nil {
		return nil, err
	}
	return op.Versioned(d, d.UpdatedAt)
}

// UpdateIn holds the input of Update.
type UpdateIn struct {
	OneIn
	op.Match
	Body Patch
}

// Patch is a merge patch (RFC 7396) of a phone.
type Patch struct {
	Name       op.Change[string]    `json:"name,omitzero"`
	Kind       op.Change[string]    `json:"kind,omitzero"`
	MAC        op.Change[string]    `json:"mac,omitzero"`
	Vendor     op.Change[string]    `json:"vendor,omitzero"`
	Model      op.Change[string]    `json:"model,omitzero"`
	TemplateID op.Change[string]    `json:"template_id,omitzero"`
	SRTP       op.Change[string]    `json:"srtp,omitzero"`
	Codecs     op.Change[[]string]  `json:"codecs,omitzero"`
	LineKeys   op.Change[[]LineKey] `json:"line_keys,omitzero"`
	Status     op.Change[string]    `json:"status,omitzero" doc:"active, or disabled: it can neither log in nor be called"`
	SIP        op.Change[SIPPatch]  `json:"sip,omitzero"`
	// Provisioning requests a new address, or deletes it.
	Provisioning op.Change[ProvisioningPatch] `json:"provisioning,omitzero"`
	Location     op.Change[org.Civic]         `json:"emergency_location,omitzero" doc:"Replaces the place as a whole"`
}

// ProvisioningPatch requests a new address, or deletes it.
type ProvisioningPatch struct {
	Status op.Change[string] `json:"status,omitzero" doc:"pending makes a new address, which is in the answer, and ends the one before; none ends it"`
}

// SIPPatch is a merge patch of SIP settings.
type SIPPatch struct {
	Transport op.Change[string] `json:"transport,omitzero"`
	Digest    op.Change[string] `json:"digest,omitzero"`
}

// Update changes a phone. Disabling it ends its registration.
func (s *Service) Update(ctx context.Context, in *UpdateIn) (*op.Out[Device], error) {
	var d Device
	err := s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		if d, err = getDevice(ctx, tx, access.Org(ctx), in.ID); err != nil {
			return notFound(err)
		}
		if err := in.Check(d.UpdatedAt); err != nil {
			return err
		}
		in.Body.apply(&d)
		asked := in.Body.Provisioning.V.Status.V
		if wrong := append(d.validate(), s.checkPatch(d, in.Body)...); len(wrong) > 0 {
			return op.Invalid(wrong...)
		}
		d.UpdatedAt = db.At(s.now())
		if err := updateDevice(ctx, tx, d); err != nil {
			return fmt.Errorf("change device: %w", err)
		}
		if d.Status == "disabled" {
			if err := s.endRegistration(ctx, tx, d.OrgID, d.ID); err != nil {
				return err
			}
		}
		if asked != "" {
			if err := s.applyProvisioningStatus(ctx, tx, &d, asked); err != nil {
				return err
			}
		}
		s.publishChanged(tx, d)
		return s.addComputedOne(ctx, tx, &d)
	})
	if err != nil {
		return nil, err
	}
	return op.Versioned(d, d.UpdatedAt)
}

func (p Patch) apply(d *Device) {
	p.Name.Apply(&d.Name)
	p.Kind.Apply(&d.Kind)
	applyNullable(p.MAC, &d.MAC)
	applyNullable(p.Vendor, &d.Vendor)
	applyNullable(p.Model, &d.Model)
	applyNullable(p.TemplateID, &d.TemplateID)
	p.SRTP.Apply(&d.SRTP)
	p.Codecs.Apply(&d.Codecs)
	p.LineKeys.Apply(&d.LineKeys)
	p.Status.Apply(&d.Status)
	if p.Location.Set {
		d.Location = nil
		if !p.Location.Null {
			d.Location = &p.Location.V
		}
	}
	p.SIP.V.Transport.Apply(&d.SIP.Transport)
	p.SIP.V.Digest.Apply(&d.SIP.Digest)
	d.Codecs, d.LineKeys = append([]string{}, d.Codecs...), append([]LineKey{}, d.LineKeys...)
}

func applyNullable(c op.Change[string], to **string) {
	if c.Set {
		*to = db.Null(c.V).Ptr()
	}
}

// DeleteIn holds the input of Delete.
type DeleteIn struct {
	OneIn
	op.Match
}

// Delete removes a phone and ends its registration.
func (s *Service) Delete(ctx context.Context, in *DeleteIn) error {
	return s.db.Tx(ctx, func(tx db.Querier) error {
		d, err := getDevice(ctx, tx, access.Org(ctx), in.ID)
		if err != nil {
			return notFound(err)
		}
		if err := in.Check(d.UpdatedAt); err != nil {
			return err
		}
		return s.removeDevice(ctx, tx, d)
	})
}
