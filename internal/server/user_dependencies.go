package server

import (
	"context"
	"errors"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
	"soniq/internal/telephony/trunk"
)

// Connects package user with the packages that are built after it: its dependencies, and the observer of its changes.

// buildUsers constructs the service of users. Invitations are mailed if a mail server is configured.
func (p *Platform) buildUsers(now func() time.Time) error {
	if err := p.buildMail(); err != nil {
		return err
	}
	d := userDependencies{p}
	p.users = user.New(user.Config{DB: p.db, Orgs: p.orgs, Outbox: p.outbox, Bus: p.bus, Clock: clock.Func(now), Phones: d,
		Destinations: d, Presences: d, Logins: d, Mailboxes: d, Queues: d, Extensions: d,
		Invites: &user.Invites{Seal: p.seal, BaseURL: p.config.BaseURL, Jobs: p.jobs, Mailer: p.mailer}})
	return nil
}

// userDependencies implements the dependencies of package user. It reads the services of the platform at each call,
// because they are built later.
type userDependencies struct{ p *Platform }

// AddFirstDevice implements user.PhoneStore.
func (d userDependencies) AddFirstDevice(ctx context.Context, tx db.Querier, u user.User) (user.SIP, error) {
	return d.p.devices.AddFirstDevice(ctx, tx, u)
}

// PhonesOfUsers implements user.PhoneStore.
func (d userDependencies) PhonesOfUsers(ctx context.Context, q db.Querier, org string, users []string) (map[string]user.Phones, error) {
	return d.p.devices.PhonesOfUsers(ctx, q, org, users)
}

// CheckForward implements user.Destinations.
func (d userDependencies) CheckForward(ctx context.Context, org, to string) (string, error) {
	return d.p.checkForward(ctx, org, to)
}

// Presences implements user.Presences.
func (d userDependencies) Presences(ctx context.Context, q db.Querier, org string, users []string) (map[string]user.Presence, error) {
	return d.p.agents.Presences(ctx, q, org, users)
}

// MFA implements user.Logins.
func (d userDependencies) MFA(ctx context.Context, q db.Querier, org string, users []string) (map[string]bool, error) {
	return d.p.signin.MFA(ctx, q, org, users)
}

// HasPassword implements user.Logins.
func (d userDependencies) HasPassword(ctx context.Context, q db.Querier, org, id string) (bool, error) {
	return d.p.signin.HasPassword(ctx, q, org, id)
}

// SetPIN implements user.Mailboxes.
func (d userDependencies) SetPIN(ctx context.Context, tx db.Querier, org, id, pin string) error {
	return d.p.voicemail.SetPIN(ctx, tx, org, id, pin)
}

// Missing implements user.Queues.
func (d userDependencies) Missing(ctx context.Context, q db.Querier, org string, queues []string) ([]string, error) {
	return d.p.queues.Missing(ctx, q, org, queues)
}

// QueuesOfUsers implements user.Queues.
func (d userDependencies) QueuesOfUsers(ctx context.Context, q db.Querier, org string, users []string) (map[string][]string, error) {
	return d.p.queues.QueuesOfUsers(ctx, q, org, users)
}

// SetMemberships implements user.Queues.
func (d userDependencies) SetMemberships(ctx context.Context, tx db.Querier, org, id string, queues []string) error {
	return d.p.queues.SetMemberships(ctx, tx, org, id, queues)
}

// ReservedExtension implements user.Extensions.
func (userDependencies) ReservedExtension(country, extension string) bool {
	return trunk.ReservedExtension(country, extension)
}

// userObserver passes changes of users on to the other packages.
type userObserver struct{ p *Platform }

// UserChanged publishes presence.
func (o userObserver) UserChanged(ctx context.Context, tx db.Querier, u user.User) error {
	return o.p.agents.PublishPresence(ctx, tx, u.OrgID, []string{u.ID})
}

// UserStatusChanged ends the registrations and sessions of a suspended user.
func (o userObserver) UserStatusChanged(ctx context.Context, tx db.Querier, u user.User) error {
	if err := o.p.devices.SuspendUser(ctx, tx, u); err != nil {
		return err
	}
	return o.p.keys.RevalidateUser(ctx, tx, u.OrgID, u.ID)
}

// UserRemoved removes phones, keys and sessions, passes numbers on, and leaves queues.
func (o userObserver) UserRemoved(ctx context.Context, tx db.Querier, r user.Removal) error {
	if err := o.p.devices.RemoveUser(ctx, tx, r); err != nil {
		return err
	}
	if err := errors.Join(o.p.keys.RemoveUser(ctx, tx, r.OrgID, r.UserID), o.p.signin.RemoveUser(ctx, tx, r.OrgID, r.UserID)); err != nil {
		return err
	}
	if err := o.p.numbers.RemoveUser(ctx, tx, r.OrgID, r.UserID, r.ReassignTo); err != nil {
		return err
	}
	if err := o.p.queues.RemoveUser(ctx, tx, r.OrgID, r.UserID); err != nil {
		return err
	}
	return o.p.agents.RemoveUser(ctx, tx, r.OrgID, r.UserID)
}
