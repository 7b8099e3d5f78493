package pbx

import (
	"context"
	"fmt"
	"strings"

	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/number"
)

// route selects the destination of an inbound call or a call from a phone.
func (c *liveCall) route(ctx context.Context) (resolvedDestination, *Refusal, error) {
	defer c.publishOrg()
	if org, id, ok := trunkOf(firstNonEmpty(c.a.in.Account, c.a.in.TrunkID)); ok {
		return c.fromTrunk(ctx, org, id)
	}
	return c.fromDevice(ctx)
}

func (c *liveCall) fromDevice(ctx context.Context) (r resolvedDestination, refusal *Refusal, err error) {
	s, in := c.sw, c.a.in
	caller, err := s.Directory.Caller(ctx, in.Account)
	if err != nil {
		return r, nil, fmt.Errorf("caller %s: %w", in.Account, err)
	}
	to := dialled(in.RequestURI)
	c.caller, c.a.caller, c.a.number = caller, caller, caller.Extension
	c.new = call.New{Org: caller.Org, ID: c.id, Direction: call.Internal, Source: "device", From: caller.Extension,
		To: to, FromName: caller.Name, DeviceID: caller.DeviceID, UserID: caller.UserID, Sandbox: caller.Sandbox,
		StartedAt: c.started, CallerSIP: in.CallID, CallerDev: caller.DeviceID, CallerUser: caller.UserID, CallerLeg: c.a.id}
	if c.policy, err = s.Directory.Policy(ctx, caller.Org); err != nil {
		return r, nil, err
	}
	user, ok, err := s.Directory.Extension(ctx, caller.Org, to)
	if err != nil {
		return r, nil, err
	}
	if ok && !caller.Barred {
		return s.resolveEntry(ctx, user)
	}
	r, refusal, err = s.resolveOutbound(ctx, caller, to)
	c.new.Direction, c.new.To = call.Outbound, r.recordedNumber(to)
	if r.outbound != nil && r.outbound.CallerID != "" {
		c.new.From, c.new.NumberID = r.outbound.CallerID, r.outbound.NumberID
	}
	return r, refusal, err
}

func firstNonEmpty(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (c *liveCall) fromTrunk(ctx context.Context, org, id string) (r resolvedDestination, refusal *Refusal, err error) {
	s := c.sw
	trunk, err := s.Directory.TrunkIn(ctx, org, id)
	if err != nil {
		return r, nil, fmt.Errorf("trunk %s: %w", id, err)
	}
	to := calledNumber(c.a.in, trunk.Country)
	from, name := callerOfTrunk(c.a.in)
	if e164, ok := number.Parse(from, trunk.Country); ok {
		from = e164
	}
	c.new = call.New{Org: trunk.Org, ID: c.id, Direction: call.Inbound, Source: "inbound", From: from, FromName: name,
		To: to, TrunkID: trunk.ID, Sandbox: trunk.Sandbox, StartedAt: c.started, CallerSIP: c.a.in.CallID, CallerLeg: c.a.id}
	c.a.number, c.a.trunkID = from, trunk.ID
	user, ok, err := s.Directory.Number(ctx, trunk, to)
	if err != nil {
		return r, nil, err
	}
	if !ok {
		return r, &Refusal{Status: 404, Phrase: "", Reason: "invalid_number"}, nil
	}
	// a carrier may serve several organisations, each with a trunk
	c.new.Org, c.new.To, c.new.NumberID, c.new.TrunkID, c.new.Sandbox = user.Org, user.Number, user.NumberID, user.TrunkID, user.Sandbox
	c.a.trunkID = user.TrunkID
	c.caller = Caller{Org: user.Org, Sandbox: user.Sandbox}
	c.verify(ctx, trunk.Country)
	c.nameCaller(ctx)
	if c.policy, err = s.Directory.Policy(ctx, user.Org); err != nil {
		return r, nil, err
	}
	if user.Recording != "" {
		c.policy.Record = user.Recording == "on" && !c.policy.Never
	}
	if user.Barred {
		return r, &Refusal{Status: 480, Phrase: "", Reason: "blocked"}, nil
	}
	return s.resolveEntry(ctx, user)
}

// nameCaller sets the name that the organisation has for a caller who sent no name, or only a number.
func (c *liveCall) nameCaller(ctx context.Context) {
	sent := strings.Trim(c.new.FromName, "+0123456789 ()-./\"")
	if c.sw.CallerName == nil || sent != "" || c.new.From == call.Anonymous {
		return
	}
	if name := c.sw.CallerName(ctx, c.new.Org, c.new.From); name != "" {
		c.new.FromName = name
	}
}

// dialled returns the user part of the request URI without parameters.
func dialled(u sip.URI) string {
	user, _, _ := strings.Cut(u.User, ";")
	return strings.TrimPrefix(user, "tel:")
}

// calledNumber returns the number that a carrier's call is for. With registration, carriers put our contact into the
// request URI, which is the user name if a trunk has several numbers. The number is then in P-Called-Party-ID (RFC
// 7315 §4.2) or in To.
func calledNumber(in *sip.Inbound, country string) string {
	to := dialled(in.RequestURI)
	if _, ok := number.Parse(to, country); ok {
		return to
	}
	for _, u := range []sip.URI{in.CalledParty().URI, in.To.URI} {
		if _, ok := number.Parse(dialled(u), country); ok {
			return dialled(u)
		}
	}
	return to
}

// callerOfTrunk returns number and name of the caller. The identity asserted by the carrier has priority over the
// From header.
func callerOfTrunk(in *sip.Inbound) (from, name string) {
	if in.Anonymous {
		return call.Anonymous, ""
	}
	who := assertedOrFrom(in)
	from, _, _ = strings.Cut(who.URI.User, ";")
	if from == "" || strings.EqualFold(from, "anonymous") {
		return call.Anonymous, ""
	}
	return from, who.Display
}

// assertedOrFrom returns the identity asserted by the carrier, otherwise the From header, even if it is not to be
// presented.
func assertedOrFrom(in *sip.Inbound) sip.Address {
	if in.Identity.URI.User != "" {
		return in.Identity
	}
	return in.From
}
