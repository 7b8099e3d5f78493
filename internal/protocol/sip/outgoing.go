package sip

import (
	"context"
	"fmt"
	"time"
)

// Outgoing is a call to place.
type Outgoing struct {
	// Binding, when set, is a registered phone: the request goes the way its
	// REGISTER came, over the same connection, and URI defaults to its
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
	// Passports are written as Identity, a line each (RFC 8224 §4).
	Passports []string
	// ReferredBy is the Referred-By of the transfer this call is made for
	// (RFC 3892).
	ReferredBy string
	// ReplacesDialog is the Replaces value of a dialog at the other side that
	// this call takes the place of (RFC 3891).
	ReplacesDialog string
	// Header holds further header fields, in order.
	Header []Header
	// Location is a PIDF-LO document (RFC 4119) sent beside the offer, for emergency calls (RFC 6442 §4.1).
	Location []byte
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
	more   []hop // to try when flow does not work
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
	if !l.shard.perform(func(*shard) { l.dial() }) {
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
	all, err := s.locate(ctx, o.NextHop, r.uri)
	if err != nil {
		return r, err
	}
	r.flow, r.more = s.hopFlow(all[0]), all[1:]
	return r, nil
}
