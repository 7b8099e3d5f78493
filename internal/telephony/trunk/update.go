package trunk

import (
	"context"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
)

// UpdateIn is the request to change a trunk.
type UpdateIn struct {
	OneIn
	op.Match
	Body Patch
}

// Patch is a merge patch (RFC 7396) of a trunk.
type Patch struct {
	Name             op.Change[string]       `json:"name,omitzero"`
	Kind             op.Change[string]       `json:"kind,omitzero"`
	Host             op.Change[string]       `json:"host,omitzero"`
	Port             op.Change[int]          `json:"port,omitzero"`
	Transport        op.Change[string]       `json:"transport,omitzero"`
	Username         op.Change[string]       `json:"username,omitzero"`
	Password         op.Change[string]       `json:"password,omitzero"`
	Direction        op.Change[string]       `json:"direction,omitzero"`
	ForeignNumbers   op.Change[bool]         `json:"foreign_numbers,omitzero"`
	AllowRefer       op.Change[bool]         `json:"allow_refer,omitzero"`
	FromDomain       op.Change[string]       `json:"from_domain,omitzero"`
	AllowedIPs       op.Change[[]string]     `json:"allowed_ips,omitzero"`
	Codecs           op.Change[[]string]     `json:"codecs,omitzero"`
	SRTP             op.Change[string]       `json:"srtp,omitzero"`
	MaxChannels      op.Change[int]          `json:"max_channels,omitzero"`
	CallsPerSecond   op.Change[int]          `json:"calls_per_second,omitzero"`
	Priority         op.Change[int]          `json:"priority,omitzero"`
	PrefixRules      op.Change[[]PrefixRule] `json:"prefix_rules,omitzero"`
	CallerIDMode     op.Change[string]       `json:"caller_id_mode,omitzero"`
	Enabled          op.Change[bool]         `json:"enabled,omitzero"`
	EmergencyCapable op.Change[bool]         `json:"emergency_capable,omitzero"`
	Inbound          op.Change[InboundPatch] `json:"inbound,omitzero"`
}

// InboundPatch is a merge patch of Inbound.
type InboundPatch struct {
	AllowedIPs op.Change[[]string] `json:"allowed_ips,omitzero"`
	Username   op.Change[string]   `json:"username,omitzero"`
	Password   op.Change[string]   `json:"password,omitzero"`
}

// Update changes a trunk. Passwords are kept unless the request has new ones.
func (s *Service) Update(ctx context.Context, in *UpdateIn) (*op.Out[Trunk], error) {
	var t Trunk
	err := s.db.Tx(ctx, func(tx db.Querier) (err error) {
		if t, err = get(ctx, tx, access.Org(ctx), in.ID); err != nil {
			return getError(err)
		}
		if err := in.Check(t.UpdatedAt); err != nil {
			return err
		}
		old := t
		in.Body.apply(&t)
		if err := s.sealPasswords(&t, in.Body.Password.V, in.Body.Inbound.V.Password.V); err != nil {
			return err
		}
		if wrong := append(s.violations(t, &old), in.Body.secretsAgain(old, t)...); len(wrong) > 0 {
			return op.Invalid(wrong...)
		}
		if err := s.checkNetworks(ctx, tx, t, &old); err != nil {
			return err
		}
		t.UpdatedAt = db.At(s.now())
		if err := update(ctx, tx, t); err != nil {
			return storeError(err, "change trunk")
		}
		s.publishChange(tx, t)
		return nil
	})
	if err != nil {
		return nil, err
	}
	s.addStatus(ctx, &t)
	return op.Versioned(t, t.UpdatedAt)
}

func (p Patch) apply(t *Trunk) {
	p.Name.Apply(&t.Name)
	p.Kind.Apply(&t.Kind)
	p.Host.Apply(&t.Host)
	p.Port.Apply(&t.Port)
	p.Transport.Apply(&t.Transport)
	p.Direction.Apply(&t.Direction)
	p.ForeignNumbers.Apply(&t.ForeignNumbers)
	p.AllowRefer.Apply(&t.AllowRefer)
	applyNullable(p.Username, &t.Username)
	applyNullable(p.FromDomain, &t.FromDomain)
	applyList(p.AllowedIPs, &t.AllowedIPs)
	applyList(p.Codecs, &t.Codecs)
	p.SRTP.Apply(&t.SRTP)
	p.MaxChannels.Apply(&t.MaxChannels)
	p.CallsPerSecond.Apply(&t.CallsPerSecond)
	p.Priority.Apply(&t.Priority)
	if p.PrefixRules.Set {
		t.PrefixRules = append([]PrefixRule{}, p.PrefixRules.V...)
	}
	p.CallerIDMode.Apply(&t.CallerIDMode)
	p.Enabled.Apply(&t.Enabled)
	p.EmergencyCapable.Apply(&t.EmergencyCapable)
	p.clearSecrets(t)
	p.inbound(t)
}

// secretsAgain returns the violation of a change that moves the trunk without giving its password again.
func (p Patch) secretsAgain(old, t Trunk) []op.Violation {
	if len(t.password) == 0 || p.Password.V != "" {
		return nil
	}
	return op.SecretsAgain(old.Host != t.Host || old.Port != t.Port || old.Transport != t.Transport, "password")
}

// clearSecrets removes passwords that are set to null.
func (p Patch) clearSecrets(t *Trunk) {
	if p.Password.Null {
		t.password = nil
	}
	if p.Inbound.Null || p.Inbound.V.Password.Null {
		t.inboundPassword = nil
	}
}

func (p Patch) inbound(t *Trunk) {
	if p.Inbound.Null {
		t.Inbound = Inbound{AllowedIPs: []string{}}
	}
	applyList(p.Inbound.V.AllowedIPs, &t.Inbound.AllowedIPs)
	applyNullable(p.Inbound.V.Username, &t.Inbound.Username)
}

// applyNullable applies a change to a nullable field.
func applyNullable(c op.Change[string], to **string) {
	if c.Set {
		*to = db.Null(c.V).Ptr()
	}
}

// applyList applies a change to a list; null empties it.
func applyList(c op.Change[[]string], to *[]string) {
	if c.Set {
		*to = append([]string{}, c.V...)
	}
}
