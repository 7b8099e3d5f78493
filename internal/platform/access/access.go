// Package access says who is asking and what they may do.
package access

import (
	"context"
	"net/netip"
	"slices"
	"strings"
)

// A Scope is one of the fifteen permissions a credential can hold.
type Scope string

// The fifteen scopes of the published contract. The set is closed in v1.
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

// grants is the one list of scopes, in the order of the contract, with what each grants in words.
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

// Words says what a scope grants, or "" for an unknown one.
func (s Scope) Words() string {
	for _, g := range grants {
		if g.Scope == s {
			return g.Words
		}
	}
	return ""
}

// Known reports whether s is one of the fifteen.
func (s Scope) Known() bool { return s.Words() != "" }

// Partner reports whether only partner keys may hold s.
func (s Scope) Partner() bool { return s == PartnersRead || s == PartnersWrite }

// A Need is what an operation asks of a credential: every scope of one of its alternatives.
// The zero Need is satisfied by nobody.
type Need struct {
	alternatives [][]Scope
	open         bool
	any          bool
}

// One needs the scope s.
func One(s Scope) Need { return Need{alternatives: [][]Scope{{s}}} }

// Either needs one of the scopes.
func Either(scopes ...Scope) Need {
	var n Need
	for _, s := range scopes {
		n.alternatives = append(n.alternatives, []Scope{s})
	}
	return n
}

// Both needs all of the scopes.
func Both(scopes ...Scope) Need { return Need{alternatives: [][]Scope{scopes}} }

// Public needs no credential at all.
var Public = Need{open: true}

// Any needs a valid credential with whatever scopes.
var Any = Need{any: true}

// IsPublic reports whether no credential is needed.
func (n Need) IsPublic() bool { return n.open }

// IsAny reports whether a credential without scopes is enough.
func (n Need) IsAny() bool { return n.any }

// Alternatives lists the sets of scopes of which one must be held whole.
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

// String renders the need as documentation does: "a | b" for either, "a + b" for both.
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

// An Environment is where a credential works: live, or the organisation's sandbox twin.
type Environment string

// The two environments.
const (
	Live    Environment = "live"
	Sandbox Environment = "sandbox"
)

// A Kind says what sort of credential was shown.
type Kind string

// The kinds of credential.
const (
	StandardKey Kind = "standard"
	PartnerKey  Kind = "partner"
	OAuthToken  Kind = "oauth" // of a program that a person lets act for them
	// BrowserSession is a person on the account page.
	BrowserSession Kind = "session"
)

// A Principal is who is asking: always one organisation, sometimes one of its users.
type Principal struct {
	OrgID       string
	HomeID      string // of a partner's key that acts in a child organisation: the partner's own; else ""
	UserID      string // "" for a key without a user
	KeyID       string // or the id of the grant a token belongs to
	KeyName     string // or the name of the client a token was given to
	Kind        Kind
	Environment Environment
	Scopes      []Scope
	Source      netip.Addr
	Limits      Limits // of this credential; the zero Limits are none
	Timezone    string // of the organisation (IANA name); "" is UTC
}

// Home is the organisation the credential belongs to.
func (p Principal) Home() string {
	if p.HomeID != "" {
		return p.HomeID
	}
	return p.OrgID
}

// In is the principal acting in another organisation, with other scopes.
func (p Principal) In(org string, scopes []Scope) Principal {
	p.HomeID, p.OrgID, p.UserID, p.Scopes = p.Home(), org, "", scopes
	return p
}

type contextKey struct{}

// With returns a context that carries the principal.
func With(ctx context.Context, p Principal) context.Context {
	return context.WithValue(ctx, contextKey{}, p)
}

// From returns the principal a context carries; ok is false where nobody is authenticated.
func From(ctx context.Context) (p Principal, ok bool) {
	p, ok = ctx.Value(contextKey{}).(Principal)
	return p, ok
}

// Org returns the organisation on whose behalf the context acts, or "" where nobody is authenticated.
// Every query is made with it.
func Org(ctx context.Context) string {
	p, _ := From(ctx)
	return p.OrgID
}

// A Requirement is what an operation may be declared with: a single scope, or a Need made of several.
type Requirement interface{ Need() Need }

// Need lets a scope stand alone as a requirement.
func (s Scope) Need() Need { return One(s) }

// Need returns n itself.
func (n Need) Need() Need { return n }

// RoleScopes are what people of a role may do, and so the most that keys and programs of theirs may. Partner scopes are those of
// owners and administrators of organisations that are partners; nobody holds them by their role.
func RoleScopes(role string) []Scope {
	switch role {
	case "owner", "admin":
		return slices.DeleteFunc(All(), Scope.Partner)
	case "supervisor":
		return []Scope{CallsRead, CallsWrite, ContactsRead, ContactsWrite, MemoryRead, QueuesRead, QueuesAdmin, SMSRead, SMSWrite, SupervisorWrite}
	case "agent":
		return []Scope{CallsRead, CallsWrite, ContactsRead, ContactsWrite, MemoryRead, QueuesRead, SMSRead, SMSWrite}
	case "viewer":
		return []Scope{CallsRead, ContactsRead, MemoryRead, QueuesRead, SMSRead}
	}
	return nil
}

// Among returns those of the scopes that the others have too, in their order.
func Among(scopes, others []Scope) []Scope {
	return slices.DeleteFunc(slices.Clone(scopes), func(s Scope) bool { return !slices.Contains(others, s) })
}
