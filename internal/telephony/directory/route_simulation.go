package directory

import (
	"context"
	"errors"
	"fmt"
	"net/netip"

	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/trunk"
)

// Simulation tells which trunks a call would take, by the code that routes calls.
type Simulation struct {
	Directory func() *Directory // nil until SIP is served
}

// Operations returns the API operations of the simulation.
func (s Simulation) Operations() []op.Operation {
	return []op.Operation{op.New("trunks.route_test", "POST /trunks/route-test", access.NumbersAdmin,
		"Tell which trunks a call would take", s.Test).Reads().
		About("Places no call and counts none. The answer is that of this moment: limits, free channels and the states of trunks change.")}
}

// SimulationIn is the request to simulate the choice of trunks.
type SimulationIn struct{ Body SimulatedCall }

// SimulatedCall describes a call.
type SimulatedCall struct {
	Direction     string `json:"direction,omitempty" enum:"outbound,inbound" default:"outbound"`
	To            string `json:"to" maxLength:"64" doc:"The number as it would be dialled" example:"+442079460018"`
	From          string `json:"from,omitempty" maxLength:"64" doc:"Outbound: a number of yours to show; the user's unless given"`
	UserID        string `json:"user_id,omitempty" maxLength:"40" doc:"Outbound: who calls from a phone; decides the number shown unless from is given"`
	SourceAddress string `json:"source_address,omitempty" maxLength:"64" doc:"Inbound: the IP address that the call comes from"`
}

// SimulatedRoute is the result of a simulation.
type SimulatedRoute struct {
	Direction     string            `json:"direction" enum:"outbound,inbound"`
	Number        string            `json:"number" doc:"In E.164, or the emergency number"`
	Emergency     bool              `json:"emergency"`
	CallerID      *string           `json:"caller_id" doc:"Outbound: the number shown; null if the organisation has none"`
	CallerTrunkID *string           `json:"caller_trunk_id" doc:"Outbound: the trunk of the number shown, which is tried first"`
	NumberID      *string           `json:"number_id" doc:"Inbound: your number that is called"`
	TrunkID       *string           `json:"trunk_id" doc:"Outbound: the trunk that is tried first. Inbound: the trunk that the call counts for"`
	Destination   *string           `json:"destination" doc:"Inbound: where the number leads to" example:"user:usr_01K9ZJ3T6QW5N8V2X4Y7B0CDEF"`
	RefusedReason *string           `json:"refused_reason" doc:"Why the call would not go this way; null if it would"`
	RefusedDetail *string           `json:"refused_detail"`
	Trunks        []trunk.Explained `json:"trunks" nullable:"false" doc:"Those that are tried or take calls from the address, in their order, then the others"`
}

// Reasons of a simulation beside those of the gate and of numbers.
const (
	internalDestination = "internal_destination"
	invalidNumber       = "invalid_number"
	orgBlocked          = "org_suspended"
)

// simulationDetails explains the reasons that no other package does.
var simulationDetails = map[string]string{
	internalDestination: "It rings a user or a queue of the organisation and takes no trunk",
	invalidNumber:       "Not a valid number",
	orgBlocked:          "The organisation is suspended",
	number.NotOurs:      "It is not a number of your organisation",
	number.OtherTrunk:   "The trunk of the number takes no calls from this address",
	number.AwaitingProof: "The number waits for a call to it over its trunk, or for the operator (soniq numbers confirm): other organisations " +
		"use these addresses too",
	number.NotRoutedHere: "Its calls from this address are not for your organisation; the operator decides (soniq numbers confirm)",
}

func (r *SimulatedRoute) refuse(reason, detail string) {
	r.RefusedReason, r.RefusedDetail = &reason, &detail
}

// Test returns the trunks that a call would take, and why.
func (s Simulation) Test(ctx context.Context, in *SimulationIn) (*op.Out[SimulatedRoute], error) {
	x := in.Body
	if wrong := x.violations(); len(wrong) > 0 {
		return nil, op.Invalid(wrong...)
	}
	d := s.Directory()
	if d == nil {
		return nil, op.Unavailable("overloaded", "calls are not served yet", "5")
	}
	out := SimulatedRoute{Direction: "outbound", Number: x.To, Trunks: []trunk.Explained{}}
	var err error
	if x.Direction == "inbound" {
		out.Direction = x.Direction
		err = d.simulateInbound(ctx, x, &out)
	} else {
		err = d.simulateOutbound(ctx, x, &out)
	}
	if err != nil {
		return nil, err
	}
	return op.OK(out)
}

func (x SimulatedCall) violations() (wrong []op.Violation) {
	refuse := func(bad bool, field, code, message string) {
		if bad {
			wrong = append(wrong, op.Field(field, code, message))
		}
	}
	_, err := netip.ParseAddr(x.SourceAddress)
	inbound := x.Direction == "inbound"
	refuse(inbound && x.SourceAddress == "", "source_address", "required", "is needed for an inbound call")
	refuse(inbound && x.SourceAddress != "" && err != nil, "source_address", "invalid_address", "must be an IP address")
	refuse(!inbound && x.SourceAddress != "", "source_address", "not_applicable", "is for inbound calls")
	refuse(inbound && x.From != "", "from", "not_applicable", "is for outbound calls")
	refuse(inbound && x.UserID != "", "user_id", "not_applicable", "is for outbound calls")
	return wrong
}

// simulateOutbound does what RouteOutbound does, and counts nothing.
func (d *Directory) simulateOutbound(ctx context.Context, x SimulatedCall, out *SimulatedRoute) error {
	c, err := d.simulatedCaller(ctx, x)
	if err != nil {
		return err
	}
	_, internal, err := d.Extension(ctx, c.Org, x.To)
	if err != nil {
		return fmt.Errorf("find extension: %w", err)
	}
	if internal && !c.Barred {
		out.refuse(internalDestination, simulationDetails[internalDestination])
		return nil
	}
	if exit, ok, err := d.testCallee(ctx, c, x.To); ok || err != nil {
		out.Number, out.CallerID = exit.Number, db.Null(exit.CallerID).Ptr()
		return err
	}
	plan, err := d.cfg.Gate.Preview(ctx, trunk.CallAttempt{Org: c.Org, Dialled: x.To, UserSuspended: c.Barred})
	var no *trunk.Refusal
	if errors.As(err, &no) {
		out.refuse(string(no.Reason), no.Error())
		plan = refusedPlan(plan, no)
	} else if err != nil {
		return err
	}
	out.Number, out.Emergency = plan.Number, plan.Emergency
	return d.explainOutbound(ctx, c, plan, out)
}

// refusedPlan returns what is known of a call that is refused, without trunks.
func refusedPlan(p trunk.Plan, no *trunk.Refusal) trunk.Plan {
	p.Routes = nil
	if p.Number == "" {
		p.Number, p.Country, p.Emergency = no.Dialled, no.Country, no.Reason == trunk.EmergencyUnavailable
		if e164, ok := number.Parse(no.Dialled, no.Country); ok && !p.Emergency {
			p.Number = e164
		}
	}
	return p
}

// explainOutbound sets the number shown and the trunks.
func (d *Directory) explainOutbound(ctx context.Context, c pbx.Caller, plan trunk.Plan, out *SimulatedRoute) error {
	var shown, home string
	var err error
	if plan.Emergency {
		var e emergencyData
		e, err = d.emergencyData(ctx, c)
		shown = e.callerID
	} else {
		var n number.Number
		n, err = d.arrange(ctx, c, &plan)
		shown, home = n.Number, textOf(n.TrunkID)
	}
	if err != nil {
		return fmt.Errorf("find number to show: %w", err)
	}
	out.CallerID, out.CallerTrunkID = db.Null(shown).Ptr(), db.Null(home).Ptr()
	if out.Trunks, err = d.cfg.Gate.Explain(ctx, c.Org, plan, home); err != nil {
		return err
	}
	if len(out.Trunks) > 0 && out.Trunks[0].Used {
		out.TrunkID = &out.Trunks[0].TrunkID
	} else if out.RefusedReason == nil {
		no := &trunk.Refusal{Reason: trunk.TrunkFull}
		out.refuse(string(no.Reason), no.Error())
	}
	return nil
}

// simulatedCaller returns the caller of an outbound call. The number to show must be one of the organisation.
func (d *Directory) simulatedCaller(ctx context.Context, x SimulatedCall) (c pbx.Caller, err error) {
	id := access.Org(ctx)
	o, err := d.cfg.Orgs.GetShared(ctx, id)
	if err != nil {
		return c, fmt.Errorf("find organisation: %w", err)
	}
	c = pbx.Caller{Org: id, Sandbox: o.Sandbox(), Barred: o.IsBlocked() || d.suspended(id)}
	if x.UserID != "" {
		if c, err = d.callerOfUser(ctx, id, x.UserID); db.IsNone(err) {
			return c, op.Invalid(op.Field("user_id", "not_found", "there is no such user"))
		} else if err != nil {
			return c, fmt.Errorf("find user: %w", err)
		}
	}
	if x.From == "" {
		return c, nil
	}
	e164, ok := number.Parse(x.From, o.Country)
	if !ok {
		return c, op.Invalid(op.Field("from", "invalid_e164", "not a valid number for "+o.Country))
	}
	if _, err := d.cfg.Numbers.Owned(ctx, d.cfg.DB.Read(ctx), id, e164); db.IsNone(err) {
		return c, op.Invalid(op.Field("from", "number_not_owned", "not an active number of your organisation"))
	} else if err != nil {
		return c, fmt.Errorf("find number: %w", err)
	}
	c.ShowNumber = e164
	return c, nil
}

// simulateInbound does what Trunk, TrunkIn and Number do for a call from an address, and proves nothing. It tells
// nothing of other organisations.
func (d *Directory) simulateInbound(ctx context.Context, x SimulatedCall, out *SimulatedRoute) error {
	id := access.Org(ctx)
	source, _ := netip.ParseAddr(x.SourceAddress)
	source = source.Unmap()
	var err error
	if out.Trunks, err = d.cfg.Trunks.ExplainSource(ctx, id, source); err != nil {
		return err
	}
	o, err := d.cfg.Orgs.GetShared(ctx, id)
	if err != nil {
		return fmt.Errorf("find organisation: %w", err)
	}
	country := o.Country
	t, found, err := d.cfg.Trunks.BySource(ctx, source)
	if err != nil {
		return err
	}
	if found { // national numbers are those of the country of this trunk
		in, err := d.TrunkIn(ctx, t.OrgID, t.TrunkID)
		if err != nil {
			return fmt.Errorf("find trunk: %w", err)
		}
		country = in.Country
	}
	e164, ok := number.Parse(x.To, country)
	if !ok {
		out.refuse(invalidNumber, simulationDetails[invalidNumber])
		return nil
	}
	if n, err := d.boughtInSandbox(ctx, id, o.Sandbox(), e164); err != nil {
		return err
	} else if n != nil {
		return d.explainInbound(ctx, n, out)
	}
	n, why, err := d.cfg.Numbers.Preview(ctx, id, e164, number.Call{TrunkID: t.TrunkID, Source: source})
	if err != nil {
		return err
	}
	if n == nil {
		out.refuse(why, simulationDetails[why])
		return nil
	}
	return d.explainInbound(ctx, n, out)
}

// explainInbound sets the number that is called, its trunk and its destination.
func (d *Directory) explainInbound(ctx context.Context, n *number.Number, out *SimulatedRoute) error {
	to, _, err := d.destinationOf(ctx, n)
	if err != nil {
		return fmt.Errorf("find destination of number: %w", err)
	}
	out.Number, out.NumberID, out.TrunkID = n.Number, &n.ID, n.TrunkID
	target := to.Target
	if to.UserID != "" {
		target = "user:" + to.UserID
	}
	out.Destination = db.Null(target).Ptr()
	if to.Barred {
		out.refuse(orgBlocked, simulationDetails[orgBlocked])
	}
	return nil
}
