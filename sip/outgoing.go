package sip

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"
)

// Outgoing is a call to place.
type Outgoing struct {
	// Binding, when set, is a registered phone: the request goes the way its
	// REGISTER came, over the same TCP connection, and URI defaults to its
	// Contact.
	Binding *Binding
	// URI is the request URI, "sip:+49301234567@carrier.example".
	URI string
	// NextHop is where to send when Binding is nil; empty: to the URI's host.
	NextHop Target
	// From and To are the header fields; a host left empty is our own address
	// in From and the URI's host in To.
	From, To Address
	// Identity becomes P-Asserted-Identity (RFC 3325) when it has a user.
	Identity Address
	// RemoteParty becomes Remote-Party-ID when it has a user.
	RemoteParty Address
	// Anonymous adds "Privacy: id" (RFC 3323).
	Anonymous bool
	// Diversion and HistoryInfo are who the call was diverted from, the last
	// one first, in the form the other side reads (RFC 5806, RFC 7044).
	Diversion, HistoryInfo []Address
	// ReferredBy is the Referred-By of the transfer this call is made for
	// (RFC 3892).
	ReferredBy string
	// ReplacesDialog is the Replaces value of a dialog at the other side that
	// this call takes the place of (RFC 3891).
	ReplacesDialog string
	// Header holds further header fields, in order.
	Header []Header
	// SDP is the offer; nil makes it a late offer.
	SDP []byte
	// Credentials answer a digest challenge.
	Credentials Credentials
	// CallID is made up when empty. It must be unique.
	CallID string
	// MaxForwards is that of the inbound leg less one; 0 means 70.
	MaxForwards int
	// RingTimeout cancels when no final answer came; 0 means 5 minutes.
	RingTimeout time.Duration
}

// Target is a next hop. Host may carry a port; 5060 when it does not.
type Target struct {
	Host      string
	Transport Transport // UDP when empty
}

// Credentials are a digest user name and password.
type Credentials struct {
	Username, Password string
}

// Header is one header field, for those this package has no name for.
type Header struct {
	Name, Value string
}

// Reason tells why a leg is hung up (RFC 3326).
type Reason struct {
	Q850 int // cause, 16 is normal clearing; 0 sends no Reason header
	Text string
}

// route is where an outgoing request goes.
type route struct {
	uri    URI
	target string // request URI as text
	routes []string
	flow   flow
	callID string
}

// Invite places a call and reports on it through on. ctx bounds the name
// look-up of the next hop only. The first event may come before Invite returns.
func (s *Server) Invite(ctx context.Context, o Outgoing, on func(Event)) (*Leg, error) {
	r, err := s.route(ctx, &o)
	if err != nil {
		return nil, fmt.Errorf("sip: invite %s: %w", o.URI, err)
	}
	l, err := s.shardOf(r.callID).outgoingLeg(&o, r, on)
	if err != nil {
		return nil, err
	}
	if !l.shard.post(func(*shard) { l.dial() }) {
		return nil, ErrClosed
	}
	return l, nil
}

func (s *Server) route(ctx context.Context, o *Outgoing) (r route, err error) {
	r = route{target: o.URI, callID: o.CallID}
	if o.Binding != nil && r.target == "" {
		r.target = o.Binding.Contact
	}
	if r.uri, err = ParseURI(r.target); err != nil {
		return r, err
	}
	if r.callID == "" {
		r.callID = newCallID()
	}
	if !isToken(r.callID) {
		return r, fmt.Errorf("call id %q is not a token", r.callID)
	}
	if o.Binding != nil {
		r.flow = s.bindingFlow(o.Binding)
		for _, p := range o.Binding.Path {
			r.routes = append(r.routes, "<"+p+">")
		}
		return r, nil
	}
	r.flow, err = s.resolve(ctx, o.NextHop, r.uri)
	return r, err
}

// bindingFlow is the way back to a registered phone. A TCP phone is reached by
// its own connection or not at all.
func (s *Server) bindingFlow(b *Binding) flow {
	f := flow{addr: b.Source}
	if b.Transport != TCP {
		return f
	}
	if f.conn = s.tcp.flow(b.Flow); f.conn == nil {
		f.conn = &conn{srv: s, remote: b.Source, dead: true, wakeup: make(chan struct{}, 1)}
	}
	return f
}

// Reachable tells whether a call can be sent to b: always for UDP, for TCP
// while its connection is open.
func (s *Server) Reachable(b Binding) bool {
	if b.Transport != TCP {
		return true
	}
	c := s.tcp.flow(b.Flow)
	return c != nil && c.open()
}

// resolve finds the address of a next hop: a literal, the first SRV target, or
// the first address of the name (RFC 3263 without failover).
func (s *Server) resolve(ctx context.Context, t Target, uri URI) (flow, error) {
	host, port := uri.Host, uri.Port
	if t.Host != "" {
		var ok bool
		if host, port, ok = splitHostPort(t.Host); !ok {
			return flow{}, fmt.Errorf("malformed next hop %q", t.Host)
		}
	}
	if transport, _ := uri.Param("transport"); t.Host == "" && t.Transport == "" && isTCP(transport) {
		t.Transport = TCP
	}
	addr, err := netip.ParseAddr(host)
	if err != nil {
		if host, port, addr, err = lookup(ctx, host, port, t.Transport); err != nil {
			return flow{}, err
		}
	}
	if port == 0 {
		port = 5060
	}
	to := netip.AddrPortFrom(addr.Unmap(), uint16(port))
	if t.Transport == TCP {
		return s.connect(to), nil
	}
	return flow{addr: to}, nil
}

func lookup(ctx context.Context, host string, port int, t Transport) (string, int, netip.Addr, error) {
	if t == "" {
		t = UDP
	}
	if port == 0 { // RFC 3263 §4.2
		if _, srv, err := net.DefaultResolver.LookupSRV(ctx, "sip", string(t), host); err == nil && len(srv) > 0 {
			host, port = srv[0].Target, int(srv[0].Port)
		}
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(addrs) == 0 {
		return host, port, netip.Addr{}, fmt.Errorf("look up %s: %w", host, err)
	}
	return host, port, addrs[0], nil
}
