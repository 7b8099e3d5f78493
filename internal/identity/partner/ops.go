package partner

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// CreateIn is the input of Create.
type CreateIn struct{ Body Fresh }

// Fresh describes a new child organisation.
type Fresh struct {
	Name                 string  `json:"name" doc:"1 to 120 characters" example:"Harbor Dental"`
	Plan                 string  `json:"plan" doc:"One of the configured plans" example:"business"`
	AdminEmail           string  `json:"admin_email" doc:"Of its first user, an owner" example:"ada@harbor.example"`
	CallRecordingEnabled bool    `json:"call_recording_enabled,omitempty" default:"false"`
	Country              string  `json:"country,omitempty" doc:"ISO 3166; that of the partner unless given"`
	Timezone             string  `json:"timezone,omitempty" doc:"IANA name; that of the country unless given"`
	Limits               *Limits `json:"limits,omitempty" doc:"What differs from the plan"`
	ExternalReference    string  `json:"external_reference,omitempty" doc:"What the partner calls it; at most 120 characters"`
	SendInvite           *bool   `json:"send_invite,omitempty" default:"true" doc:"Invite the administrator by mail, or by the link in the answer"`
}

// Limits holds limits that override the plan.
type Limits struct {
	Users           *int `json:"users,omitempty"`
	Numbers         *int `json:"numbers,omitempty"`
	ConcurrentCalls *int `json:"concurrent_calls,omitempty"`
	CallsPerSecond  *int `json:"calls_per_second,omitempty"`
	StorageGB       *int `json:"storage_gb,omitempty"`
}

func (l *Limits) quota() org.Quota {
	if l == nil {
		return org.Quota{}
	}
	return org.Quota(*l)
}

// Create creates a child organisation and its administrator.
func (s *Service) Create(ctx context.Context, in *CreateIn) (out *op.Out[Partner], err error) {
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		o, err := s.createOrg(ctx, tx, in.Body)
		if err != nil {
			return err
		}
		admin, err := s.addAdministrator(ctx, tx, o, in.Body)
		if err != nil {
			return err
		}
		o.AdminUserID = &admin.ID
		if out, err = s.respond(ctx, tx, o); err != nil {
			return err
		}
		out.Body.Invitation = admin.Invitation
		out.Location = op.Prefix + "/partners/" + o.ID
		return nil
	})
	return out, err
}

// createOrg creates the organisation. It returns all violations of the request together.
func (s *Service) createOrg(ctx context.Context, tx db.Querier, f Fresh) (org.Organization, error) {
	var wrong []op.Violation
	if !user.IsAddress(f.AdminEmail) {
		wrong = append(wrong, op.Field("admin_email", "invalid_email", "must be an e-mail address"))
	}
	o, err := s.cfg.Orgs.CreateChild(ctx, tx, org.Child{ParentID: access.Org(ctx), Name: f.Name, Plan: f.Plan, Country: f.Country,
		Timezone: f.Timezone, Record: f.CallRecordingEnabled, Limits: f.Limits.quota(), ExternalReference: f.ExternalReference})
	var e *op.Error
	if errors.As(err, &e) && e.Code == "validation_failed" {
		return o, op.Invalid(append(e.Fields, wrong...)...)
	}
	if err == nil && len(wrong) > 0 {
		return o, op.Invalid(wrong...)
	}
	return o, err
}

// addAdministrator adds the first user of a child organisation, an owner. The child's webhooks receive user.created. The answer has the
// link of the invitation only if the partner's credential holds the rights of an owner itself.
func (s *Service) addAdministrator(ctx context.Context, tx db.Querier, o org.Organization, f Fresh) (user.User, error) {
	name, _, _ := strings.Cut(f.AdminEmail, "@")
	no := false
	u, err := s.cfg.Users.Create(managing(ctx, o), o.ID, user.Fresh{Email: f.AdminEmail, FirstName: name, Role: "owner",
		SendInvite: f.SendInvite, ProvisionSIP: &no})
	if err != nil {
		return u, err
	}
	if u.Invitation != nil && u.Invitation.URL != nil {
		if err := s.cfg.Users.CheckRole(s.within(ctx, o), o, u.Role); err != nil {
			return u, err
		}
	}
	if err := s.cfg.Orgs.SetAdmin(ctx, tx, o.ID, u.ID); err != nil {
		return u, fmt.Errorf("store administrator: %w", err)
	}
	return u, nil
}

// ListIn selects child organisations.
type ListIn struct {
	op.Paging
	Status []string `query:"status" enum:"active,suspended,closed"`
	Plan   string   `query:"plan" maxLength:"60"`
	Q      string   `query:"q" maxLength:"120" doc:"Part of a name or external reference"`
}

// List returns child organisations in the order of creation.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Partner]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	by := org.ChildFilter{Statuses: in.Status, Plan: in.Plan, Q: in.Q, After: after.ID, Limit: in.Limit}
	q := s.cfg.DB.Read(ctx)
	all, err := s.cfg.Orgs.Children(ctx, q, access.Org(ctx), by)
	if err != nil {
		return nil, err
	}
	rows := make([]Partner, len(all))
	for i, o := range all {
		if rows[i], err = s.record(ctx, q, o); err != nil {
			return nil, err
		}
	}
	page := op.Paged(ctx, in.Paging, rows, func(p Partner) op.Position { return op.Position{ID: p.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return s.cfg.Orgs.CountChildren(ctx, q, access.Org(ctx), by) })
}

// OneIn identifies a child organisation.
type OneIn struct {
	ID string `path:"id" example:"org_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

// Show returns a child organisation.
func (s *Service) Show(ctx context.Context, in *OneIn) (*op.Out[Partner], error) {
	q := s.cfg.DB.Read(ctx)
	o, err := s.child(ctx, q, in.ID)
	if err != nil {
		return nil, err
	}
	return s.respond(ctx, q, o)
}

// UpdateIn is the input of Update.
type UpdateIn struct {
	OneIn
	op.Match
	Body Patch
}

// Patch is a merge patch of a child organisation.
type Patch struct {
	Name                 op.Change[string]      `json:"name,omitzero"`
	Plan                 op.Change[string]      `json:"plan,omitzero"`
	CallRecordingEnabled op.Change[bool]        `json:"call_recording_enabled,omitzero"`
	Limits               op.Change[LimitsPatch] `json:"limits,omitzero" doc:"null: those of the plan, as is each of them"`
	ExternalReference    op.Change[string]      `json:"external_reference,omitzero"`
}

// LimitsPatch changes limits. null restores the limit of the plan.
type LimitsPatch struct {
	Users           op.Change[int] `json:"users,omitzero"`
	Numbers         op.Change[int] `json:"numbers,omitzero"`
	ConcurrentCalls op.Change[int] `json:"concurrent_calls,omitzero"`
	CallsPerSecond  op.Change[int] `json:"calls_per_second,omitzero"`
	StorageGB       op.Change[int] `json:"storage_gb,omitzero"`
}

// change returns the patch in the form of package org.
func (p LimitsPatch) change(c op.Change[LimitsPatch]) op.Change[map[string]*int] {
	out := op.Change[map[string]*int]{Set: c.Set, Null: c.Null, V: map[string]*int{}}
	for name, v := range map[string]op.Change[int]{"users": p.Users, "numbers": p.Numbers, "concurrent_calls": p.ConcurrentCalls,
		"calls_per_second": p.CallsPerSecond, "storage_gb": p.StorageGB} {
		switch {
		case v.Null:
			out.V[name] = nil
		case v.Set:
			out.V[name] = &v.V
		}
	}
	return out
}

// Update changes a child organisation.
func (s *Service) Update(ctx context.Context, in *UpdateIn) (out *op.Out[Partner], err error) {
	b := in.Body
	err = s.cfg.DB.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		o, err := s.openChild(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if err := in.Check(o.UpdatedAt); err != nil {
			return err
		}
		o, err = s.cfg.Orgs.ChangeChild(ctx, tx, o, org.ChildChange{Name: b.Name, Plan: b.Plan, ExternalReference: b.ExternalReference,
			Record: b.CallRecordingEnabled, Limits: b.Limits.V.change(b.Limits)})
		if err != nil {
			return err
		}
		out, err = s.respond(ctx, tx, o)
		return err
	})
	return out, err
}
