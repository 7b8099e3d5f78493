package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"soniq/carrier"
	"soniq/db"
	"soniq/pbx"
	"soniq/sip"
)

// This file is the door to the public network: emergency calls first, then the outbound gate, then trunks.

// Outside decides whether and how a phone may reach a number outside: emergency calls before every limit, then the
// outbound gate, then the limits of the organisation.
func (d *directory) Outside(ctx context.Context, c pbx.Caller, dialled string) (pbx.Exit, error) {
	plan, err := d.trunks.Plan(ctx, c.Org, dialled)
	var refused *carrier.Refusal
	if errors.As(err, &refused) {
		return pbx.Exit{Refused: refusal(refused)}, nil
	}
	if err != nil {
		return pbx.Exit{}, err
	}
	exit := pbx.Exit{Number: plan.Number, Emergency: plan.Emergency}
	if exit.CallerID, exit.NumberID, err = d.callerID(ctx, c); err != nil {
		return exit, err
	}
	if exit.Trunks, err = d.exits(plan.Ways, plan.Emergency); err != nil {
		return exit, err
	}
	if plan.Emergency {
		exit.Release = d.limits.Force(c.Org)
		return exit, nil
	}
	end, reason := d.limits.Begin(c.Org, plan.Limit)
	if reason != carrier.Allowed {
		exit.Refused = refusal(&carrier.Refusal{Reason: reason, Dialled: dialled})
	}
	exit.Release = end
	return exit, nil
}

// refusal is what the switch tells the phone, and writes down.
func refusal(r *carrier.Refusal) *pbx.Refusal {
	status, phrase := r.SIP()
	return &pbx.Refusal{Status: status, Phrase: phrase, Reason: endReasons[r.Reason]}
}

// endReasons says how a refused call is written down.
var endReasons = map[carrier.Reason]string{
	carrier.OrgSuspended: "blocked", carrier.OutboundOff: "blocked", carrier.CountryClosed: "blocked", carrier.TypeBlocked: "blocked",
	carrier.TooFast: "blocked", carrier.TooMany: "blocked", carrier.MinutesUsed: "blocked", carrier.NumberInvalid: "invalid_number",
	carrier.NoTrunk: "no_route", carrier.TrunkFull: "no_route", carrier.EmergencyNotReached: "no_route",
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
