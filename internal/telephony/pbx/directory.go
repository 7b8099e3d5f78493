package pbx

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"soniq/internal/platform/limit"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/telephony/trunk"
)

// Every INVITE waits for the directory, so its answers come from memory if possible. Package directory implements the
// three interfaces.

// Identity finds the callers and callees of a call.
type Identity interface {
	// Caller returns the authenticated device and its user.
	Caller(ctx context.Context, account string) (Caller, error)
	// TrunkIn returns the trunk of an inbound call.
	TrunkIn(ctx context.Context, org, id string) (TrunkIn, error)
	// TrunkCallEstablished is called when a trunk's carrier acknowledged our answer to its call.
	TrunkCallEstablished(ctx context.Context, org, trunkID string, source netip.Addr) error
	// User returns a user of the organisation by id; ok is false if the user does not exist.
	User(ctx context.Context, org, id string) (d Destination, ok bool, err error)
	// Extension returns the user with an extension; ok is false if the extension is not assigned.
	Extension(ctx context.Context, org, extension string) (d Destination, ok bool, err error)
	// Policy returns the organisation's settings for calls.
	Policy(ctx context.Context, org string) (Policy, error)
	// SimulatedCall returns the id that a call of a simulated caller gets, by the address from which it comes. ok is false for
	// other calls.
	SimulatedCall(source netip.AddrPort) (id string, ok bool)
	// IsAlone reports whether the installation has no other organisation. It costs a map look-up and does not fail.
	IsAlone(ctx context.Context) bool
}

// Routes resolves called numbers, and finds the phones of users.
type Routes interface {
	// Number returns the destination of one of our numbers that was dialled from outside.
	Number(ctx context.Context, t TrunkIn, dialled string) (d Destination, ok bool, err error)
	// Phones returns the registered contacts of a user, reachable or not.
	Phones(ctx context.Context, org, userID string) ([]Phone, error)
	// Contacts returns the registered bindings of a device, reachable or not.
	Contacts(ctx context.Context, device string) ([]sip.Binding, error)
}

// Outbound decides about calls to external numbers.
type Outbound interface {
	// RouteOutbound decides whether and how a call may reach an external number. Every outbound path goes through it.
	RouteOutbound(ctx context.Context, c Caller, dialled string) (OutboundRoute, error)
	// ShownNumber returns the number that a call shows, in E.164, with its id; empty if the organisation has none.
	ShownNumber(ctx context.Context, c Caller) (e164, id string, err error)
	// Resume counts an outbound call that continues after a restart. cut ends the call if its channel is needed
	// for an emergency call.
	Resume(org, trunkID string, began time.Time, cut func()) (release func())
	// Login returns the credentials of a trunk that challenges requests; zero if it does not.
	Login(ctx context.Context, org, trunkID string) (digest.Credentials, error)
}

// Caller is a device of the organisation and its user. A restart stores it as JSON under these field names.
type Caller struct {
	Org, DeviceID, UserID string
	Extension, Name       string
	Sandbox               bool
	Program               bool              // placed by software: API, AI agent or forward; emergency numbers are refused
	Recorded, Unrecorded  bool              // the user's calls are or are not; neither: as the organisation
	SRTP                  string            // setting of the device: off, preferred or required
	ShowNumber            string            // E.164 number of the organisation to present instead of the user's
	Metadata              map[string]string // metadata of a call placed by API
	Barred                bool              // user or organisation suspended: only emergency calls are allowed
}

// recording returns on or off for calls of the user, or "" for the setting of the organisation.
func (c Caller) recording() string {
	switch {
	case c.Recorded:
		return "on"
	case c.Unrecorded:
		return "off"
	}
	return ""
}

// TrunkAccount returns the account name of a trunk in the SIP server: organisation and id. trunkOf splits it.
func TrunkAccount(org, id string) string { return org + "/" + id }

func trunkOf(account string) (org, id string, ok bool) { return strings.Cut(account, "/") }

// TrunkIn is a trunk that calls come in by.
type TrunkIn struct {
	Org, ID, Country string
	Sandbox          bool
	Source           netip.Addr // where the call came from
	AllowRefer       bool       // its peer may transfer calls
	Registers        bool       // the request URI of its calls is our contact, not always the dialled number
}

// Destination is a user, or another target of an extension or number of the organisation.
type Destination struct {
	Org, UserID     string
	Name, Extension string
	NumberID        string // the dialled number, if it belongs to the organisation
	TrunkID         string // trunk of that number
	Number          string // in E.164
	// Target is a destination other than a user: queue:que_…, flow:flw_… or voicemail:…; empty for users.
	Target string
	// ScriptFirst routes callers to a script at once. ScriptAfterNoAnswer routes them to a script after the phones
	// did not answer.
	ScriptFirst, ScriptAfterNoAnswer bool
	Recording                        string        // on or off for calls to the number or the user; empty: as the organisation
	RingFor                          time.Duration // ring time before the script; 0: the normal ring time
	RingChosen                       bool          // the user chose RingFor: it may exceed the normal ring time
	Sandbox                          bool
	Barred                           bool // the organisation is suspended: its numbers do not ring
}

// A Phone is a registered contact of a device.
type Phone struct {
	DeviceID string
	Binding  sip.Binding
	SRTP     string        // off, preferred, required
	Flows    []sip.Binding // other flows to the same phone (RFC 5626), tried if the first fails
}

// next returns the phone with the next of its flows if an attempt failed before it reached the phone (RFC 5626 §7).
// It returns nil if no flow is left or another status came.
func (p *Phone) next(status int) *Phone {
	if p == nil || len(p.Flows) == 0 || status != 430 && status != 408 {
		return nil
	}
	return &Phone{DeviceID: p.DeviceID, SRTP: p.SRTP, Binding: p.Flows[0], Flows: p.Flows[1:]}
}

// OutboundRoute is a permitted route to an external number, or the reason of a refusal.
type OutboundRoute struct {
	Number    string // E.164, or the emergency number as dialled
	NumberID  string // ID of the presented number
	CallerID  string // presented number in E.164
	Name      string // presented with CallerID; empty: the caller's own
	Emergency bool
	Location  []byte // caller's location as PIDF-LO, sent with emergency calls
	Trunks    []TrunkOut
	Refused   *Refusal
	// Release is called when the call ends and returns a reserved place in the limits. It may be nil.
	Release func()
	// OnPlaced is called with the call's ID from the write queue after the INVITE was sent. It records that an
	// emergency call was placed. It may be nil.
	OnPlaced func(ctx context.Context, callID string) error
}

// TrunkOut is a trunk for an outbound call.
type TrunkOut struct {
	ID          string
	Target      resolve.Target
	Number      string // number in the format of this trunk
	Domain      string // domain of the From header
	Mode        string // caller_id_mode: pai, rpid or from
	Credentials digest.Credentials
	SRTP        string   // off, preferred or required
	Codecs      []string // in order of preference; empty: all supported codecs
	Header      []sip.Header
	// Acquire takes a channel and reports false if none is free; release is called when the call ends. Cut is
	// called on any goroutine when an emergency call takes the channel. The call has to end at once.
	Acquire func(cut func()) (release func(), ok bool)
}

// Refusal is the reason why a call is not placed.
type Refusal struct {
	Status    int            // SIP status for the phone
	Phrase    string         // plain text
	Elsewhere bool           // the phones are connected to another node
	Reason    string         // end_reason
	Gate      *trunk.Refusal // refusal of the outbound gate; its Problem is the API error
	Limit     *limit.Limit   // limit that refuses the call; nil if none does
}

// RecordingNotice describes the notice that is played before a recording.
type RecordingNotice struct {
	Required bool   // no recording may begin without the notice, not even by request
	Audio    string // audio of the notice; empty: a spoken text
	Text     string // empty: the standard text
	Language string // BCP 47
}

// Policy is the organisation's settings for calls.
type Policy struct {
	Record    bool
	Announce  bool // play a notice that the call is recorded
	Never     bool // recording is not allowed, not even by request
	Consent   string
	Retention time.Duration
	Notice    *RecordingNotice // nil: the standard text in English
	Country   string           // ISO 3166, selects the ringing tone
}

// choose sets whether the call is recorded by the first mode that is on or off; without one the policy stays as it is.
func (p *Policy) choose(modes ...string) {
	for _, m := range modes {
		if m == "on" || m == "off" {
			p.Record = m == "on" && !p.Never
			return
		}
	}
}
