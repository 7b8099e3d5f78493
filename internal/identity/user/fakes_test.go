package user_test

import (
	"context"
	"errors"
	"testing"

	"soniq/internal/identity/user"
	"soniq/internal/platform/db"
)

// reserved is an extension that is reserved in one country.
type reserved struct{ country, extension string }

func (r reserved) ReservedExtension(country, extension string) bool {
	return r == reserved{country, extension}
}

// removalRecorder records removals. If err is not nil, it fails with it.
type removalRecorder struct {
	all []user.Removal
	err error
}

func (r *removalRecorder) UserRemoved(_ context.Context, _ db.Querier, x user.Removal) error {
	r.all = append(r.all, x)
	return r.err
}

// mailbox keeps the last PIN.
type mailbox struct{ org, pin string }

func (m *mailbox) SetPIN(_ context.Context, _ db.Querier, org, _, pin string) error {
	m.org, m.pin = org, pin
	return nil
}

// destinations refuses all destinations if fault is not "".
type destinations struct{ fault string }

func (d *destinations) CheckForward(context.Context, string, string) (string, error) {
	return d.fault, nil
}

func (d *destinations) PointingAtUser(context.Context, db.Querier, user.User) ([]string, error) {
	return nil, nil
}

// busyUsers has the users that are busy.
type busyUsers map[string]bool

func (b busyUsers) Presences(_ context.Context, _ db.Querier, _ string, ids []string) (map[string]user.Presence, error) {
	all := map[string]user.Presence{}
	for _, id := range ids {
		if b[id] {
			all[id] = user.Presence{Status: "busy"}
		}
	}
	return all, nil
}

// unreliableMailer fails once, and passes the address and the text of later mails on.
type unreliableMailer struct {
	t     *testing.T
	tries int
	mails chan [2]string
}

func (m *unreliableMailer) Send(_ context.Context, to, subject, text string) error {
	if subject != "Your invitation to Acme" {
		m.t.Errorf("the subject is %q", subject)
	}
	if m.tries++; m.tries == 1 {
		return errors.New("the server is away")
	}
	m.mails <- [2]string{to, text}
	return nil
}
