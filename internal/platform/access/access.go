// Package access has the authenticated principal of a request, and its scopes and limits.
package access

import (
	"context"
	"net/netip"
	"slices"
	"strings"
)

// Scope is one of the fifteen permissions of a credential.
type Scope string

// Scopes of the published contract. The set is closed in v1.
const (
	CallsRead       Scope = "calls:read"
	CallsWrite      Scope = "calls:write"
	ContactsRead    Scope = "contacts:read"
	ContactsWrite   Scope = "contacts:write"
	MemoryRead      Scope = "memory:read"
	UsersAdmin      Scope = "users:admin"
	NumbersAdmin    Scope = "numbers:admin"
	FlowsAdmin      Scope = "flows:admin"
	QueuesRead      Scope = "queues:read"
	QueuesAdmin     Scope = "queues:admin"
	SMSRead         Scope = "sms:read"
	SMSWrite        Scope = "sms:write"
	PartnersRead    Scope = "partners:read"
	PartnersWrite   Scope = "partners:write"
	SupervisorWrite Scope = "supervisor:write"
)

// grants defines all scopes in the order of the contract, with their descriptions.
var grants = []struct {
	Scope Scope
	Words string
}{
	{CallsRead, "view calls, CDR, transcripts, recordings, analytics, queue status"},
	{CallsWrite, "make calls, hold, transfer, DTMF, notes, tags"},
	{ContactsRead, "lookup contacts, screen pops, CRM fan-out"},
	{ContactsWrite, "create and update contacts, CRM sync"},
	{MemoryRead, "caller AI memory, semantic transcript search, insights"},
	{UsersAdmin, "add, update, remove agents, SIP credentials, DND, devices, webhooks"},
	{NumbersAdmin, "search, order, assign, release numbers"},
	{FlowsAdmin, "create and manage call flows, audio files"},
	{QueuesRead, "view queues and live stats"},
	{QueuesAdmin, "create queues, manage members and strategies"},
	{SMSRead, "view SMS messages and conversation threads"},
	{SMSWrite, "send outbound SMS"},
	{PartnersRead, "view child orgs, users, stats (aggregate only)"},
	{PartnersWrite, "create, update, suspend child orgs and their users"},
	{SupervisorWrite, "monitor live calls silently"},
}

// All returns the fifteen scopes in the order of the contract.
func All() []Scope {
	all := make([]Scope, len(grants))
	for i, g := range grants {
		all[i] = g.Scope
	}
	return all
}

// Description returns the description of a scope; empty if it is unknown.
func (s Scope) Description() string {
	for _, g := range grants {
		if g.Scope == s {
			return g.Words
		}
	}
	return ""
}

// Known reports whether s is one of the fifteen.
func (s Scope) Known() bool { return s.Description() != "" }

// Partner reports whether only partner keys may hold s.
func (s Scope) Partner() bool { return s == PartnersRead || s == PartnersWrite }

// Need is the requirement of an operation: all scopes of one of the alternatives. The zero Need is never satisfied.
type Need struct {
	alternatives [][]Scope
	open         bool
	any          bool
}

// One returns a Need for the scope s.
func One(s Scope) Need { return Need{alternatives: [][]Scope{{s}}} }

// Either returns a Need for one of the scopes.
func Either(scopes ...Scope) Need {
	var n Need
	for _, s := range scopes {
		n.alternatives = append(n.alternatives, []Scope{s})
	}
	return n
}

// Both returns a Need for all of the scopes.
func Both(scopes ...Scope) Need { return Need{alternatives: [][]Scope{scopes}} }

// Public is the Need of an operation without authentication.
var Public = Need{open: true}

// Any is the Need of an operation for any valid credential.
var Any = Need{any: true}

// IsPublic reports whether no credential is needed.
func (n Need) IsPublic() bool { return n.open }

// IsAny reports whether a credential without scopes is enough.
func (n Need) IsAny() bool { return n.any }

// Alternatives returns the sets of scopes. One set has to be held completely.
func (n Need) Alternatives() [][]Scope { return n.alternatives }

// MetBy reports whether the held scopes satisfy the need.
func (n Need) MetBy(held []Scope) bool {
	if n.open || n.any {
		return true
	}
	for _, set := range n.alternatives {
		if containsAll(held, set) {
			return true
		}
	}
	return false
}

// String returns the form in the documentation: "a | b" for Either, "a + b" for Both.
func (n Need) String() string {
	switch {
	case n.open:
		return "none"
	case n.any:
		return "any"
	}
	sets := make([]string, len(n.alternatives))
	for i, set := range n.alternatives {
		words := make([]string, len(set))
		for j, s := range set {
			words[j] = string(s)
		}
		sets[i] = strings.Join(words, " + ")
	}
	return strings.Join(sets, " | ")
}

func containsAll(held, set []Scope) bool {
	for _, s := range set {
		if !slices.Contains(held, s) {
			return false
		}
	}
	return len(set) > 0
}

// Environment is the environment of a credential: live, or the organisation's sandbox.
type Environment string

// Environments.
const (
	Live    Environment = "live"
	Sandbox Environment = "sandbox"
)

// Kind is the kind of a credential.
type Kind string

// Kinds of credentials.
const (
	StandardKey Kind = "standard"
	PartnerKey  Kind = "partner"
	OAuthToken  Kind = "oauth" // of a program that acts for a user
	// BrowserSession is a user who is signed in in a browser: on the account page, or on another page of this server.
	BrowserSession Kind = "session"
)

// Principal is the authenticated caller: an organisation, and possibly one of its users.
type Principal struct {
	OrgID       string
	HomeID      string // partner organisation if its key acts in a child organisation, otherwise empty
	UserID      string // empty for a key without a user
	UserName    string // name of the user of a browser session; empty for other credentials, which have a name of their own
	KeyID       string // or the ID of the token's grant, or of the browser session
	KeyName     string // or the name of the token's client
	Kind        Kind
	Environment Environment
	Scopes      []Scope
	Role        string // highest role that it may give to others; empty: none
	Bounds      Bounds
	Source      netip.Addr
	Limits      Limits // limits of this credential; zero: no limits
	Timezone    string // IANA time zone of the organisation; empty: UTC
	// Unconfirmed is true for a browser session whose user entered a password or code too long ago for sensitive changes.
	Unconfirmed bool
}

// SessionEnded returns the bus subject on which the end of a browser session is published.
func SessionEnded(session string) string { return "ended.session." + session }

// Home returns the organisation that the credential belongs to.
func (p Principal) Home() string {
	if p.HomeID != "" {
		return p.HomeID
	}
	return p.OrgID
}

// ActingIn returns the principal acting in another organisation with other scopes.
func (p Principal) ActingIn(org string, scopes []Scope) Principal {
	p.HomeID, p.OrgID, p.UserID, p.Scopes = p.Home(), org, "", scopes
	return p
}

type contextKey struct{}

// With returns a context with the principal.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// From returns the principal of the context; ok is false without authentication.
func From(ctx context.Context) (p Principal, ok bool) {
	p, ok = ctx.Value(contextKey{}).(Principal)
	return p, ok
}

// Org returns the organisation of the context's principal; empty without authentication. Every query uses it.
func Org(ctx context.Context) string {
	p, _ := From(ctx)
	return p.OrgID
}

// Requirement is the scope requirement of an operation: a single scope, or a Need.
type Requirement interface{ Need() Need }

// Need returns a Need for the single scope.
func (s Scope) Need() Need { return One(s) }

// Need returns n itself.
func (n Need) Need() Need { return n }

// RoleScopes returns the scopes of a role. They are also the maximum for the keys and programs of its users. Partner
// scopes belong to no role: owners and administrators of partner organisations get them.
func RoleScopes(role string) []Scope {
	switch role {
	case "owner", "admin":
		return slices.DeleteFunc(All(), Scope.Partner)
	case "supervisor":
		return []Scope{CallsRead, CallsWrite, ContactsRead, ContactsWrite, MemoryRead, QueuesRead, QueuesAdmin, SMSRead, SMSWrite,
			SupervisorWrite}
	case "agent":
		return []Scope{CallsRead, CallsWrite, ContactsRead, ContactsWrite, MemoryRead, QueuesRead, SMSRead, SMSWrite}
	case "viewer":
		return []Scope{CallsRead, ContactsRead, MemoryRead, QueuesRead, SMSRead}
	}
	return nil
}

// Intersect returns the scopes that are also in others, in their order.
func Intersect(scopes, others []Scope) []Scope {
	return slices.DeleteFunc(slices.Clone(scopes), func(s Scope) bool { return !slices.Contains(others, s) })
}
