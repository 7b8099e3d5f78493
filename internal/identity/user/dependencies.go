package user

import (
	"context"

	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/seal"
)

// Interfaces to packages that are built after this one or stand above it.

// PhoneStore has the phones of users.
type PhoneStore interface {
	// AddFirstDevice creates a phone for a new user and returns its SIP account.
	AddFirstDevice(ctx context.Context, tx db.Querier, u User) (SIP, error)
	// PhonesOfUsers returns the phones of users, by user id.
	PhonesOfUsers(ctx context.Context, q db.Querier, org string, users []string) (map[string]Phones, error)
}

// Destinations checks forward destinations.
type Destinations interface {
	// CheckForward returns the problem of a forward destination; "" if it is valid.
	CheckForward(ctx context.Context, org, to string) (wrong string, err error)
	// PointingAtUser returns the ids of what still leads to a user or to the user's extension: users who forward there, queues, numbers,
	// flows.
	PointingAtUser(ctx context.Context, q db.Querier, u User) (ids []string, err error)
}

// Presences returns the presence of users, by user id. The presence of a user without an entry is derived from phones and do-not-disturb.
type Presences interface {
	Presences(ctx context.Context, q db.Querier, org string, users []string) (map[string]Presence, error)
}

// Logins reports what users sign in with.
type Logins interface {
	// MFA reports which users have a second factor, by user id.
	MFA(ctx context.Context, q db.Querier, org string, users []string) (map[string]bool, error)
	// HasPassword reports whether a user has chosen a password.
	HasPassword(ctx context.Context, q db.Querier, org, user string) (bool, error)
}

// Mailboxes stores the PIN of a user's mailbox, or deletes it with "".
type Mailboxes interface {
	SetPIN(ctx context.Context, tx db.Querier, org, user, pin string) error
}

// Queues provides the memberships of users in queues.
type Queues interface {
	// Missing returns the ids that are not queues of the organisation.
	Missing(ctx context.Context, q db.Querier, org string, queues []string) ([]string, error)
	// QueuesOfUsers returns the queue ids of users, by user id.
	QueuesOfUsers(ctx context.Context, q db.Querier, org string, users []string) (map[string][]string, error)
	// SetMemberships makes a user a member of exactly these queues.
	SetMemberships(ctx context.Context, tx db.Querier, org, user string, queues []string) error
}

// Extensions reports whether an extension is reserved in a country, such as an emergency number.
type Extensions interface {
	ReservedExtension(country, extension string) bool
}

// Invites holds the dependencies of invitations.
type Invites struct {
	Seal    *seal.Seal
	BaseURL string // prefix of links
	Jobs    *job.Queue
	Mailer  Mailer `wiring:"optional"` // nil: the installation sends no mail
}

// Mailer sends mails. An error that wraps job.ErrDead is permanent.
type Mailer interface {
	Send(ctx context.Context, to, subject, text string) error
}
