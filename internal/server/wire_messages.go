package server

import (
	"context"
	"strings"

	"soniq/internal/identity/org"
	"soniq/internal/messaging/sipmessage"
	"soniq/internal/messaging/sms"
	"soniq/internal/messaging/smscarrier"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/sandbox/sandbox"
	"soniq/internal/telephony/number"
	"soniq/internal/telephony/trunk"
)

// Connects text messages with numbers, users and message carriers.

// sandboxCarrier is the name of the message carrier of sandboxes.
const sandboxCarrier = "sandbox"

// buildMessages constructs the services of text messages and of the sandbox.
func (p *Platform) buildMessages() {
	d := messageDependencies{p}
	p.messages = sms.New(sms.Config{DB: p.db, Outbox: p.outbox, Jobs: p.jobs, Log: p.log, Digester: p.seal,
		Numbers: d, Router: d, Users: d, Carriers: d, Contacts: d, Phones: d, Redactions: p.orgs})
	p.messages.BuiltIn[sandboxCarrier] = sandbox.SMSCarrier{}
	p.messages.Observe(d)
	p.buildCarriers()
	p.buildSandbox()
}

// OwnNumber finds a number of the organisation by its id or as people write it.
func (p *Platform) OwnNumber(ctx context.Context, q db.Querier, org, text string) (sms.OwnNumber, bool, error) {
	n, err := p.FindNumber(ctx, q, org, text)
	if db.IsNone(err) {
		return sms.OwnNumber{}, false, nil
	}
	own := sms.OwnNumber{ID: n.ID, Number: n.Number, SMS: n.SMSEnabled}
	if n.AssignedTo.Type == "user" && n.AssignedTo.ID != nil {
		own.UserID = *n.AssignedTo.ID
	}
	return own, err == nil, err
}

// FindNumber finds a number of the organisation by its id or as people write it. It returns db.ErrNone if there is none.
func (p *Platform) FindNumber(ctx context.Context, q db.Querier, org, text string) (number.Number, error) {
	if strings.HasPrefix(text, "num_") {
		return p.numbers.Get(ctx, q, org, text)
	}
	e164, ok, err := p.parseNumber(ctx, org, text)
	if err != nil || !ok {
		return number.Number{}, firstError(err, db.ErrNone)
	}
	return p.numbers.Owned(ctx, q, org, e164)
}

func firstError(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// routeMessage chooses the carrier of a message.
func (p *Platform) routeMessage(ctx context.Context, org string, from sms.OwnNumber, to string) (carrier, number string, err error) {
	if carrier, number, err = p.insideRoute(ctx, org, to); err != nil || carrier != "" {
		return carrier, number, err
	}
	o, err := p.orgs.Get(ctx, org)
	if err != nil {
		return "", "", err
	}
	e164, ok, err := p.parseNumber(ctx, org, to)
	switch {
	case err != nil:
		return "", "", err
	case !ok:
		return "", "", op.Invalid(op.Field("to", "invalid_e164", "not a valid number for "+o.Country))
	case !o.Sandbox():
		carrier, err = p.outsideMessage(ctx, o, from.Number, e164)
		return carrier, e164, err
	case sandbox.OptedOut(e164):
		return "", "", op.Fail("opted_out", e164+" asked not to receive messages")
	}
	return sandboxCarrier, e164, nil
}

// insideRoute returns the carrier of a message inside the organisation. The carrier is "" for messages to outside
// numbers.
func (p *Platform) insideRoute(ctx context.Context, org, to string) (carrier, number string, err error) {
	extension, named := strings.CutPrefix(to, "ext:")
	extension, to = written(extension), written(to)
	if named || len(to) <= 6 && !strings.HasPrefix(to, "+") {
		u, err := p.users.ByExtension(ctx, p.db.Read(ctx), org, extension)
		switch {
		case err == nil:
			return sipmessage.Carrier, *u.Extension, nil
		case !db.IsNone(err):
			return "", "", err
		case named:
			return "", "", op.Invalid(op.Field("to", "not_found", "nobody has this extension"))
		}
	}
	n, ok, err := p.OwnNumber(ctx, p.db.Read(ctx), org, to)
	switch {
	case err != nil || !ok:
		return "", "", err
	case n.UserID == "":
		return "", "", op.Fail("destination_not_allowed",
			n.Number+" is a number of yours that rings nobody: there is no telephone to take the message")
	}
	return sipmessage.Carrier, n.Number, nil
}

// Connects message carriers with text messages and numbers.

// buildCarriers constructs the service of message carriers.
func (p *Platform) buildCarriers() {
	p.smsCarriers = smscarrier.New(smscarrier.Config{DB: p.db, Bus: p.bus, Orgs: p.orgs, Seal: p.seal, Guard: p.guard, Messages: p.messages,
		Log: p.log, BaseURL: p.config.BaseURL, Node: p.node, Numbers: messageDependencies{p}, MayDelete: p.clock.MayDelete})
}

// outsideMessage chooses the carrier of a message to an outside number. The country and number-type limits of calls
// apply to messages too, because fraud uses both.
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
		return "", op.Fail("destination_not_allowed",
			"messages to the outside are stopped as calls are: by the operator, or until a restored copy is confirmed")
	case verdict.Reason == trunk.CountryNotAllowed:
		return "", op.Fail("destination_not_allowed", verdict.Country+" is not among the organisation's allowed_countries")
	case verdict.Reason == trunk.NumberTypeBlocked:
		return "", op.Fail("destination_not_allowed", "numbers of the type "+verdict.Type+" are among the organisation's blocked_types")
	case verdict.Reason != trunk.Allowed:
		return "", op.Fail("destination_not_allowed", "the number cannot be reached: "+string(verdict.Reason))
	}
	name, err = p.smsCarriers.Route(ctx, o.ID, from, to)
	if err == nil && name == "" {
		err = op.Fail("destination_not_allowed", "no connected carrier takes messages to "+to+
			"; connect one with POST /sms/carriers. Telephones of the organisation can be reached always")
	}
	return name, err
}
