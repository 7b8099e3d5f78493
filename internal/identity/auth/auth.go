// Package auth creates and verifies API keys, and is the OAuth 2.1 authorization server.
package auth

import (
	"cmp"
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/platform/seal"
)

// Key is an API key as the API returns it. It holds the key itself only when it was just created.
type Key struct {
	ID          string         `json:"id" example:"key_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	Name        string         `json:"name"`
	Kind        access.Kind    `json:"kind" enum:"standard,partner"`
	Environment string         `json:"environment" enum:"live,test"`
	Prefix      string         `json:"prefix" doc:"How the key begins" example:"soniq_live_x7B"`
	Hint        string         `json:"key_hint" doc:"How the key ends"`
	Secret      *string        `json:"key,omitempty" secret:"true" doc:"The key; given once, when it is made"`
	Scopes      []access.Scope `json:"scopes" nullable:"false"`
	UserID      *string        `json:"user_id"`
	AllowedIPs  []string       `json:"allowed_ips" nullable:"false" doc:"Networks it may be used from; empty: any"`
	ExpiresAt   db.Time        `json:"expires_at" nullable:"true"`
	LastUsedAt  db.Time        `json:"last_used_at" nullable:"true"`
	LastUsedIP  *string        `json:"last_used_ip"`
	CreatedBy   string         `json:"created_by" doc:"The key it was made with, or console"`
	CreatedAt   db.Time        `json:"created_at"`
	RevokedAt   db.Time        `json:"revoked_at" nullable:"true" doc:"It does not work from then on; in the future while a rotated key may still be used"`
	RotatesTo   *string        `json:"rotates_to"`

	orgID      string
	networks   []netip.Prefix
	role       string // highest role that it may give: that of its maker
	userRole   string // current role of the key's user
	userStatus string
}

// environment returns the environment of the key.
func (k Key) environment() access.Environment {
	if k.Environment == "test" {
		return access.Sandbox
	}
	return access.Live
}

// Request describes a key to create.
type Request struct {
	OrgID       string // a sandbox key is created for the sandbox twin of this organisation
	Name        string
	Kind        access.Kind        // standard when empty
	Environment access.Environment // live when empty
	Scopes      []access.Scope
	UserID      string
	AllowedIPs  []string
	ExpiresAt   db.Time
	CreatedBy   string // console when empty
	Role        string // highest role that the key may give; owner when empty
}

// Changed is the bus subject on which the digest of a changed key is published.
const Changed = "changed.api_keys"

const keyCacheTTL = 3 * time.Second

// Service creates and verifies API keys and access tokens. It is safe for concurrent use.
type Service struct {
	db        *db.DB
	orgs      *org.Service
	seal      *seal.Seal
	bus       *bus.Bus
	now       func() time.Time
	brand     string
	keyCache  *bus.Cache[Key]
	heldCache *bus.Cache[[]access.Scope] // current scopes of holders
	lastUses  lastUses
}

// New returns a service. brand is the first word of every key.
func New(d *db.DB, orgs *org.Service, s *seal.Seal, b *bus.Bus, now func() time.Time, brand string) *Service {
	return &Service{db: d, orgs: orgs, seal: s, bus: b, now: now, brand: brand,
		keyCache:  bus.NewCache[Key](b, Changed, keyCacheTTL, now),
		heldCache: bus.NewCache[[]access.Scope](b, Changed, keyCacheTTL, now), lastUses: lastUses{last: map[string]lastUse{}}}
}

// CreateKey creates a key and returns it with its secret. The database keeps only a digest of the secret.
func (s *Service) CreateKey(ctx context.Context, r Request) (Key, error) {
	var k Key
	if wrong := r.violations(s.now()); len(wrong) > 0 {
		return k, op.Invalid(wrong...)
	}
	err := s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		owner := r.OrgID
		if r.Environment == access.Sandbox {
			if owner, err = s.orgs.Twin(ctx, owner); err != nil {
				return fmt.Errorf("find sandbox twin: %w", err)
			}
		}
		k, err = s.createKey(ctx, tx, owner, r)
		return err
	})
	return k, err
}

func (s *Service) createKey(ctx context.Context, tx db.Querier, owner string, r Request) (Key, error) {
	secret := newToken(s.brand, r.kind(), r.Environment)
	shown := len(prefix(s.brand, r.kind(), r.Environment)) + 3
	k := Key{ID: db.NewID("key"), Name: r.Name, Kind: r.kind(), Environment: "live", Prefix: secret[:shown],
		Hint: secret[len(secret)-4:], Secret: &secret, Scopes: r.Scopes, UserID: db.Null(r.UserID).Ptr(),
		AllowedIPs: r.AllowedIPs, ExpiresAt: r.ExpiresAt, CreatedBy: r.CreatedBy, CreatedAt: db.At(s.now()), orgID: owner,
		role: cmp.Or(r.Role, access.MostTrusted)}
	if r.Environment == access.Sandbox {
		k.Environment = "test"
	}
	if k.CreatedBy == "" {
		k.CreatedBy = "console"
	}
	if k.AllowedIPs == nil {
		k.AllowedIPs = []string{}
	}
	err := insert(ctx, tx, k, s.seal.Digest(secret))
	if db.IsForeignKey(err) {
		return k, op.Invalid(op.Field("user_id", "not_found", "no such user"))
	}
	if err != nil {
		return k, fmt.Errorf("make key: %w", err)
	}
	return k, nil
}

func (r Request) kind() access.Kind {
	if r.Kind == "" {
		return access.StandardKey
	}
	return r.Kind
}

// violations lists every violation of a request.
func (r Request) violations(now time.Time) []op.Violation {
	var wrong []op.Violation
	bad := func(field, code, message string) { wrong = append(wrong, op.Field(field, code, message)) }
	if n := len([]rune(strings.TrimSpace(r.Name))); n < 1 || n > 120 {
		bad("name", "invalid_length", "must have 1 to 120 characters")
	}
	if len(r.Scopes) == 0 {
		bad("scopes", "required", "must name at least one scope")
	}
	for _, s := range r.Scopes {
		switch {
		case !s.Known():
			bad("scopes", "unknown_scope", string(s)+" is not a scope")
		case s.Partner() && r.kind() != access.PartnerKey:
			bad("scopes", "partner_scope", string(s)+" is for partner keys only")
		}
	}
	for _, ip := range r.AllowedIPs {
		if _, err := network(ip); err != nil {
			bad("allowed_ips", "invalid_network", ip+" is neither an address nor a network such as 192.0.2.0/24")
		}
	}
	if !r.ExpiresAt.IsZero() && !r.ExpiresAt.After(now) {
		bad("expires_at", "in_the_past", "must be in the future")
	}
	return wrong
}

// network parses an address or a CIDR network.
func network(text string) (netip.Prefix, error) {
	if a, err := netip.ParseAddr(text); err == nil {
		a = a.Unmap()
		return netip.PrefixFrom(a, a.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err == nil && p.Addr().Is4In6() && p.Bits() >= 96 { // IPv4 sources are compared as IPv4
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), err
}

// ParseScopes parses a list such as "calls:read,users:admin". "all" means every scope that a key of this kind may
// hold.
func ParseScopes(list string, kind access.Kind) ([]access.Scope, error) {
	var scopes []access.Scope
	if list == "all" {
		return slices.DeleteFunc(access.All(), func(s access.Scope) bool {
			return s.Partner() && kind != access.PartnerKey
		}), nil
	}
	for word := range strings.SplitSeq(list, ",") {
		s := access.Scope(strings.TrimSpace(word))
		if !s.Known() {
			return nil, fmt.Errorf("%q is not a scope", word)
		}
		if !slices.Contains(scopes, s) {
			scopes = append(scopes, s)
		}
	}
	return scopes, nil
}
