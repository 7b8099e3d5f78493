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
func (h *Platform) buildCarriers() {
	h.smsc = smscarrier.New(smscarrier.Config{DB: h.db, Bus: h.bus, Orgs: h.orgs, Seal: h.seal, Guard: h.guard, Messages: h.messages, Log: h.log, Now: time.Now,
		BaseURL: h.config.BaseURL, Node: h.node, Number: h.OwnNumber, Phone: h.e164})
	h.messages.Connected, h.messages.Lane = h.smsc.Connected, h.smsc.Lane
	h.messages.Other = func(ctx context.Context, org, from, to string, without []string) (string, error) {
		return h.smsc.Route(ctx, org, from, to, without...)
	}
}

// outsideMessage chooses who takes a message to a number outside. What calls may not reach, messages may not: it is fraud with them, too.
func (h *Platform) outsideMessage(ctx context.Context, o org.Organization, from, to string) (name string, err error) {
	halted, err := h.trunks.Halted(ctx)
	if err != nil {
		return "", err
	}
	policy := trunk.PolicyOf(o)
	policy.Outbound.Enabled, policy.Unacknowledged = true, false // both are about calls
	verdict := policy.Judge(to)
	switch {
	case halted:
		return "", op.Fail("destination_not_allowed", "messages to the outside are stopped by the operator, as calls are")
	case verdict.Reason == trunk.CountryClosed:
		return "", op.Fail("destination_not_allowed", verdict.Country+" is not among the organisation's allowed_countries")
	case verdict.Reason == trunk.TypeBlocked:
		return "", op.Fail("destination_not_allowed", "numbers of the type "+verdict.Type+" are among the organisation's blocked_types")
	case verdict.Reason != trunk.Allowed:
		return "", op.Fail("destination_not_allowed", "the number cannot be reached: "+string(verdict.Reason))
	}
	name, err = h.smsc.Route(ctx, o.ID, from, to)
	if err == nil && name == "" {
		err = op.Fail("destination_not_allowed", "no connected carrier takes messages to "+to+"; connect one with POST /sms/carriers. Telephones of the organisation can be reached always")
	}
	return name, err
}

// startCarriers keeps connections with carriers of messages, and looks after what waits for them.
func (n *Server) startCarriers(ctx context.Context) {
	n.run(func() { n.Platform.smsc.Run(ctx) })
	n.run(func() { n.Platform.smsc.Sweep(ctx) })
}
