// Package sip speaks SIP over UDP, TCP, TLS and WebSocket: it answers and places calls for the
// switch, registers phones, and knows media only as SDP bytes.
//
// # Goroutines
//
// Everything that belongs to one Call-ID is handled in one shard, by one
// goroutine at a time, in the order it came off the wire. Event callbacks run
// there: they must push the event somewhere and return. Methods of Leg, Inbound
// and Server may be called from any goroutine, event callbacks included, except
// those that take a context or return a state: they wait, for an answer of the
// other side or for the shard, and must not be called from a callback.
//
// Listen, Ring, Answer, Snapshot and Invite do what the shard has to do, and
// what waits there for others too, before they return, where nobody is at it:
// who calls them must hold no lock that a callback takes.
//
// Lookups (Accounts, Bindings) and Handler.Invite run on goroutines of their
// own and may take their time; their number is bounded by Limits.Lookups.
package sip

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/netip"
	"time"
)

// Config is what Listen needs. Only Accounts has no usable default.
type Config struct {
	// Addr is the host:port for UDP and TCP alike, or several with commas:
	// "0.0.0.0:5060,[::]:5060". "0.0.0.0:5060" when empty. "[::]" takes IPv4 too
	// unless the list names it. Port 0 picks one port that is free for both.
	Addr string
	// TLS is listened for when it has an address of its own.
	TLS TLSConfig
	// Web is who may connect to Server.WebSocket.
	Web WebConfig
	// RootCAs prove TLS peers we connect to; nil: the system's.
	RootCAs *x509.CertPool
	// Resolver answers where names lead; nil: the name servers of this machine.
	Resolver Resolver
	// OnBan is told each ban; it runs on a goroutine that may wait.
	OnBan func(source netip.Addr, until time.Time, why string)
	// Trace is told every message, secrets replaced. It runs where messages are
	// read and written: it must return at once. nil costs nothing.
	Trace func(TraceEntry)
	// PublicIP is advertised in Via and Contact to peers of its family,
	// PublicIP6 to those of the other one. When unset the bound address is used,
	// or the one that packets to the peer leave from.
	PublicIP, PublicIP6 netip.Addr
	// Realm is the digest realm, "sip" when empty.
	Realm string
	// Names are further hosts by which phones know this server.
	Names []string
	// Accounts knows the devices and trunks that may call.
	Accounts Accounts
	// Bindings keeps registrations; without it REGISTER is answered 405.
	Bindings Bindings
	// OnMessage gets each MESSAGE of an account or a trunk, on a goroutine of
	// its own; without it MESSAGE is answered 405.
	OnMessage func(ctx context.Context, m *Message)
	// Urgent tells of the user part of a request URI that calls to it are to be
	// let in where others are refused: it must cost little. nil: none are.
	Urgent func(called string) bool
	// Topics are what accounts may subscribe to (RFC 6665); without them
	// SUBSCRIBE is answered 405.
	Topics []Topic
	// SessionExpires is how long a dialog lives without a sign of life
	// (RFC 4028): 30 min when 0, at least 90 s, below 0 never ends.
	SessionExpires time.Duration
	// KeepAlive is how often phones behind routers that registered by UDP are
	// asked something, so that calls find them; 0 never asks.
	KeepAlive time.Duration
	Limits    Limits
	Logger    *slog.Logger
	Now       func() time.Time
}

// Limits bounds what the outside world can make a Server do. Zero values mean
// the defaults given here. New INVITEs beyond a limit get 503 with Retry-After;
// traffic inside dialogs is never refused.
type Limits struct {
	Calls             int           // inbound calls in progress, 20,000
	InvitesPerSecond  int           // new INVITEs, the re-sent one with credentials included, 4,000
	QueueDepth        int           // messages waiting per shard, 8,192; new INVITEs are refused at a quarter
	Lookups           int           // Handler.Invite and account look-ups under way, 4,000
	SourcePerSecond   int           // requests outside dialogs per source that never authenticated, 200
	FailedLogins      int           // wrong passwords per source and minute before it is banned, 30
	AccountFailures   int           // wrong passwords for one account from where it never logged in, then one every 30 s, 20
	Probes            int           // requests per stranger and minute that come to nothing before it is banned, 100
	BanFor            time.Duration // silence for a banned source, 5 min, doubled each time
	BanMost           time.Duration // the longest silence, 24 h
	Connections       int           // TCP, TLS and WebSocket connections, 20,000
	SourceConnections int           // those of one source that never authenticated, 64
	MessageBytes      int           // largest message over a connection, 65,535
	Contacts          int           // bindings per account, 10
	Subscriptions     int           // those of one account; the oldest gives way to a new one, 100
	RetryAfter        time.Duration // told with a 503, 5 s
	Ping              time.Duration // how often a WebSocket is pinged, and how long the pong may take, 30 s
}

// Handler is the switch. Calls may come before Listen returns: a Handler that
// places calls has a method Serve(*Server) too, and Listen calls it before the
// first call.
type Handler interface {
	// Invite is called for each new INVITE from an authenticated account or a
	// trunk, on a goroutine of its own. 100 Trying has been sent. It must end
	// in Answer or Reject, now or later, from any goroutine. ctx ends when the
	// Server closes.
	Invite(ctx context.Context, in *Inbound)
}

// Accounts finds who may call. Its methods may take milliseconds; an error is
// answered with 503.
type Accounts interface {
	// Credentials returns the account with a digest user name; false when
	// there is none.
	Credentials(ctx context.Context, username string) (Account, bool, error)
	// Trunk returns the trunk a source address belongs to. Its calls are
	// accepted without a challenge. It is asked with each call, and bounds
	// itself how long it looks.
	Trunk(ctx context.Context, source netip.AddrPort, transport Transport) (trunkID string, ok bool)
}

// Account is a device that logs in with digest.
type Account struct {
	ID         string
	HA1MD5     string // hex MD5(username:realm:password)
	HA1SHA256  string // hex SHA-256(username:realm:password), may be empty
	WantSHA256 bool   // challenge with SHA-256 instead of MD5 (RFC 8760)
	Barred     bool   // may not register nor send messages; its calls are the switch's to judge
}

// Bindings keeps what devices registered. Save replaces all bindings of an
// account; an empty slice removes them. Save and Load of one account are never
// called at the same time by one Server.
type Bindings interface {
	Save(ctx context.Context, account string, bindings []Binding) error
	Load(ctx context.Context, account string) ([]Binding, error)
}

// Binding is one registered contact of an account and the way back to it.
type Binding struct {
	Contact    string         // URI as the phone gave it: the request URI of calls to it
	Source     netip.AddrPort // where its REGISTER came from: where calls are sent (NAT)
	Transport  Transport
	Flow       uint64   // the connection it came over; 0 for UDP
	Path       []string // RFC 3327: route URIs between us and the phone, nearest first
	Instance   string   // +sip.instance and reg-id, empty when not given (RFC 5626)
	CallID     string
	CSeq       uint32
	Priority   int // q × 1000
	UserAgent  string
	Expires    time.Time
	Registered time.Time // last refresh
}

// AnySource is an Accounts for programs that only play a phone: every INVITE
// is taken, from anywhere, and nobody can log in.
type AnySource struct{}

// Credentials finds nobody.
func (AnySource) Credentials(context.Context, string) (Account, bool, error) {
	return Account{}, false, nil
}

// Trunk accepts every source, with an empty trunk id.
func (AnySource) Trunk(context.Context, netip.AddrPort, Transport) (string, bool) { return "", true }
