// Package usertest makes a user service for tests of packages that need users.
package usertest

import (
	"context"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/platform/bus"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
)

// New returns a service of users without phones, queues and second factors. Invitations are not enabled.
func New(d *db.DB, orgs *org.Service, outbox *event.Outbox, b *bus.Bus, now func() time.Time) *user.Service {
	return user.New(Config(d, orgs, outbox, b, now))
}

// Config returns the configuration of New, so that a test can replace dependencies.
func Config(d *db.DB, orgs *org.Service, outbox *event.Outbox, b *bus.Bus, now func() time.Time) user.Config {
	return user.Config{DB: d, Orgs: orgs, Outbox: outbox, Bus: b, Clock: clock.Func(now), Phones: None{},
		Destinations: None{}, Presences: None{}, Logins: None{}, Mailboxes: None{}, Queues: None{}, Extensions: None{}}
}

// None implements all dependencies of package user and has nothing.
type None struct{}

// AddFirstDevice returns an account that does not exist.
func (None) AddFirstDevice(context.Context, db.Querier, user.User) (user.SIP, error) {
	return user.SIP{}, nil
}

// PhonesOfUsers returns no phones.
func (None) PhonesOfUsers(context.Context, db.Querier, string, []string) (map[string]user.Phones, error) {
	return nil, nil
}

// CheckForward accepts every destination.
func (None) CheckForward(context.Context, string, string) (string, error) { return "", nil }

// PointingAtUser finds nothing.
func (None) PointingAtUser(context.Context, db.Querier, user.User) ([]string, error) { return nil, nil }

// Presences returns no presence.
func (None) Presences(context.Context, db.Querier, string, []string) (map[string]user.Presence, error) {
	return nil, nil
}

// MFA returns no second factors.
func (None) MFA(context.Context, db.Querier, string, []string) (map[string]bool, error) {
	return nil, nil
}

// HasPassword returns false.
func (None) HasPassword(context.Context, db.Querier, string, string) (bool, error) { return false, nil }

// SetPIN stores nothing.
func (None) SetPIN(context.Context, db.Querier, string, string, string) error { return nil }

// Missing returns all queues.
func (None) Missing(_ context.Context, _ db.Querier, _ string, queues []string) ([]string, error) {
	return queues, nil
}

// QueuesOfUsers returns no queues.
func (None) QueuesOfUsers(context.Context, db.Querier, string, []string) (map[string][]string, error) {
	return nil, nil
}

// SetMemberships stores nothing.
func (None) SetMemberships(context.Context, db.Querier, string, string, []string) error { return nil }

// ReservedExtension reserves no extension.
func (None) ReservedExtension(string, string) bool { return false }
