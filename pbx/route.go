package pbx

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"soniq/call"
	"soniq/number"
	"soniq/sip"
)

// A plan is what will be rung for a call.
type plan struct {
	new       call.New
	user      *Destination // inside: a user with their phones
	phones    []Phone
	exit      *Exit // outside: a number with its trunks
	policy    Policy
	refusal   *Refusal // nothing is rung
	anonymous bool
}

// errStranger is a call of a device or trunk that is no longer ours.
var errStranger = errors.New("caller is not known any more")

// route decides where a call goes.
func (s *Switch) route(ctx context.Context, c *liveCall) (plan, error) {
	if org, id, ok := trunkOf(first(c.in.Account, c.in.TrunkID)); ok {
		return s.fromTrunk(ctx, c, org, id)
	}
	return s.fromDevice(ctx, c)
}

func (s *Switch) fromDevice(ctx context.Context, c *liveCall) (plan, error) {
	caller, err := s.Directory.Caller(ctx, c.in.Account)
	if err != nil {
		return plan{}, fmt.Errorf("caller %s: %w", c.in.Account, err)
	}
	dialled := dialled(c.in.RequestURI)
	p := plan{new: call.New{Org: caller.Org, ID: c.id, Direction: call.Internal, Source: "device", From: caller.Extension,
		To: dialled, FromName: caller.Name, DeviceID: caller.DeviceID, UserID: caller.UserID, Sandbox: caller.Sandbox,
		StartedAt: c.started, CallerSIP: c.in.CallID, CallerDev: caller.DeviceID, CallerUser: caller.UserID}}
	if p.policy, err = s.Directory.Policy(ctx, caller.Org); err != nil {
		return p, err
	}
	user, ok, err := s.Directory.Extension(ctx, caller.Org, dialled)
	if err != nil {
		return p, err
	}
	if ok {
		return s.toUser(ctx, p, user)
	}
	return s.toOutside(ctx, p, caller, dialled)
}

func (s *Switch) toUser(ctx context.Context, p plan, user Destination) (plan, error) {
	phones, err := s.Directory.Phones(ctx, user.Org, user.UserID)
	if err != nil {
		return p, err
	}
	p.user = &user
	for _, phone := range phones {
		if s.server.Reachable(phone.Binding) {
			p.phones = append(p.phones, phone)
		}
	}
	if len(p.phones) == 0 {
		p.refusal = &Refusal{Status: 480, Phrase: "No phone is registered", Reason: "no_answer"}
	}
	return p, nil
}

func (s *Switch) toOutside(ctx context.Context, p plan, caller Caller, dialled string) (plan, error) {
	exit, err := s.Directory.Outside(ctx, caller, dialled)
	if err != nil {
		return p, err
	}
	p.new.Direction = call.Outbound
	if exit.Number != "" {
		p.new.To = exit.Number
	}
	if exit.CallerID != "" {
		p.new.From, p.new.NumberID = exit.CallerID, exit.NumberID
	}
	p.exit, p.refusal = &exit, exit.Refused
	if p.refusal == nil && len(exit.Trunks) == 0 {
		p.refusal = &Refusal{Status: 503, Phrase: "No trunk leads there", Reason: "no_route"}
	}
	return p, nil
}

func first(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func (s *Switch) fromTrunk(ctx context.Context, c *liveCall, org, id string) (plan, error) {
	trunk, err := s.Directory.TrunkIn(ctx, org, id)
	if err != nil {
		return plan{}, fmt.Errorf("trunk %s: %w", id, err)
	}
	dialled := dialled(c.in.RequestURI)
	from, name := c.ani()
	if e164, ok := number.Parse(from, trunk.Country); ok {
		from = e164
	}
	p := plan{new: call.New{Org: trunk.Org, ID: c.id, Direction: call.Inbound, Source: "inbound", From: from, FromName: name,
		To: dialled, TrunkID: trunk.ID, Sandbox: trunk.Sandbox, StartedAt: c.started, CallerSIP: c.in.CallID}}
	user, ok, err := s.Directory.Number(ctx, trunk, dialled)
	if err != nil {
		return p, err
	}
	if !ok {
		p.refusal = &Refusal{Status: 404, Phrase: "Not Found", Reason: "invalid_number"}
		return p, nil
	}
	// A carrier may serve several organisations, by a trunk of each.
	p.new.Org, p.new.To, p.new.NumberID, p.new.TrunkID, p.new.Sandbox = user.Org, user.Number, user.NumberID, user.TrunkID, user.Sandbox
	if p.policy, err = s.Directory.Policy(ctx, user.Org); err != nil {
		return p, err
	}
	if user.UserID == "" {
		p.refusal = &Refusal{Status: 480, Phrase: "The number leads nowhere yet", Reason: "no_route"}
		return p, nil
	}
	return s.toUser(ctx, p, user)
}

// dialled is the user part of the request URI without parameters.
func dialled(u sip.URI) string {
	user, _, _ := strings.Cut(u.User, ";")
	return strings.TrimPrefix(user, "tel:")
}

// ani is the caller's number and name as the trunk gives them: what the carrier asserts before what the caller claims.
func (c *liveCall) ani() (from, name string) {
	if c.in.Anonymous {
		return call.Anonymous, ""
	}
	who := c.in.From
	if c.in.Identity.URI.User != "" {
		who = c.in.Identity
	}
	from, _, _ = strings.Cut(who.URI.User, ";")
	if from == "" || strings.EqualFold(from, "anonymous") {
		return call.Anonymous, ""
	}
	return from, who.Display
}
