package directory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/protocol/sip/digest"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/trunk"
	"soniq/internal/telephony/trunkreg"
)

// Calls to outside numbers: the outbound gate, caller ID, emergency calls and the choice of trunks.

// RouteOutbound returns the route of a call to an outside number, or the reason for its refusal. Emergency calls come before every limit,
// other calls pass the outbound gate. There is no other way to a trunk.
func (d *Directory) RouteOutbound(ctx context.Context, c pbx.Caller, dialled string) (pbx.OutboundRoute, error) {
	if exit, ok, err := d.testCallee(ctx, c, dialled); ok || err != nil {
		return exit, err
	}
	pass, err := d.admit(ctx, c, dialled)
	var refused *trunk.Refusal
	if errors.As(err, &refused) {
		return pbx.OutboundRoute{Refused: refusal(refused)}, nil
	}
	if err != nil {
		return pbx.OutboundRoute{}, err
	}
	exit, err := d.exit(ctx, c, pass)
	if err != nil {
		pass.End()
	}
	return exit, err
}

// admit asks the outbound gate. If the database does not answer, an emergency call gets the trunks in memory.
func (d *Directory) admit(ctx context.Context, c pbx.Caller, dialled string) (trunk.Admission, error) {
	ask := func(ctx context.Context) (trunk.Admission, error) {
		return d.cfg.Gate.Admit(ctx, trunk.CallAttempt{Org: c.Org, Dialled: dialled, Program: c.Program, UserSuspended: c.Barred})
	}
	o := d.standby.organisation(c.Org)
	if o == nil || c.Program {
		return ask(ctx)
	}
	plan, ok := trunk.EmergencyPlan(o.org.Country, dialled, o.routes)
	if !ok {
		return ask(ctx)
	}
	if !d.standby.isDown() {
		limited, cancel := context.WithTimeout(ctx, standbyAfter)
		defer cancel()
		pass, err := ask(limited)
		var refused *trunk.Refusal
		if err == nil || errors.As(err, &refused) || db.IsNone(err) {
			return pass, err
		}
		d.standby.markDown()
	}
	return d.cfg.Gate.AdmitEmergency(c.Org, plan)
}

// testCallee returns the route to a simulated callee. ok is false if the number is no test number, or the organisation no sandbox.
func (d *Directory) testCallee(ctx context.Context, c pbx.Caller, dialled string) (exit pbx.OutboundRoute, ok bool, err error) {
	if !c.Sandbox || c.Barred || d.cfg.TestParties == nil {
		return exit, false, nil
	}
	o, err := d.cfg.Orgs.Get(ctx, c.Org)
	if err != nil {
		return exit, false, err
	}
	t, ok := d.cfg.TestParties.Callee(c, o.Country, dialled)
	if !ok {
		return exit, false, nil
	}
	exit.Number, exit.Trunks = t.Number, []pbx.TrunkOut{t}
	n, err := d.callerID(ctx, c)
	show(n, &exit)
	return exit, true, err
}

// exit returns the route of a call that the gate admitted.
func (d *Directory) exit(ctx context.Context, c pbx.Caller, pass trunk.Admission) (exit pbx.OutboundRoute, err error) {
	exit = pbx.OutboundRoute{Number: pass.Number, Emergency: pass.Emergency, Release: pass.End}
	if pass.Emergency {
		d.addEmergencyData(ctx, c, pass, &exit)
	} else {
		n, err := d.arrange(ctx, c, &pass.Plan)
		if err != nil {
			return exit, err
		}
		show(n, &exit)
	}
	exit.Trunks, err = d.trunksOut(pass.Routes, pass.Emergency)
	return exit, err
}

// show makes a route present a number, with the name that it has.
func show(n number.Number, exit *pbx.OutboundRoute) {
	exit.CallerID, exit.NumberID, exit.Name = n.Number, n.ID, textOf(n.CallerIDName)
}

// arrange orders the trunks of a plan by the number that the call shows. It returns that number.
func (d *Directory) arrange(ctx context.Context, c pbx.Caller, p *trunk.Plan) (shown number.Number, err error) {
	if shown, err = d.callerID(ctx, c); err == nil {
		p.Routes = d.cfg.Trunks.OrderRoutes(p.Routes, textOf(shown.TrunkID))
	}
	return shown, err
}

// Resume counts an outside call that a restarted node resumed.
func (d *Directory) Resume(org, trunkID string, began time.Time, cut func()) (release func()) {
	return d.cfg.Gate.Resume(org, trunkID, began, cut)
}

// Login returns the credentials with which we answer the challenges of a trunk.
func (d *Directory) Login(ctx context.Context, org, trunkID string) (digest.Credentials, error) {
	t, err := d.cfg.Trunks.Get(ctx, d.cfg.DB.Read(ctx), org, trunkID)
	if err != nil {
		return digest.Credentials{}, err
	}
	username, password, err := d.cfg.Trunks.OutboundCredentials(t)
	return digest.Credentials{Username: username, Password: password}, err
}

// refusal converts a refusal of the gate to the SIP status for the phone and the end reason for the call record.
func refusal(r *trunk.Refusal) *pbx.Refusal {
	status, phrase := r.SIPResponse()
	return &pbx.Refusal{Status: status, Phrase: phrase, Reason: endReasons[r.Reason], Gate: r}
}

// endReasons maps refusals of the gate to end reasons of call records.
var endReasons = map[trunk.Reason]string{
	trunk.OrgSuspended: "blocked", trunk.UserSuspended: "blocked", trunk.OutboundDisabled: "blocked", trunk.CountryNotAllowed: "blocked",
	trunk.NumberTypeBlocked:      "blocked",
	trunk.CallsPerSecondExceeded: "blocked", trunk.ConcurrentCallsExceeded: "blocked", trunk.DailyMinutesExceeded: "blocked",
	trunk.InvalidNumber:   "invalid_number",
	trunk.OutboundStopped: "blocked", trunk.EmergencyNotAcknowledged: "blocked", trunk.DestinationRateExceeded: "blocked",
	trunk.EmergencyNotForPrograms: "blocked",
	trunk.NoTrunk:                 "no_route", trunk.TrunkFull: "no_route", trunk.EmergencyUnavailable: "no_route",
}

// callerID returns the number to show: the one that the caller asked for if the organisation owns it, else the user's, or any of
// the organisation. It is zero if the organisation has no number.
func (d *Directory) callerID(ctx context.Context, c pbx.Caller) (number.Number, error) {
	n, err := d.ownNumber(ctx, c)
	if db.IsNone(err) {
		return number.Number{}, nil
	}
	return n, err
}

// ShownNumber returns the number that a call shows, in E.164, with its id; empty if the organisation has none.
func (d *Directory) ShownNumber(ctx context.Context, c pbx.Caller) (e164, id string, err error) {
	n, err := d.callerID(ctx, c)
	return n.Number, n.ID, err
}

func (d *Directory) ownNumber(ctx context.Context, c pbx.Caller) (number.Number, error) {
	q := d.cfg.DB.Read(ctx)
	if c.ShowNumber != "" {
		if n, err := d.cfg.Numbers.Owned(ctx, q, c.Org, c.ShowNumber); !db.IsNone(err) {
			return n, err
		}
	}
	return d.cfg.Numbers.CallerID(ctx, q, c.Org, c.UserID)
}

// addEmergencyData adds the callback number and the location (PIDF-LO, RFC 6442) of an emergency call. Errors do not stop the call: what
// cannot be found is left out.
func (d *Directory) addEmergencyData(ctx context.Context, c pbx.Caller, pass trunk.Admission, exit *pbx.OutboundRoute) {
	e := event.EmergencyCallPlaced{Number: pass.Number, UserID: db.Null(c.UserID).Ptr(), DeviceID: db.Null(c.DeviceID).Ptr(),
		Test: pass.Test}
	last, known := d.standby.dataOf(c)
	found, _ := orLastKnown(ctx, d.standby, last, known, func(ctx context.Context) (emergencyData, error) {
		return d.emergencyData(ctx, c)
	})
	if exit.CallerID, exit.NumberID = found.callerID, found.numberID; found.callerID != "" {
		e.Callback = &found.callerID
	}
	if found.address != nil {
		text := found.address.String()
		e.Address = &text
		exit.Location = trunk.PIDF(cmp.Or(exit.CallerID, c.Extension), *found.address, d.cfg.Clock.Now())
	}
	exit.OnPlaced = func(ctx context.Context, callID string) error {
		e.CallID = callID
		return d.cfg.Trunks.PublishEmergencyCall(ctx, d.cfg.Outbox, c.Org, e)
	}
}

// dataOf returns what the memory has of a caller's phone.
func (s *standby) dataOf(c pbx.Caller) (last emergencyData, known bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.devices[c.DeviceID]; p != nil {
		return p.emergency, true
	}
	return last, false
}

// emergencyData reads what an emergency service is told about a caller. With an error it returns what it found.
func (d *Directory) emergencyData(ctx context.Context, c pbx.Caller) (e emergencyData, err error) {
	n, err := d.cfg.Numbers.Callback(ctx, d.cfg.DB.Read(ctx), c.Org, c.UserID)
	switch {
	case err == nil:
		e.callerID, e.numberID = n.Number, n.ID
	case db.IsNone(err):
		err = nil
	}
	if address, ok := d.addressOf(ctx, c, n.Emergency.Address); ok {
		e.address = &address
	}
	return e, err
}

// addressOf returns the civic address for an emergency call: that of the device, the number or the organisation.
func (d *Directory) addressOf(ctx context.Context, c pbx.Caller, number *string) (org.Civic, bool) {
	o, err := d.cfg.Orgs.Get(ctx, c.Org)
	if err != nil {
		return org.Civic{}, false
	}
	phone, err := d.cfg.Devices.Get(ctx, d.cfg.DB.Read(ctx), c.Org, c.DeviceID)
	if err != nil {
		return trunk.EmergencyLocation(o, nil, number)
	}
	return trunk.EmergencyLocation(o, phone.Location, number)
}

// trunksOut converts the trunks for the switch. An emergency call takes a channel even if none is free.
func (d *Directory) trunksOut(ways []trunk.Route, emergency bool) ([]pbx.TrunkOut, error) {
	out := make([]pbx.TrunkOut, 0, len(ways))
	for _, w := range ways {
		username, password, err := d.cfg.Trunks.OutboundCredentials(w.Trunk)
		if err != nil {
			return nil, fmt.Errorf("log-in of trunk %s: %w", w.Trunk.ID, err)
		}
		t := pbx.TrunkOut{ID: w.Trunk.ID, Number: w.Dial, Mode: w.Trunk.CallerIDMode, SRTP: w.Trunk.SRTP, Codecs: w.Trunk.Codecs,
			Target:      trunkreg.Target(w.Trunk),
			Credentials: digest.Credentials{Username: username, Password: password},
			Acquire:     d.acquire(w.Trunk, emergency)}
		if w.Trunk.FromDomain != nil {
			t.Domain = *w.Trunk.FromDomain
		}
		out = append(out, t)
	}
	return out, nil
}

// acquire returns the function that takes a channel of a trunk.
func (d *Directory) acquire(t trunk.Trunk, emergency bool) func(cut func()) (func(), bool) {
	return func(cut func()) (func(), bool) { return d.cfg.Gate.AcquireChannel(t, emergency, cut) }
}
