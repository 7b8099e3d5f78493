package pbx

import (
	"context"
	"strings"
	"time"

	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/trunk"
)

// A Directory says who is calling and where calls go. Its answers come from memory wherever they can: it stands on
// the way of every INVITE.
type Directory interface {
	// Caller describes the device that authenticated.
	Caller(ctx context.Context, account string) (Caller, error)
	// TrunkIn returns the trunk a call came in by.
	TrunkIn(ctx context.Context, org, id string) (TrunkIn, error)
	// User finds a user of the organisation by id; ok is false where there is none.
	User(ctx context.Context, org, id string) (d Destination, ok bool, err error)
	// Extension finds a user of the organisation; ok is false where there is none.
	Extension(ctx context.Context, org, extension string) (d Destination, ok bool, err error)
	// Number finds where a number of ours that was dialled from outside leads.
	Number(ctx context.Context, t TrunkIn, dialled string) (d Destination, ok bool, err error)
	// Outside decides whether and how a call may reach a number outside: the one gate of every path.
	Outside(ctx context.Context, c Caller, dialled string) (Exit, error)
	// Resume counts a call to the outside that a restarted node carries on; cut ends it when its channel is needed.
	Resume(org, trunkID string, began time.Time, cut func()) (release func())
	// Phones are the registered contacts of a user, reachable now or not.
	Phones(ctx context.Context, org, userID string) ([]Phone, error)
	// Contacts are those a device has registered, reachable now or not.
	Contacts(ctx context.Context, device string) ([]sip.Binding, error)
	// Login is what a trunk wants to know where it asks for a password; zero where it does not.
	Login(ctx context.Context, org, trunkID string) (sip.Credentials, error)
	// Policy is how the organisation's calls are treated.
	Policy(ctx context.Context, org string) (Policy, error)
}

// A Caller is a device of ours with its user.
type Caller struct {
	Org, DeviceID, UserID string
	Extension, Name       string
	Sandbox               bool
	Program               bool              // no person dials: an API call, an AI agent, a forward; such reach no emergency service
	SRTP                  string            // of the device: off, preferred or required
	ShowNumber            string            // E.164 of the organisation to show instead of the user's
	Metadata              map[string]string // of the call that a program asked for
	Barred                bool              // the user or the organisation is suspended: nobody can be called but emergency services
}

// TrunkAccount is the name under which signalling knows a trunk: its organisation and its id, which trunkOf takes apart.
func TrunkAccount(org, id string) string { return org + "/" + id }

func trunkOf(account string) (org, id string, ok bool) { return strings.Cut(account, "/") }

// TrunkIn is a trunk as a source of calls.
type TrunkIn struct {
	Org, ID, Country string
	Sandbox          bool
}

// A Destination is a user who can be rung.
type Destination struct {
	Org, UserID     string
	Name, Extension string
	NumberID        string // the number dialled, where it was one of ours
	TrunkID         string // that carries it
	Number          string // in E.164
	// Leads is where it leads that is no user: queue:que_…, flow:flw_… or voicemail:…; "" for users.
	Leads string
	// Led says that a script leads callers to the user from the start, After that one does once the phones rang in vain.
	Led, After bool
	Recording  string        // on or off: of calls to the number, whatever the organisation does; "" as it does
	RingFor    time.Duration // how long the phones ring before that; 0: as long as all do
	Sandbox    bool
	Barred     bool // the organisation is suspended: its numbers ring nobody
}

// A Phone is a registered contact of a device.
type Phone struct {
	DeviceID string
	Binding  sip.Binding
	SRTP     string        // off, preferred, required
	Flows    []sip.Binding // further ways to the same telephone, tried when it is not reached
}

// next is the telephone by the next of its flows, where an attempt came to nothing before it was reached; nil where there is
// none (RFC 5626 §7).
func (p *Phone) next(status int) *Phone {
	if p == nil || len(p.Flows) == 0 || status != 430 && status != 408 {
		return nil
	}
	return &Phone{DeviceID: p.DeviceID, SRTP: p.SRTP, Binding: p.Flows[0], Flows: p.Flows[1:]}
}

// An Exit is the way to a number outside, or why there is none.
type Exit struct {
	Number    string // E.164, or the emergency number as dialled
	NumberID  string // of the caller's number shown
	CallerID  string // E.164 shown to the other side
	Emergency bool
	Location  []byte // of the caller, a PIDF-LO document: for sip.Outgoing, with emergency calls
	Trunks    []TrunkOut
	Refused   *Refusal
	// Release is called when the call ends, where a place was taken; may be nil.
	Release func()
	// Placed, where it is set, is called with the call's id once the INVITE is on its way, from the ledger: it writes
	// down that an emergency call was placed.
	Placed func(ctx context.Context, callID string) error
}

// A TrunkOut is one trunk a call can leave by.
type TrunkOut struct {
	ID          string
	Target      sip.Target
	Number      string // as this trunk wants it dialled
	Domain      string // of From
	Mode        string // caller_id_mode: pai, rpid or from
	Credentials sip.Credentials
	SRTP        string   // off, preferred or required
	Codecs      []string // in order of preference; empty: all that are known
	Header      []sip.Header
	// Acquire takes a channel and reports false when none is free; release is called when the call on it ends. Cut is
	// called, on whatever goroutine, when an emergency call takes the channel away: the call is to end at once.
	Acquire func(cut func()) (release func(), ok bool)
}

// A Refusal is a call that must not be placed.
type Refusal struct {
	Status int            // for the phone
	Phrase string         // in plain words
	Reason string         // end_reason
	Gate   *trunk.Refusal // where the outbound gate refused: for programs, by its Problem
}

// A Policy is how calls are treated.
type Policy struct {
	Record    bool
	Consent   string
	Retention time.Duration
	Announce  bool   // say that the call is recorded
	Never     bool   // not even by request
	Country   string // ISO 3166, for ringing tones
}
