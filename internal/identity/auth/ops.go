package auth

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Operations returns the API operations of credentials.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("me.get", "GET /me", access.Any, "Show whose credential this is and what it may do", s.Me),
		op.New("apikeys.list", "GET /api-keys", access.UsersAdmin, "List API keys, newest first", s.List),
		op.New("apikeys.create", "POST /api-keys", access.UsersAdmin, "Make an API key", s.Create).Status(201).
			Grants("scopes", "user_id").Sensitive(),
		op.Delete("apikeys.delete", "DELETE /api-keys/{id}", access.UsersAdmin, "Revoke an API key", s.Revoke),
		op.New("apikeys.rotate", "POST /api-keys/{id}/rotate", access.UsersAdmin, "Replace an API key by a new one",
			s.Rotate).Status(201).Grants().Sensitive(),
	}
}

// Me describes the credential of the request and its permissions.
type Me struct {
	Organization Home           `json:"organization"`
	Credential   Credential     `json:"credential"`
	Scopes       []access.Scope `json:"scopes" nullable:"false"`
	Environment  string         `json:"environment" enum:"live,test"`
	Limits       org.Limits     `json:"limits"`
	User         *Person        `json:"user"`
}

// Home is the organisation of a credential.
type Home struct {
	ID       string     `json:"id"`
	Name     string     `json:"name"`
	Status   org.Status `json:"status"`
	Country  string     `json:"country"`
	Timezone string     `json:"timezone"`
}

// Credential describes the credential of the request.
type Credential struct {
	Type string      `json:"type" enum:"api_key,oauth,session" doc:"session: the page of a browser in which the user is signed in"`
	ID   string      `json:"id"`
	Name string      `json:"name"`
	Kind access.Kind `json:"kind" enum:"standard,partner,oauth,session"`
}

// Person is the user of a credential.
type Person struct {
	ID    string `json:"id"`
	Email string `json:"email"`
	Name  string `json:"name"`
	Role  string `json:"role"`
}

// Me returns the credential of the request.
func (s *Service) Me(ctx context.Context, _ *struct{}) (*op.Out[Me], error) {
	p, _ := access.From(ctx)
	o, err := s.orgs.Get(ctx, p.OrgID)
	if err != nil {
		return nil, fmt.Errorf("get organisation: %w", err)
	}
	me := Me{Organization: Home{o.ID, o.Name, o.Status, o.Country, o.Timezone}, Scopes: p.Scopes, Limits: o.Limits,
		Credential:  Credential{Type: "api_key", ID: p.KeyID, Name: p.KeyName, Kind: p.Kind},
		Environment: o.Environment}
	switch p.Kind {
	case access.OAuthToken:
		me.Credential.Type = "oauth"
	case access.BrowserSession:
		me.Credential.Type = "session"
	}
	if p.UserID != "" {
		u, err := keyUser(ctx, s.db.Read(ctx), p.OrgID, p.UserID)
		if err != nil {
			return nil, fmt.Errorf("get the key's user: %w", err)
		}
		me.User = &u
	}
	return op.OK(me)
}

// ListIn selects a page of keys.
type ListIn struct{ op.Paging }

// List returns the organisation's keys. A live credential also gets those of the sandbox twin.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Key]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	twin, err := s.orgs.Twin(ctx, access.Org(ctx))
	if err != nil {
		return nil, fmt.Errorf("find sandbox twin: %w", err)
	}
	rows, err := list(ctx, s.db.Read(ctx), access.Org(ctx), twin, after.ID, in.Limit)
	if err != nil {
		return nil, err
	}
	page := op.Paged(ctx, in.Paging, rows, func(k Key) op.Position { return op.Position{ID: k.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return keysOf(access.Org(ctx), twin).Count(ctx, s.db.Read(ctx)) })
}

// CreateIn is the input of Create.
type CreateIn struct{ Body NewKey }

// NewKey describes the key to create.
type NewKey struct {
	Name        string         `json:"name" doc:"What it is for" example:"billing"`
	Kind        access.Kind    `json:"kind,omitempty" enum:"standard,partner" default:"standard"`
	Environment string         `json:"environment,omitempty" enum:"live,test" doc:"Where it works; the environment of this request unless given"`
	Scopes      []access.Scope `json:"scopes" nullable:"false" doc:"No more than this credential holds itself"`
	UserID      string         `json:"user_id,omitempty" doc:"The user it acts for"`
	AllowedIPs  []string       `json:"allowed_ips,omitempty" doc:"Addresses and networks it may be used from" example:"[\"192.0.2.0/24\"]"`
	ExpiresAt   db.Time        `json:"expires_at,omitzero"`
}

// Create creates a key with at most the permissions of the credential of the request.
func (s *Service) Create(ctx context.Context, in *CreateIn) (*op.Out[Key], error) {
	p, _ := access.From(ctx)
	r := Request{OrgID: p.OrgID, Name: in.Body.Name, Kind: in.Body.Kind, Environment: p.Environment, Scopes: in.Body.Scopes,
		UserID: in.Body.UserID, AllowedIPs: in.Body.AllowedIPs, ExpiresAt: in.Body.ExpiresAt, CreatedBy: p.KeyID,
		Role: cmp.Or(p.Role, access.Roles[0])}
	r = r.inherit(p)
	switch in.Body.Environment {
	case "test":
		r.Environment = access.Sandbox
	case "live":
		r.Environment = access.Live
	}
	if wrong := append(excessViolations(p, r), r.violations(s.now())...); len(wrong) > 0 {
		return nil, op.Invalid(wrong...)
	}
	if err := s.checkKeyUser(ctx, r); err != nil {
		return nil, err
	}
	k, err := s.CreateKey(ctx, r)
	if err != nil {
		return nil, err
	}
	return &op.Out[Key]{Body: k, Location: op.Prefix + "/api-keys/" + k.ID}, nil
}

// excessViolations lists the permissions of a key that exceed those of the principal.
func excessViolations(p access.Principal, r Request) []op.Violation {
	wrong := boundViolations(p, r)
	for _, s := range p.Excess("", r.Scopes).Scopes {
		if s.Known() && (!s.Partner() || r.kind() == access.PartnerKey) { // violations reports the others
			wrong = append(wrong, op.Field("scopes", "not_held", "this credential does not hold "+string(s)))
		}
	}
	partner := p.Kind == access.PartnerKey && p.HomeID == "" || p.Kind == access.BrowserSession &&
		slices.Contains(p.Scopes, access.PartnersWrite)
	if r.kind() == access.PartnerKey && !partner {
		wrong = append(wrong, op.Field("kind", "not_allowed", "only a partner key can make partner keys"))
	}
	if r.Environment == access.Live && p.Environment == access.Sandbox {
		wrong = append(wrong, op.Field("environment", "not_allowed", "a test key can make only test keys"))
	}
	return wrong
}

// OneIn identifies a key.
type OneIn struct {
	ID string `path:"id" example:"key_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

// Revoke ends a key at once.
func (s *Service) Revoke(ctx context.Context, in *OneIn) error {
	return s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		k, digest, err := s.findKey(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		now := db.At(s.now())
		if !k.RevokedAt.IsZero() && !now.Before(k.RevokedAt.Time) {
			return nil
		}
		return s.revokeKey(ctx, tx, k, digest, now, "")
	})
}

// RotateIn is the input of Rotate.
type RotateIn struct {
	OneIn
	Body Rotation
}

// Rotation holds how long the old key stays valid.
type Rotation struct {
	GraceSeconds *int `json:"grace_seconds,omitempty" minimum:"0" maximum:"604800" default:"86400" doc:"How long the old key still works"`
}

func (r Rotation) grace() time.Duration {
	if r.GraceSeconds == nil {
		return 24 * time.Hour
	}
	return time.Duration(*r.GraceSeconds) * time.Second
}

// Rotate creates a key with the settings of an old key, which ends after the grace period.
func (s *Service) Rotate(ctx context.Context, in *RotateIn) (*op.Out[Key], error) {
	var k Key
	err := s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		old, digest, err := s.findKey(ctx, tx, in.ID)
		if err != nil {
			return err
		}
		if !old.RevokedAt.IsZero() {
			return op.State("the key was revoked or rotated already", "revoked")
		}
		p, _ := access.From(ctx)
		r := Request{OrgID: old.orgID, Name: old.Name, Kind: old.Kind, Environment: old.environment(), Scopes: old.Scopes,
			AllowedIPs: old.AllowedIPs, ExpiresAt: old.ExpiresAt, CreatedBy: p.KeyID,
			Role: old.role}
		if old.UserID != nil {
			r.UserID = *old.UserID
		}
		if wrong := append(excessViolations(p, r), r.violations(s.now())...); len(wrong) > 0 {
			return op.Invalid(wrong...)
		}
		if err := checkRotate(ctx, old); err != nil {
			return err
		}
		if k, err = s.createKey(ctx, tx, old.orgID, r); err != nil {
			return err
		}
		return s.revokeKey(ctx, tx, old, digest, db.At(s.now().Add(in.Body.grace())), k.ID)
	})
	if err != nil {
		return nil, err
	}
	return &op.Out[Key]{Body: k, Location: op.Prefix + "/api-keys/" + k.ID}, nil
}

func (s *Service) findKey(ctx context.Context, tx db.Querier, id string) (Key, string, error) {
	twin, err := s.orgs.Twin(ctx, access.Org(ctx))
	if err != nil {
		return Key{}, "", fmt.Errorf("find sandbox twin: %w", err)
	}
	k, digest, err := get(ctx, tx, access.Org(ctx), twin, id)
	if db.IsNone(err) {
		return k, "", op.NotFound("key")
	}
	return k, digest, err
}

func (s *Service) revokeKey(ctx context.Context, tx db.Querier, k Key, digest string, at db.Time, next string) error {
	if err := setRevoked(ctx, tx, k.orgID, k.ID, at, next); err != nil {
		return fmt.Errorf("revoke key: %w", err)
	}
	s.publishChanged(tx, digest)
	return nil
}

// RemoveUser revokes the keys and grants of a user who is being removed.
func (s *Service) RemoveUser(ctx context.Context, tx db.Querier, orgID, userID string) error {
	digests, err := revokeKeysOfUser(ctx, tx, orgID, userID, db.At(s.now()))
	if err != nil {
		return fmt.Errorf("revoke keys of user: %w", err)
	}
	if err := revokeGrantsOfUser(ctx, tx, orgID, userID, db.At(s.now())); err != nil {
		return fmt.Errorf("revoke grants of user: %w", err)
	}
	s.publishChanged(tx, append(digests, "")...)
	return nil
}

// RevalidateUser publishes that the keys of a user must be checked again, because the user was suspended or resumed.
func (s *Service) RevalidateUser(ctx context.Context, tx db.Querier, orgID, userID string) error {
	digests, err := digestsOfUser(ctx, tx, orgID, userID)
	if err != nil {
		return fmt.Errorf("find keys of user: %w", err)
	}
	s.publishChanged(tx, append(digests, "")...)
	return nil
}

// RevalidateAll makes every open stream check its credential again, because an organisation was suspended or closed.
func (s *Service) RevalidateAll(tx db.Querier) { s.publishChanged(tx, "") }

func (s *Service) publishChanged(tx db.Querier, digests ...string) {
	db.OnCommit(tx, func() {
		for _, d := range digests {
			s.bus.Publish(Changed, d)
		}
	})
}

// maxVisibleKeys is the number of keys that VisibleKeys returns at most.
const maxVisibleKeys = 500

// VisibleKeys returns the keys that a user may see and revoke: with users:admin those of the organisation and its
// sandbox, else the user's own.
func (s *Service) VisibleKeys(ctx context.Context, p access.Principal) ([]Key, error) {
	twin, err := s.orgs.Twin(ctx, p.OrgID)
	if err != nil {
		return nil, fmt.Errorf("find sandbox twin: %w", err)
	}
	all, err := list(ctx, s.db.Read(ctx), p.OrgID, twin, "", maxVisibleKeys)
	if err != nil || slices.Contains(p.Scopes, access.UsersAdmin) {
		return all, err
	}
	return slices.DeleteFunc(all, func(k Key) bool { return k.UserID == nil || *k.UserID != p.UserID }), nil
}
