package server

import (
	"context"
	"strings"
	"time"

	"soniq/internal/messaging/sipmessage"
	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
	"soniq/internal/platform/op"
	"soniq/internal/sandbox/sandbox"
	"soniq/internal/telephony/number"
)

// Connects text messages with numbers, users and message carriers.

// sandboxCarrier is the name of the message carrier of sandboxes.
const sandboxCarrier = "sandbox"

// buildMessages constructs the services of text messages and of the sandbox.
func (p *Platform) buildMessages() {
	p.messages = sms.New(sms.Config{DB: p.db, Outbox: p.outbox, Jobs: p.jobs, Now: time.Now, Log: p.log, Digest: p.seal.Digest})
	p.messages.Carriers[sandboxCarrier] = sandbox.SMSCarrier{}
	p.messages.Route, p.messages.FindNumber, p.messages.ParsePhone = p.routeMessage, p.OwnNumber, p.parseNumber
	p.messages.UserExists = func(ctx context.Context, org, id string) (bool, error) {
		_, err := p.users.Get(ctx, p.db.Read(ctx), org, id)
		if db.IsNone(err) {
			return false, nil
		}
		return err == nil, err
	}
	p.partners.Messages = p.messages.Count
	p.buildCarriers()
	p.sandbox = &sandbox.Service{ReceiveSMS: p.messages.Receive, ParseNumber: p.parseNumber}
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
		return "", "", op.Fail("destination_not_allowed", n.Number+" is a number of yours that rings nobody: there is no telephone to take the message")
	}
	return sipmessage.Carrier, n.Number, nil
}
