// Package sip implements SIP (RFC 3261) over UDP, TCP, TLS and WebSocket. It answers and places calls for the switch
// and registers phones. Media is opaque to it: SDP is passed on as bytes.
//
// # Goroutines
//
// Each Call-ID belongs to one shard. The shard handles everything of that Call-ID, one goroutine at a time, in the
// order of arrival. Event callbacks run there: they must push the event somewhere and return. Methods of Leg, Inbound
// and Server may be called from any goroutine, event callbacks included. Methods that take a context or return a
// state are the exception: they wait for an answer of the peer or for the shard, and must not be called from a
// callback.
//
// Listen, Ring, Answer, Snapshot and Invite run the shard's work in the calling goroutine before they return, unless
// another goroutine holds the shard. That includes queued work of other calls. So the caller must hold no lock that a
// callback takes.
//
// Lookups (Accounts, Bindings) and Handler.Invite run on goroutines of their own and may take their time.
// Limits.Lookups bounds their number.
package sip

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/netip"
	"time"

	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Configuration of a Server, and the interfaces that the switch implements: Handler, Accounts, Bindings.

// Config holds the settings of Listen. Only Accounts has no usable default.
type Config struct {
	// Addr is the host:port for both UDP and TCP, or a comma-separated list: "0.0.0.0:5060,[::]:5060". Empty means
	// "0.0.0.0:5060". "[::]" accepts IPv4 too, unless the list has an IPv4 address. Port 0 picks one port that is
	// free for both.
	Addr string
	// TLS enables SIP over TLS if it has an address of its own.
	TLS transport.TLSConfig
	// WebSocket configures which clients may connect to Server.WebSocket.
	WebSocket transport.WebSocketConfig
	// RootCAs verify TLS peers that the server connects to. nil means the system's certificate authorities.
	RootCAs *x509.CertPool
	// Resolver looks up names in DNS. nil means the name servers of this machine.
	Resolver resolve.Resolver
	// Targets decides to which addresses the server sends requests: next hops, answers of DNS, and the addresses that
	// peers name in Contact, Record-Route and Path. A peer's own source address is always allowed. nil allows every
	// address, for programs that act as a phone.
	Targets resolve.Targets
	// OnBan is called for each ban, on a goroutine that may wait. It may be nil.
	OnBan func(source netip.Addr, until time.Time, why string)
	// Tracer gets every message, with secrets redacted. It runs in the goroutine that reads or writes the message, so
	// it must return at once. nil costs nothing.
	Tracer transport.Tracer
	// PublicIP is advertised in Via and Contact to peers of its family, PublicIP6 to peers of the other family. If
	// unset, the bound address is advertised, or the source address of packets to the peer.
	PublicIP, PublicIP6 netip.Addr
	// Edges are the networks of proxies in front of this server. The source of what they forward is what the proxy wrote
	// into the second Via (received, rport). Nobody else may send from there.
	Edges []netip.Prefix
	// Node is the name of this server among those that share its Bindings; "" if it is alone.
	Node string
	// Realm is the digest realm. Empty means "sip".
	Realm string
	// Names are additional host names that phones use for this server.
	Names []string
	// Accounts looks up the devices and trunks that may call.
	Accounts Accounts
	// Bindings stores registrations. If nil, REGISTER is answered 405.
	Bindings Bindings
	// OnMessage receives each MESSAGE of an account or a trunk, on a goroutine of its own. If nil, MESSAGE is
	// answered 405.
	OnMessage func(ctx context.Context, m *Message)
	// IsUrgent reports, from the user part of the request URI, that a call is admitted even if others are refused,
	// such as an emergency call. It runs for each refused INVITE and must be cheap. nil means no call is urgent.
	IsUrgent func(called string) bool
	// EventPackages lists the event packages that accounts may subscribe to (RFC 6665). If empty, SUBSCRIBE is
	// answered 405.
	EventPackages []EventPackage
	// SessionExpires is the session interval (RFC 4028): a dialog ends if no refresh arrives within it. 0 means 30
	// min, the minimum is 90 s, and a negative value disables session timers.
	SessionExpires time.Duration
	// NATKeepalive is the interval of OPTIONS requests to phones behind NAT that registered by UDP. They keep the NAT
	// binding open for incoming calls. 0 disables them.
	NATKeepalive time.Duration
	Limits       Limits
	Logger       *slog.Logger
	Now          func() time.Time
}

// Limits bounds the load that the outside world can cause. A zero value means the default given here. A new INVITE
// beyond a limit gets 503 with Retry-After. Traffic inside dialogs is never refused.
type Limits struct {
	Calls             int           // inbound calls in progress, 20,000
	InvitesPerSecond  int           // new INVITEs, 4,000; the retry with credentials counts too
	QueueDepth        int           // messages waiting per shard, 8,192; new INVITEs are refused at a quarter
	Lookups           int           // Handler.Invite calls and account lookups in progress, 4,000
	SourcePerSecond   int           // requests outside dialogs per untrusted source, 200
	FailedLogins      int           // wrong passwords per source and minute before it is banned, 30
	AccountFailures   int           // wrong passwords for one account from unknown sources, 20; then one every 30 s
	Probes            int           // fruitless requests per untrusted source and minute before it is banned, 100
	BanFor            time.Duration // duration of the first ban, 5 min; each further one is twice as long
	MaxBan            time.Duration // longest ban, 24 h
	Connections       int           // TCP, TLS and WebSocket connections, 20,000
	SourceConnections int           // connections of one source over which nobody authenticated, 64; 512 where a phone or trunk is
	MessageBytes      int           // largest message over a connection, 65,535
	Contacts          int           // bindings per account, 10
	Subscriptions     int           // subscriptions per account, 100; a new one replaces the oldest
	RetryAfter        time.Duration // value of Retry-After in a 503, 5 s
	BrowserTimeout    time.Duration // after which the registration of a WebSocket without a connection ends; 0: when it expires
	PingInterval      time.Duration // interval of WebSocket pings and timeout of the pong, 30 s
}

// Handler is implemented by the switch. Calls may arrive before Listen returns. A Handler that places calls also has
// a method Serve(*Server); Listen calls it before the first call.
type Handler interface {
	// Invite is called for each new INVITE from an authenticated account or a trunk, on a goroutine of its own. 100
	// Trying is sent at the same time: see Inbound.AwaitTrying. The call must end in Answer or Reject, now or later,
	// from any goroutine. ctx ends when the Server closes.
	Invite(ctx context.Context, in *Inbound)
}

// Accounts looks up callers. Its methods may take milliseconds. An error is answered with 503.
type Accounts interface {
	// Credentials returns the account with a digest user name, or false if there is none.
	Credentials(ctx context.Context, username string) (Account, bool, error)
	// Trunk returns the trunk that a source address belongs to. Its calls are accepted without a challenge. It is
	// called for each call and must bound its own duration.
	Trunk(ctx context.Context, source netip.AddrPort, transport sipmsg.Transport) (trunkID string, ok bool)
	// IsSourceOf reports whether a trunk's carrier sends from a source address. It is called for a request inside a dialog
	// of the trunk that comes from another address than the dialog's.
	IsSourceOf(ctx context.Context, trunkID string, source netip.AddrPort) bool
	// Exempt reports whether a source is never banned: it is known to be a carrier's, not only listed by somebody.
	Exempt(ctx context.Context, source netip.Addr) bool
}

// Account is a device that authenticates with digest.
type Account struct {
	ID         string
	HA1MD5     string // hex MD5(username:realm:password)
	HA1SHA256  string // hex SHA-256(username:realm:password), may be empty
	WantSHA256 bool   // challenge with SHA-256 instead of MD5 (RFC 8760)
	// TokenGeneration is the generation of the tokens that are valid now. A connection whose token has an earlier one is closed.
	TokenGeneration int64
	Barred          bool // may not register or send messages; the switch decides about its calls
}

// Bindings stores registered contacts. Save replaces all bindings of an account; an empty slice removes them. Lose does the same after
// a browser became unreachable at a time without its person turning it off. One Server never calls these and Load of one account at the
// same time.
type Bindings interface {
	Save(ctx context.Context, account string, bindings []Binding) error
	Lose(ctx context.Context, account string, left []Binding, at time.Time) error
	Load(ctx context.Context, account string) ([]Binding, error)
}

// Binding is one registered contact of an account and the flow to reach it.
type Binding struct {
	Account    string         // id of the account; may be empty, except to call a phone
	Contact    string         // URI as sent by the phone: the request URI of calls to it
	Source     netip.AddrPort // source address of its REGISTER: calls are sent there (NAT)
	Transport  sipmsg.Transport
	Flow       uint64   // connection of the REGISTER; 0 for UDP
	Node       string   // Config.Node of the server that received the REGISTER; "" if unknown
	Path       []string // RFC 3327: route URIs between server and phone, nearest first
	Instance   string   // +sip.instance and reg-id, empty if not given (RFC 5626)
	CallID     string
	CSeq       uint32
	Priority   int // q × 1000
	UserAgent  string
	Expires    time.Time
	Registered time.Time // last refresh
}

// AnySource is an Accounts for programs that only act as a phone. It accepts every INVITE from any source; no account
// can authenticate.
type AnySource struct{}

// Credentials always returns false.
func (AnySource) Credentials(context.Context, string) (Account, bool, error) {
	return Account{}, false, nil
}

// Exempt exempts every source from bans.
func (AnySource) Exempt(context.Context, netip.Addr) bool { return true }

// IsSourceOf accepts every source.
func (AnySource) IsSourceOf(context.Context, string, netip.AddrPort) bool { return true }

// Trunk accepts every source, with an empty trunk id.
func (AnySource) Trunk(context.Context, netip.AddrPort, sipmsg.Transport) (string, bool) {
	return "", true
}
