package trunk

import (
	"cmp"
	"context"
	"fmt"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// Operations returns the API operations on trunks.
func (s *Service) Operations() []op.Operation {
	return []op.Operation{
		op.New("trunks.list", "GET /trunks", access.NumbersAdmin, "List trunks", s.List),
		op.New("trunks.create", "POST /trunks", access.NumbersAdmin, "Add a trunk", s.Create).Status(201),
		op.New("trunks.get", "GET /trunks/{id}", access.NumbersAdmin, "Get one trunk", s.Show),
		op.New("trunks.update", "PATCH /trunks/{id}", access.NumbersAdmin, "Change a trunk", s.Update),
		op.New("trunks.test", "POST /trunks/{id}/test", access.NumbersAdmin, "Ask a trunk whether it is there", s.Test).WithSideEffects(),
		op.Delete("trunks.delete", "DELETE /trunks/{id}", access.NumbersAdmin, "Remove a trunk", s.Delete),
	}
}

// ListIn is the request for a page of trunks.
type ListIn struct{ op.Paging }

// List returns trunks in the order in which they were added.
func (s *Service) List(ctx context.Context, in *ListIn) (*op.Out[op.Page[Trunk]], error) {
	after, err := in.After(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := list(ctx, s.db.Read(ctx), access.Org(ctx), after.ID, in.Limit)
	if err != nil {
		return nil, err
	}
	for i := range rows {
		s.addStatus(ctx, &rows[i])
	}
	page := op.Paged(ctx, in.Paging, rows, func(t Trunk) op.Position { return op.Position{ID: t.ID} })
	return op.WithTotal(page, in.Paging, func() (int, error) { return listFilter(access.Org(ctx)).Count(ctx, s.db.Read(ctx)) })
}

// CreateIn is the request to add a trunk.
type CreateIn struct{ Body Fresh }

// Fresh describes a new trunk.
type Fresh struct {
	Name             string       `json:"name"`
	Kind             string       `json:"kind,omitempty" default:"ip" doc:"register: we log in at the carrier; ip: it knows our address; peer: another exchange"`
	Host             string       `json:"host" example:"sip.carrier.example"`
	Port             int          `json:"port,omitempty" default:"5060"`
	Transport        string       `json:"transport,omitempty" default:"udp" doc:"udp, tcp or tls"`
	Direction        string       `json:"direction,omitempty" default:"both" doc:"inbound, outbound or both"`
	Username         string       `json:"username,omitempty" maxLength:"120"`
	Password         string       `json:"password,omitempty" maxLength:"256" doc:"Never shown"`
	FromDomain       string       `json:"from_domain,omitempty" maxLength:"253"`
	AllowedIPs       []string     `json:"allowed_ips,omitempty"`
	Codecs           []string     `json:"codecs,omitempty"`
	SRTP             string       `json:"srtp,omitempty" default:"off" doc:"off, preferred or required"`
	MaxChannels      int          `json:"max_channels,omitempty"`
	CallsPerSecond   int          `json:"calls_per_second,omitempty"`
	Priority         *int         `json:"priority,omitempty" default:"10" doc:"The lowest is tried first"`
	PrefixRules      []PrefixRule `json:"prefix_rules,omitempty"`
	ForeignNumbers   bool         `json:"foreign_numbers,omitempty" doc:"The carrier accepts calls that show numbers of other trunks"`
	AllowRefer       bool         `json:"allow_refer,omitempty" doc:"Of kind peer: the other exchange may transfer calls (REFER), also to outside numbers at your expense"`
	CallerIDMode     string       `json:"caller_id_mode,omitempty" default:"pai" doc:"Where the caller's number is put: pai, rpid or from"`
	Enabled          *bool        `json:"enabled,omitempty" default:"true"`
	EmergencyCapable bool         `json:"emergency_capable,omitempty"`
	Inbound          FreshInbound `json:"inbound,omitzero"`
}

// FreshInbound describes how the carrier's calls to us are recognised.
type FreshInbound struct {
	AllowedIPs []string `json:"allowed_ips,omitempty"`
	Username   string   `json:"username,omitempty"`
	Password   string   `json:"password,omitempty" maxLength:"256" doc:"Never shown"`
}

// toTrunk returns the row of a new trunk, without its passwords.
func (f Fresh) toTrunk(org string, now db.Time) Trunk {
	t := Trunk{ID: db.NewID("trk"), OrgID: org, Name: f.Name, Kind: f.Kind, Host: f.Host, Port: f.Port, Transport: f.Transport,
		Username: db.Null(f.Username).Ptr(), FromDomain: db.Null(f.FromDomain).Ptr(), AllowedIPs: append([]string{}, f.AllowedIPs...),
		Direction: cmp.Or(f.Direction, "both"), ForeignNumbers: f.ForeignNumbers, AllowRefer: f.AllowRefer,
		Codecs: append([]string{}, f.Codecs...), SRTP: f.SRTP, MaxChannels: f.MaxChannels, CallsPerSecond: f.CallsPerSecond,
		Priority: 10, PrefixRules: append([]PrefixRule{}, f.PrefixRules...), CallerIDMode: f.CallerIDMode,
		Enabled: f.Enabled == nil || *f.Enabled, EmergencyCapable: f.EmergencyCapable, CreatedAt: now, UpdatedAt: now,
		Inbound: Inbound{AllowedIPs: append([]string{}, f.Inbound.AllowedIPs...), Username: db.Null(f.Inbound.Username).Ptr()}}
	if f.Priority != nil {
		t.Priority = *f.Priority
	}
	return t
}

// Create adds a trunk.
func (s *Service) Create(ctx context.Context, in *CreateIn) (*op.Out[Trunk], error) {
	t := in.Body.toTrunk(access.Org(ctx), db.At(s.now()))
	if err := s.sealPasswords(&t, in.Body.Password, in.Body.Inbound.Password); err != nil {
		return nil, err
	}
	if wrong := s.violations(t, nil); len(wrong) > 0 {
		return nil, op.Invalid(wrong...)
	}
	err := s.db.Tx(ctx, func(tx db.Querier) error {
		if err := s.checkNetworks(ctx, tx, t, nil); err != nil {
			return err
		}
		if err := insert(ctx, tx, t); err != nil {
			return storeError(err, "add trunk")
		}
		s.publishChange(tx, t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.addStatus(ctx, &t)
	return &op.Out[Trunk]{Body: t, Location: op.Prefix + "/trunks/" + t.ID, ETag: op.Tag(t.UpdatedAt)}, nil
}

// storeError converts an error of the database into the API error.
func storeError(err error, doing string) error {
	if db.IsConflict(err) {
		return op.Fail("already_exists", "inbound.username is taken; choose another")
	}
	return fmt.Errorf("%s: %w", doing, err)
}

// sealPasswords encrypts the passwords that are not empty into the trunk.
func (s *Service) sealPasswords(t *Trunk, password, inbound string) (err error) {
	if password != "" {
		if t.password, err = s.sealer.Seal([]byte(password), associatedData(*t, "password")); err != nil {
			return fmt.Errorf("seal password: %w", err)
		}
	}
	if inbound != "" {
		if t.inboundPassword, err = s.sealer.Seal([]byte(inbound), associatedData(*t, "inbound_password")); err != nil {
			return fmt.Errorf("seal password: %w", err)
		}
	}
	return nil
}

// OneIn has the id of a trunk.
type OneIn struct {
	ID string `path:"id" example:"trk_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
}

func getError(err error) error {
	if db.IsNone(err) {
		return op.NotFound("trunk")
	}
	return fmt.Errorf("get trunk: %w", err)
}

// Show returns a trunk.
func (s *Service) Show(ctx context.Context, in *OneIn) (*op.Out[Trunk], error) {
	t, err := get(ctx, s.db.Read(ctx), access.Org(ctx), in.ID)
	if err != nil {
		return nil, getError(err)
	}
	s.addStatus(ctx, &t)
	return op.Versioned(t, t.UpdatedAt)
}

// DeleteIn is the request to delete a trunk.
type DeleteIn struct {
	OneIn
	op.Match
}

// Delete removes a trunk. It is refused while numbers are bound to the trunk.
func (s *Service) Delete(ctx context.Context, in *DeleteIn) error {
	return s.db.Tx(ctx, func(tx db.Querier) error {
		t, err := get(ctx, tx, access.Org(ctx), in.ID)
		if err != nil {
			return getError(err)
		}
		if err := in.Check(t.UpdatedAt); err != nil {
			return err
		}
		bound, err := boundNumbers(ctx, tx, t.OrgID, t.ID)
		if err != nil {
			return err
		}
		if len(bound) > 0 {
			return op.InUse("numbers are bound to the trunk", bound...)
		}
		if err := remove(ctx, tx, t.OrgID, t.ID); err != nil {
			return fmt.Errorf("remove trunk: %w", err)
		}
		s.publishChange(tx, t)
		return nil
	})
}
