package server

import (
	"context"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/messaging/smscarrier"
	"soniq/internal/platform/op"
	"soniq/internal/telephony/trunk"
)

// This file joins message carriers with text messages and numbers.

// buildCarriers constructs the service of message carriers.
func (p *Platform) buildCarriers() {
	p.smsc = smscarrier.New(smscarrier.Config{DB: p.db, Bus: p.bus, Orgs: p.orgs, Seal: p.seal, Guard: p.guard, Messages: p.messages, Log: p.log, Now: time.Now,
		BaseURL: p.config.BaseURL, Node: p.node, Number: p.OwnNumber, Phone: p.e164})
	p.messages.ConnectedCarrier, p.messages.Lane = p.smsc.Connected, p.smsc.Lane
	p.messages.AlternativeCarrier = func(ctx context.Context, org, from, to string, without []string) (string, error) {
		return p.smsc.Route(ctx, org, from, to, without...)
	}
}

// outsideMessage chooses who takes a message to a number outside. What calls may not reach, messages may not: it is fraud with them, too.
func (p *Platform) outsideMessage(ctx context.Context, o org.Organization, from, to string) (name string, err error) {
	halted, err := p.trunks.OutboundKillSwitch(ctx)
	if err != nil {
		return "", err
	}
	policy := trunk.PolicyOf(o)
	policy.Outbound.Enabled, policy.EmergencyUnacknowledged = true, false // both are about calls
	verdict := policy.Evaluate(to)
	switch {
	case halted:
		return "", op.Fail("destination_not_allowed", "messages to the outside are stopped by the operator, as calls are")
	case verdict.Reason == trunk.CountryNotAllowed:
		return "", op.Fail("destination_not_allowed", verdict.Country+" is not among the organisation's allowed_countries")
	case verdict.Reason == trunk.NumberTypeBlocked:
		return "", op.Fail("destination_not_allowed", "numbers of the type "+verdict.Type+" are among the organisation's blocked_types")
	case verdict.Reason != trunk.Allowed:
		return "", op.Fail("destination_not_allowed", "the number cannot be reached: "+string(verdict.Reason))
	}
	name, err = p.smsc.Route(ctx, o.ID, from, to)
	if err == nil && name == "" {
		err = op.Fail("destination_not_allowed", "no connected carrier takes messages to "+to+"; connect one with POST /sms/carriers. Telephones of the organisation can be reached always")
	}
	return name, err
}
