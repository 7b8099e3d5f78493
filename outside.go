package main

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"soniq/carrier"
	"soniq/db"
	"soniq/pbx"
	"soniq/sip"
)

// This file is the door to the public network: emergency calls first, then the outbound gate, then trunks.

// Outside decides whether and how a phone may reach a number outside.
func (d *directory) Outside(ctx context.Context, c pbx.Caller, dialled string) (pbx.Exit, error) {
	o, err := d.orgs.Get(ctx, c.Org)
	if err != nil {
		return pbx.Exit{}, err
	}
	if n, ok := carrier.Emergency(o.Country, dialled); ok {
		return d.emergency(ctx, c, n)
	}
	policy := carrier.PolicyOf(o)
	verdict := policy.Judge(dialled)
	if verdict.Reason != carrier.Allowed {
		return pbx.Exit{Number: verdict.Number, Refused: refusalFor(verdict.Reason)}, nil
	}
	exit := pbx.Exit{Number: verdict.Number}
	if exit.CallerID, exit.NumberID, err = d.callerID(ctx, c); err != nil {
		return exit, err
	}
	ways, err := d.trunks.Route(ctx, c.Org, verdict.Number)
	if err != nil {
		return exit, err
	}
	if exit.Trunks, err = d.exits(ways, false); err != nil || len(exit.Trunks) == 0 {
		return exit, err
	}
	end, reason := d.limits.Begin(c.Org, policy.LimitOf())
	if reason != carrier.Allowed {
		exit.Refused = refusalFor(reason)
		return exit, nil
	}
	exit.Release = end
	return exit, nil
}

// emergency calls pass every limit and go only where they are really answered.
func (d *directory) emergency(ctx context.Context, c pbx.Caller, n string) (pbx.Exit, error) {
	exit := pbx.Exit{Number: n, Emergency: true}
	ways, err := d.trunks.EmergencyRoute(ctx, c.Org, n)
	if err != nil {
		return exit, err
	}
	if len(ways) == 0 {
		exit.Refused = refusalFor(carrier.EmergencyNotReached)
		return exit, nil
	}
	if exit.CallerID, exit.NumberID, err = d.callerID(ctx, c); err != nil {
		return exit, err
	}
	exit.Release = d.limits.Force(c.Org)
	exit.Trunks, err = d.exits(ways, true)
	return exit, err
}

// callerID is the number shown: that of the user, or any of the organisation; none where it has none.
func (d *directory) callerID(ctx context.Context, c pbx.Caller) (shown, id string, err error) {
	n, err := d.numbers.CallerID(ctx, d.db.Read(ctx), c.Org, c.UserID)
	if db.IsNone(err) {
		return "", "", nil
	}
	return n.Number, n.ID, err
}

// exits are the trunks as the switch wants them. Emergency calls take a channel whether one is free or not.
func (d *directory) exits(ways []carrier.Way, emergency bool) ([]pbx.TrunkOut, error) {
	out := make([]pbx.TrunkOut, 0, len(ways))
	for _, w := range ways {
		username, password, err := d.trunks.Login(w.Trunk)
		if err != nil {
			return nil, fmt.Errorf("log-in of trunk %s: %w", w.Trunk.ID, err)
		}
		t := pbx.TrunkOut{ID: w.Trunk.ID, Number: w.Dial, Mode: w.Trunk.CallerIDMode,
			Target:      sip.Target{Host: net.JoinHostPort(w.Trunk.Host, strconv.Itoa(w.Trunk.Port)), Transport: sip.Transport(w.Trunk.Transport)},
			Credentials: sip.Credentials{Username: username, Password: password},
			Acquire:     d.acquire(w.Trunk, emergency)}
		if w.Trunk.FromDomain != nil {
			t.Domain = *w.Trunk.FromDomain
		}
		out = append(out, t)
	}
	return out, nil
}

func (d *directory) acquire(t carrier.Trunk, emergency bool) func() (func(), bool) {
	return func() (func(), bool) {
		if emergency {
			return d.limits.Force(t.ID), true
		}
		end, reason := d.limits.Begin(t.ID, t.LimitOf())
		return end, reason == carrier.Allowed
	}
}

// refusals says what a phone is told when a call may not leave, and how the call is written down.
var refusals = map[carrier.Reason]pbx.Refusal{
	carrier.OrgSuspended:        {Status: 403, Phrase: "The organisation is suspended", Reason: "blocked"},
	carrier.OutboundOff:         {Status: 403, Phrase: "Outbound calls are switched off", Reason: "blocked"},
	carrier.NumberInvalid:       {Status: 404, Phrase: "This is not a telephone number", Reason: "invalid_number"},
	carrier.CountryClosed:       {Status: 403, Phrase: "This country is not allowed", Reason: "blocked"},
	carrier.TypeBlocked:         {Status: 403, Phrase: "This kind of number is not allowed", Reason: "blocked"},
	carrier.TooFast:             {Status: 503, Phrase: "Too many calls per second", Reason: "blocked"},
	carrier.TooMany:             {Status: 503, Phrase: "Too many calls at once", Reason: "blocked"},
	carrier.MinutesUsed:         {Status: 403, Phrase: "The minutes of this day are used up", Reason: "blocked"},
	carrier.NoTrunk:             {Status: 503, Phrase: "No trunk leads there", Reason: "no_route"},
	carrier.TrunkFull:           {Status: 503, Phrase: "All lines are busy", Reason: "no_route"},
	carrier.EmergencyNotReached: {Status: 503, Phrase: "Emergency calls are not available from this phone, use a mobile", Reason: "no_route"},
}

func refusalFor(r carrier.Reason) *pbx.Refusal {
	refusal, ok := refusals[r]
	if !ok {
		refusal = pbx.Refusal{Status: 403, Phrase: "Not allowed", Reason: "blocked"}
	}
	return &refusal
}
