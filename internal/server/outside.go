package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/trunk"
	"soniq/internal/telephony/trunkreg"
)

// Outside decides whether and how a call may reach a number outside: emergency calls before every limit, then the
// outbound gate. It is the only way to a trunk.
func (d *directory) Outside(ctx context.Context, c pbx.Caller, dialled string) (pbx.Exit, error) {
	if exit, ok, err := d.party(ctx, c, dialled); ok || err != nil {
		return exit, err
	}
	pass, err := d.gate.Open(ctx, trunk.Attempt{Org: c.Org, Dialled: dialled, Program: c.Program, Barred: c.Barred})
	var refused *trunk.Refusal
	if errors.As(err, &refused) {
		return pbx.Exit{Refused: refusal(refused)}, nil
	}
	if err != nil {
		return pbx.Exit{}, err
	}
	exit, err := d.exit(ctx, c, pass)
	if err != nil {
		pass.End()
	}
	return exit, err
}

func (d *directory) exit(ctx context.Context, c pbx.Caller, pass trunk.Pass) (exit pbx.Exit, err error) {
	exit = pbx.Exit{Number: pass.Number, Emergency: pass.Emergency, Release: pass.End}
	if pass.Emergency {
		d.forHelp(ctx, c, pass, &exit)
	} else if exit.CallerID, exit.NumberID, err = d.callerID(ctx, c); err != nil {
		return exit, err
	}
	exit.Trunks, err = d.exits(pass.Ways, pass.Emergency)
	return exit, err
}

// Resume counts a call to the outside that a restarted node carries on.
func (d *directory) Resume(org, trunkID string, began time.Time, cut func()) (release func()) {
	return d.gate.Resume(org, trunkID, began, cut)
}

// Login is what a trunk wants to know where it asks for a password.
func (d *directory) Login(ctx context.Context, org, trunkID string) (sip.Credentials, error) {
	t, err := d.trunks.Get(ctx, d.db.Read(ctx), org, trunkID)
	if err != nil {
		return sip.Credentials{}, err
	}
	username, password, err := d.trunks.Login(t)
	return sip.Credentials{Username: username, Password: password}, err
}

// refusal is what the switch tells the phone, and writes down.
func refusal(r *trunk.Refusal) *pbx.Refusal {
	status, phrase := r.SIP()
	return &pbx.Refusal{Status: status, Phrase: phrase, Reason: endReasons[r.Reason], Gate: r}
}

// endReasons says how a refused call is written down.
var endReasons = map[trunk.Reason]string{
	trunk.OrgSuspended: "blocked", trunk.UserSuspended: "blocked", trunk.OutboundOff: "blocked", trunk.CountryClosed: "blocked", trunk.TypeBlocked: "blocked",
	trunk.TooFast: "blocked", trunk.TooMany: "blocked", trunk.MinutesUsed: "blocked", trunk.NumberInvalid: "invalid_number",
	trunk.OutboundHalted: "blocked", trunk.NotAcknowledged: "blocked", trunk.TooFastThere: "blocked", trunk.EmergencyByProgram: "blocked",
	trunk.NoTrunk: "no_route", trunk.TrunkFull: "no_route", trunk.EmergencyNotReached: "no_route",
}

// callerID is the number shown: that of the user, or any of the organisation; none where it has none.
func (d *directory) callerID(ctx context.Context, c pbx.Caller) (shown, id string, err error) {
	n, err := d.ownNumber(ctx, c)
	if db.IsNone(err) {
		return "", "", nil
	}
	return n.Number, n.ID, err
}

// forHelp adds what emergency services need: the number to call back and the place. What cannot be found out keeps no
// call for help from going out.
func (d *directory) forHelp(ctx context.Context, c pbx.Caller, pass trunk.Pass, exit *pbx.Exit) {
	told := event.EmergencyCallPlaced{Number: pass.Number, UserID: db.Null(c.UserID).Ptr(), DeviceID: db.Null(c.DeviceID).Ptr(), Test: pass.Test}
	n, err := d.numbers.Callback(ctx, d.db.Read(ctx), c.Org, c.UserID)
	if err == nil {
		exit.CallerID, exit.NumberID, told.Callback = n.Number, n.ID, &n.Number
	}
	if place, ok := d.placeOf(ctx, c, n.Emergency.Address); ok {
		text := place.String()
		told.Address = &text
		exit.Location = trunk.PIDF(cmp.Or(exit.CallerID, c.Extension), place, d.now())
	}
	exit.Placed = func(ctx context.Context, callID string) error {
		told.CallID = callID
		return d.trunks.Placed(ctx, d.outbox, c.Org, told)
	}
}

func (d *directory) placeOf(ctx context.Context, c pbx.Caller, number *string) (org.Civic, bool) {
	o, err := d.orgs.Get(ctx, c.Org)
	if err != nil {
		return org.Civic{}, false
	}
	phone, err := d.devices.Get(ctx, d.db.Read(ctx), c.Org, c.DeviceID)
	if err != nil {
		return trunk.LocationOf(o, nil, number)
	}
	return trunk.LocationOf(o, phone.Location, number)
}

// ownNumber is the number asked for, where it is the organisation's, else that of the user.
func (d *directory) ownNumber(ctx context.Context, c pbx.Caller) (number.Number, error) {
	if c.ShowNumber != "" {
		if n, err := d.numbers.Owned(ctx, d.db.Read(ctx), c.Org, c.ShowNumber); !db.IsNone(err) {
			return n, err
		}
	}
	return d.numbers.CallerID(ctx, d.db.Read(ctx), c.Org, c.UserID)
}

// exits are the trunks as the switch wants them. Emergency calls take a channel whether one is free or not.
func (d *directory) exits(ways []trunk.Way, emergency bool) ([]pbx.TrunkOut, error) {
	out := make([]pbx.TrunkOut, 0, len(ways))
	for _, w := range ways {
		username, password, err := d.trunks.Login(w.Trunk)
		if err != nil {
			return nil, fmt.Errorf("log-in of trunk %s: %w", w.Trunk.ID, err)
		}
		t := pbx.TrunkOut{ID: w.Trunk.ID, Number: w.Dial, Mode: w.Trunk.CallerIDMode, SRTP: w.Trunk.SRTP, Codecs: w.Trunk.Codecs,
			Target:      trunkreg.Target(w.Trunk),
			Credentials: sip.Credentials{Username: username, Password: password},
			Acquire:     d.acquire(w.Trunk, emergency)}
		if w.Trunk.FromDomain != nil {
			t.Domain = *w.Trunk.FromDomain
		}
		out = append(out, t)
	}
	return out, nil
}

func (d *directory) acquire(t trunk.Trunk, emergency bool) func(cut func()) (func(), bool) {
	return func(cut func()) (func(), bool) { return d.gate.Channel(t, emergency, cut) }
}
