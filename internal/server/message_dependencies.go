package server

import (
	"context"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// Connects text messages and their carriers with the other packages.

// messageDependencies implements the dependencies of packages sms, smscarrier and smppserver, and observes messages. It reads the
// services of the platform at each call, because some are built later.
type messageDependencies struct{ p *Platform }

// OwnNumber implements sms.Numbers.
func (d messageDependencies) OwnNumber(ctx context.Context, q db.Querier, org, text string) (sms.OwnNumber, bool, error) {
	return d.p.OwnNumber(ctx, q, org, text)
}

// ParseNumber implements sms.Numbers.
func (d messageDependencies) ParseNumber(ctx context.Context, org, text string) (string, bool, error) {
	return d.p.parseNumber(ctx, org, text)
}

// RouteMessage implements sms.Router.
func (d messageDependencies) RouteMessage(ctx context.Context, org string, from sms.OwnNumber, to string) (carrier, number string,
	err error) {
	return d.p.routeMessage(ctx, org, from, to)
}

// OutboundStopped implements sms.Router.
func (d messageDependencies) OutboundStopped(ctx context.Context) (bool, error) {
	return d.p.trunks.OutboundKillSwitch(ctx)
}

// UserExists implements sms.Users.
func (d messageDependencies) UserExists(ctx context.Context, org, id string) (bool, error) {
	_, err := d.p.users.Get(ctx, d.p.db.Read(ctx), org, id)
	return err == nil, ignoreNotFound(err)
}

// Connected implements sms.ConnectedCarriers.
func (d messageDependencies) Connected(ctx context.Context, org, name string) (sms.Carrier, error) {
	return d.p.smsCarriers.Connected(ctx, org, name)
}

// Alternative implements sms.ConnectedCarriers.
func (d messageDependencies) Alternative(ctx context.Context, org, from, to string, without []string) (string, error) {
	return d.p.smsCarriers.Alternative(ctx, org, from, to, without)
}

// Lane implements sms.ConnectedCarriers.
func (d messageDependencies) Lane(carrier string) string { return d.p.smsCarriers.Lane(carrier) }

// LookupContact implements sms.Contacts.
func (d messageDependencies) LookupContact(ctx context.Context, org, e164 string) *event.Contact {
	return d.p.contacts.LookupLocal(ctx, org, e164)
}

// ContactNumbers implements sms.Contacts.
func (d messageDependencies) ContactNumbers(ctx context.Context, org, id string) ([]string, error) {
	return d.p.contacts.NumbersOf(ctx, org, id)
}

// ForwardToPhones implements sms.Phones.
func (d messageDependencies) ForwardToPhones(ctx context.Context, org string, m sms.Message) error {
	return d.p.sipMessages.Forward(ctx, org, m)
}

// Environment implements smppserver.Environments.
func (d messageDependencies) Environment(ctx context.Context, org string) (access.Environment, error) {
	o, err := d.p.orgs.Get(ctx, org)
	if err == nil && o.Sandbox() {
		return access.Sandbox, nil
	}
	return access.Live, err
}
