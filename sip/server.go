package sip

import (
	"context"
	"net/netip"
	"time"
)

// Server is a SIP endpoint on one port, UDP and TCP.
type Server struct{}

// Listen opens the sockets and starts serving; h gets the calls. The Server
// ends by Close, or with ctx.
func Listen(ctx context.Context, c Config, h Handler) (*Server, error) { return nil, ErrClosed }

// Addr is the bound address; the port is the same for UDP and TCP.
func (s *Server) Addr() netip.AddrPort { return netip.AddrPort{} }

// Drain refuses new INVITEs with 503 and Retry-After from now on; everything
// inside dialogs goes on.
func (s *Server) Drain() {}

// Close stops serving and waits for every goroutine. Legs still alive get Lost
// and nothing more is sent for them. The second call does nothing.
func (s *Server) Close() error { return nil }

// Stats returns the counters.
func (s *Server) Stats() Stats { return Stats{} }

// Invite places a call and reports on it through on. ctx bounds the name
// look-up of the next hop only. The first event may come before Invite returns.
func (s *Server) Invite(ctx context.Context, o Outgoing, on func(Event)) (*Leg, error) {
	return nil, ErrClosed
}

// Reachable tells whether a call can be sent to b: always for UDP, for TCP
// while its connection is open.
func (s *Server) Reachable(b Binding) bool { return false }

// Registration is what Register needs.
type Registration struct {
	Registrar   Target
	AOR         string // "sip:alice@example.com"
	Credentials Credentials
	Expires     time.Duration   // asked for, 1 h when 0; the registrar may shorten it
	OnChange    func(err error) // each refresh: nil when registered, else why not; may be nil
}

// Registered is a registration that is kept alive.
type Registered struct{}

// Register registers and returns when that succeeded; it is then refreshed
// until ctx ends or Unregister is called, whichever is first, and removed at
// the registrar.
func (s *Server) Register(ctx context.Context, r Registration) (*Registered, error) {
	return nil, ErrClosed
}

// Unregister removes the registration and waits until that is answered.
func (r *Registered) Unregister(ctx context.Context) error { return nil }
