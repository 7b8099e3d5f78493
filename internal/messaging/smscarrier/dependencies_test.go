package smscarrier_test

import (
	"context"
	"strings"

	"soniq/internal/messaging/sms"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// fakeDependencies are the dependencies of the message service: the organisation of the fixture has one number, and the carriers under
// test.
type fakeDependencies struct{ h *fixture }

func (f fakeDependencies) OwnNumber(_ context.Context, _ db.Querier, org, text string) (sms.OwnNumber, bool, error) {
	return sms.OwnNumber{ID: "num_1", Number: own, SMS: true}, org == f.h.org && (text == own || text == "num_1"), nil
}

func (f fakeDependencies) ParseNumber(_ context.Context, _, text string) (string, bool, error) {
	return text, strings.HasPrefix(text, "+"), nil
}

func (f fakeDependencies) RouteMessage(ctx context.Context, org string, from sms.OwnNumber, to string) (string, string, error) {
	id, err := f.h.Route(ctx, org, from.Number, to)
	return id, to, err
}

func (f fakeDependencies) UserExists(context.Context, string, string) (bool, error) {
	return false, nil
}

func (f fakeDependencies) Connected(ctx context.Context, org, name string) (sms.Carrier, error) {
	return f.h.Connected(ctx, org, name)
}

func (f fakeDependencies) Alternative(ctx context.Context, org, from, to string, without []string) (string, error) {
	return f.h.Alternative(ctx, org, from, to, without)
}

func (f fakeDependencies) Lane(carrier string) string { return f.h.Lane(carrier) }

func (f fakeDependencies) LookupContact(context.Context, string, string) *event.Contact { return nil }

func (f fakeDependencies) ContactNumbers(context.Context, string, string) ([]string, error) {
	return nil, nil
}

func (f fakeDependencies) ForwardToPhones(context.Context, string, sms.Message) error { return nil }

// OutboundStopped implements sms.Router.
func (f fakeDependencies) OutboundStopped(context.Context) (bool, error) { return false, nil }
