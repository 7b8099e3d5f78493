package pbx

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/sipmsg"
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
	caller, err := s.cfg.Identity.Caller(ctx, in.Account)
	if err != nil {
		return r, nil, fmt.Errorf("caller %s: %w", in.Account, err)
	}
	to := dialled(in.RequestURI)
	c.caller, c.a.caller, c.a.number = caller, caller, caller.Extension
	c.new = call.New{Org: caller.Org, ID: c.id, Direction: call.Internal, Source: "device", From: caller.Extension,
		To: to, FromName: caller.Name, DeviceID: caller.DeviceID, UserID: caller.UserID, Sandbox: caller.Sandbox,
		StartedAt: c.started, CallerSIP: in.CallID, CallerDev: caller.DeviceID, CallerUser: caller.UserID, CallerLeg: c.a.id}
	if c.policy, err = s.cfg.Identity.Policy(ctx, caller.Org); err != nil {
		return r, nil, err
	}
	user, ok, err := s.cfg.Identity.Extension(ctx, caller.Org, to)
	if err != nil {
		return r, nil, err
	}
	c.policy.choose(caller.recording(), user.Recording)
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
	trunk, err := s.cfg.Identity.TrunkIn(ctx, org, id)
	if err != nil {
		return r, nil, fmt.Errorf("trunk %s: %w", id, err)
	}
	trunk.Source = c.a.in.Source.Addr()
	candidates := calledNumbers(c.a.in, trunk)
	to := candidates[0]
	from, name := callerOfTrunk(c.a.in)
	if e164, ok := number.Parse(from, trunk.Country); ok {
		from = e164
	}
	c.new = call.New{Org: trunk.Org, ID: c.id, Direction: call.Inbound, Source: "inbound", From: from, FromName: name,
		To: to, TrunkID: trunk.ID, Sandbox: trunk.Sandbox, StartedAt: c.started, CallerSIP: c.a.in.CallID, CallerLeg: c.a.id}
	c.a.number, c.a.trunkID = from, trunk.ID
	user, ok, err := s.findNumber(ctx, trunk, candidates)
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
	if c.policy, err = s.cfg.Identity.Policy(ctx, user.Org); err != nil {
		return r, nil, err
	}
	c.policy.choose(user.Recording)
	if user.Barred {
		return r, &Refusal{Status: 480, Phrase: "", Reason: "blocked"}, nil
	}
	return s.resolveEntry(ctx, user)
}

// nameCaller sets the name that the organisation has for a caller who sent no name, or only a number.
func (c *liveCall) nameCaller(ctx context.Context) {
	sent := strings.Trim(c.new.FromName, "+0123456789 ()-./\"")
	if sent != "" || c.new.From == call.Anonymous {
		return
	}
	if name := c.sw.cfg.CallerNames.CallerName(ctx, c.new.Org, c.new.From); name != "" {
		c.new.FromName = name
	}
}

// dialled returns the user part of the request URI without parameters.
func dialled(u sipmsg.URI) string {
	user, _, _ := strings.Cut(u.User, ";")
	return sipmsg.Readable(strings.TrimPrefix(user, "tel:"))
}

// findNumber returns the destination of the first candidate that is a number of the trunk; ok is false if none is.
func (s *Switch) findNumber(ctx context.Context, trunk TrunkIn, candidates []string) (d Destination, ok bool, err error) {
	for _, to := range candidates {
		if d, ok, err = s.cfg.Routes.Number(ctx, trunk, to); err != nil || ok {
			return d, ok, err
		}
	}
	return d, false, nil
}

// calledNumbers returns the numbers that a carrier's call may be for, the most probable first. It returns at least one
// string, which is the user part of the request URI if no header has a number.
// On a trunk that registers, the carrier puts our contact into the request URI. That is the account's user name, or a
// number that was the only one at the time of registration. The dialled number is then in P-Called-Party-ID (RFC 7315
// §4.2) or in To. On other trunks the request URI comes first, because To may name a number that was forwarded.
func calledNumbers(in *sip.Inbound, trunk TrunkIn) []string {
	request := dialled(in.RequestURI)
	candidates := []string{dialled(in.CalledParty().URI), dialled(in.To.URI)}
	if trunk.Registers {
		candidates = append(candidates, request)
	} else {
		candidates = append([]string{request}, candidates...)
	}
	numbers := slices.DeleteFunc(candidates, func(s string) bool {
		_, ok := number.Parse(s, trunk.Country)
		return !ok
	})
	if len(numbers) == 0 {
		return []string{request}
	}
	if !trunk.Registers {
		return numbers[:1]
	}
	return numbers
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
	return sipmsg.Readable(from), who.Display
}

// assertedOrFrom returns the identity asserted by the carrier, otherwise the From header, even if it is not to be
// presented.
func assertedOrFrom(in *sip.Inbound) sipmsg.Address {
	if in.Identity.URI.User != "" {
		return in.Identity
	}
	return in.From
}

// verify checks the signatures of a call from a trunk (STIR, RFC 8224) before any phone rings. It refuses no call.
func (c *liveCall) verify(ctx context.Context, country string) {
	if c.sw.cfg.Verifier == nil {
		return
	}
	from, _, _ := strings.Cut(assertedOrFrom(c.a.in).URI.User, ";")
	if e164, ok := number.Parse(from, country); ok {
		from = e164
	}
	r := c.sw.cfg.Verifier.Verify(ctx, c.a.in.Passports, from, c.new.To)
	c.verstat = r.Verstat()
	d := detail{"attestation": r.Attestation, "orig_id": r.OrigID, "certificate": r.Certificate}
	kind := "stir.verified"
	if f := r.Failure; f != nil {
		d["code"], d["reason"], d["problem"] = f.Code, f.Reason, f.Problem
		if kind = "stir.unverified"; r.SignatureInvalid() {
			kind = "stir.failed"
		}
	}
	c.addEntry(kind, c.a, d)
}

// passports returns the PASSporTs of a call from a trunk. Our devices may not sign.
func (l *leg) passports() []string {
	if l.in == nil || l.trunkID == "" {
		return nil
	}
	return l.in.Passports
}

// verifiedIdentity returns the asserted identity with the verification result (verstat) for a phone. It is zero if
// the dial presents another party, or if the caller is anonymous.
func (h *forkedDial) verifiedIdentity() sipmsg.Address {
	shown := h.from.URI.User
	global, ok := strings.CutPrefix(shown, "+")
	if h.c.verstat == "" || h.c.new.Direction != call.Inbound || shown != h.c.new.From || !ok || strings.Trim(global, "0123456789") != "" {
		return sipmsg.Address{}
	}
	return sipmsg.Address{Display: h.from.Display, URI: sipmsg.URI{Scheme: "tel", User: shown, Params: "verstat=" + h.c.verstat}}
}
