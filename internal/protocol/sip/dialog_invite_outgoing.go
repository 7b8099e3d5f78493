package sip

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Outgoing INVITE: parameters and choice of the destination.

// Outgoing describes a call to place.
type Outgoing struct {
	// Binding, if set, is a registered phone. The request uses the flow of its REGISTER, over the same connection,
	// and URI defaults to its Contact.
	Binding *Binding
	// URI is the request URI, such as "sip:+49301234567@carrier.example".
	URI string
	// NextHop is the destination if Binding is nil. Empty means the host of URI.
	NextHop resolve.Target
	// Trunk is the id of the trunk, as Accounts.Trunk returns it. Requests of the dialog may come from all its addresses.
	Trunk string
	// From and To are the header fields. An empty host means our own address in From and the host of URI in To.
	From, To sipmsg.Address
	// Identity becomes P-Asserted-Identity (RFC 3325) if it has a user.
	Identity sipmsg.Address
	// RemoteParty becomes Remote-Party-ID if it has a user.
	RemoteParty sipmsg.Address
	// Anonymous adds "Privacy: id" (RFC 3323).
	Anonymous bool
	// Diversion and HistoryInfo are the diverting parties, the last one first. Set the one that the peer understands
	// (RFC 5806, RFC 7044).
	Diversion, HistoryInfo []sipmsg.Address
	// Passports are written as Identity header fields, one line each (RFC 8224 §4).
	Passports []string
	// ReferredBy is the Referred-By value of the transfer that causes this call (RFC 3892).
	ReferredBy string
	// ReplacesDialog is the Replaces value of the peer's dialog that this call replaces (RFC 3891).
	ReplacesDialog string
	// Header holds further header fields, in order.
	Header []Header
	// Location is a PIDF-LO document (RFC 4119) sent in addition to the offer, for emergency calls (RFC 6442 §4.1).
	Location []byte
	// SDP is the offer. nil makes it a late offer.
	SDP []byte
	// Credentials answer a digest challenge.
	Credentials digest.Credentials
	// CallID must be unique. Empty means a generated one.
	CallID string
	// MaxForwards is the value of the inbound leg less one. 0 means 70.
	MaxForwards int
	// RingTimeout cancels the call if no final answer arrives. 0 means 5 minutes.
	RingTimeout time.Duration
	// ResponseTimeout ends the attempt if no response of any kind arrives, not even 100. 0 means Timer B (32 s).
	ResponseTimeout time.Duration
}

// Header is one header field, for fields that Outgoing has no member for.
type Header struct {
	Name, Value string
}

// Reason is the cause of a hang-up, sent in the Reason header field (RFC 3326). A BYE has Q850, a CANCEL has Cancel.
type Reason struct {
	Q850   int // cause, 16 is normal clearing; 0 sends no Reason header
	Text   string
	Cancel string // value of the Reason field of a CANCEL; "" sends none
}

// CompletedElsewhere is the Reason of a CANCEL to a phone when another one answered. Such a phone lists no missed call.
const CompletedElsewhere = `SIP;cause=200;text="Call completed elsewhere"`

// outgoingRoute holds the destination of an outgoing request.
type outgoingRoute struct {
	uri      sipmsg.URI
	target   string // request URI as text
	routes   []string
	flow     transport.Flow
	moreHops []resolve.Hop // further hops if flow fails
	callID   string
}

// Invite places a call and reports its events to on. ctx bounds the name lookup of the next hop only. The first event
// may arrive before Invite returns.
func (s *Server) Invite(ctx context.Context, o Outgoing, on func(Event)) (*Leg, error) {
	r, err := s.resolveOutgoing(ctx, &o)
	if err != nil {
		return nil, fmt.Errorf("sip: invite %s: %w", o.URI, err)
	}
	l, err := s.shardOf(r.callID).newOutgoingLeg(&o, r, on)
	if err != nil {
		return nil, err
	}
	if !l.shard.runOrEnqueue(func(*shard) { l.sendFirstInvite() }) {
		return nil, ErrClosed
	}
	return l, nil
}

func (s *Server) resolveOutgoing(ctx context.Context, o *Outgoing) (r outgoingRoute, err error) {
	r = outgoingRoute{target: o.URI, callID: o.CallID}
	if o.Binding != nil && r.target == "" {
		r.target = o.Binding.Contact
	}
	if r.uri, err = sipmsg.ParseURI(r.target); err != nil {
		return r, err
	}
	if r.callID == "" {
		r.callID = sipmsg.NewCallID()
	}
	if !sipmsg.IsToken(r.callID) {
		return r, fmt.Errorf("call id %q is not a token", r.callID)
	}
	if o.Binding != nil {
		r.flow = s.bindingFlow(o.Binding)
		for _, p := range o.Binding.Path {
			r.routes = append(r.routes, "<"+p+">")
		}
		return r, nil
	}
	all, err := s.locator.Hops(ctx, o.NextHop, r.uri)
	if err != nil {
		return r, err
	}
	r.flow, r.moreHops = s.flowToHop(all[0]), all[1:]
	return r, nil
}
