package user

import (
	"context"
	"fmt"
	"strconv"

	orgs "soniq/internal/identity/org"
	"soniq/internal/platform/db"
	"soniq/internal/platform/event"
	"soniq/internal/platform/observe"
	"soniq/internal/platform/op"
)

// Create adds a user. It assigns an extension if none is given, and a phone if requested. It publishes user.created.
// All violations are returned together as an *op.Error.
func (s *Service) Create(ctx context.Context, org string, n Fresh) (User, error) {
	var u User
	err := s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) (err error) {
		o, err := s.orgs.Get(ctx, org)
		if err != nil {
			return fmt.Errorf("find organisation: %w", err)
		}
		u = n.user(org, db.At(s.now()))
		if err := s.check(ctx, tx, u, o.Country, n.QueueIDs); err != nil {
			return err
		}
		if err := s.orgs.CheckQuota(ctx, tx, u.OrgID, orgs.Users, func() (int, error) { return countUsers(ctx, tx, u.OrgID) }); err != nil {
			return err
		}
		invited := s.config.Invites != nil && (n.SendInvite == nil || *n.SendInvite)
		if invited {
			u.Status = "invited"
		}
		if err := s.insertUser(ctx, tx, &u, o.Country); err != nil {
			return err
		}
		if err := s.CheckRole(ctx, o, u.Role); err != nil {
			return err
		}
		if err := s.setQueues(ctx, tx, u, n.QueueIDs, len(n.QueueIDs) > 0); err != nil {
			return err
		}
		if err := s.finishCreate(ctx, tx, &u, n.ProvisionSIP == nil || *n.ProvisionSIP); err != nil || !invited {
			return err
		}
		i, err := s.invite(ctx, tx, u)
		u.Invitation = &i
		return err
	})
	return u, err
}

// insertUser inserts the user. If no extension was requested, it uses the lowest free one from 100.
func (s *Service) insertUser(ctx context.Context, tx db.Querier, u *User, country string) error {
	asked := u.Extension != nil
	for range 50 { // another node may take the same extension concurrently
		if !asked {
			free, err := s.freeExtension(ctx, tx, u.OrgID, country)
			if err != nil {
				return fmt.Errorf("find free extension: %w", err)
			}
			u.Extension = &free
		}
		err := s.db.Tx(ctx, func(tx db.Querier) error { return insert(ctx, tx, *u) })
		if !db.IsConflict(err) {
			return wrapError(err, "add user")
		}
		if err := s.conflict(ctx, tx, *u, asked); err != nil {
			return err
		}
	}
	return op.Fail("extension_taken", "no free extension was found")
}

// freeExtension returns the lowest free extension from 100.
func (s *Service) freeExtension(ctx context.Context, tx db.Querier, orgID, country string) (string, error) {
	taken, err := orgs.Extensions(ctx, tx, orgID)
	if err != nil {
		return "", err
	}
	for n := 100; ; n++ {
		if e := strconv.Itoa(n); !taken[e] && !s.config.Extensions.ReservedExtension(country, e) {
			return e, nil
		}
	}
}

// conflict returns an error that names the value another user has. It returns nil if only an automatically chosen
// extension conflicts.
func (s *Service) conflict(ctx context.Context, tx db.Querier, u User, asked bool) error {
	other := ""
	const text = `SELECT id FROM users WHERE org_id = $1 AND lower(email) = lower($2) AND status <> 'removed' AND id <> $3`
	err := tx.QueryRow(ctx, text, u.OrgID, u.Email, u.ID).Scan(&other)
	switch {
	case err == nil:
		return &op.Error{Code: "already_exists", Detail: "a user with this e-mail address exists",
			Extra: map[string]any{"user_id": other}}
	case !db.IsNone(err):
		return fmt.Errorf("find user by e-mail address: %w", err)
	case asked:
		return op.Fail("extension_taken", "extension "+*u.Extension+" is taken")
	}
	return nil
}

func (s *Service) finishCreate(ctx context.Context, tx db.Querier, u *User, provision bool) error {
	var sip *SIP
	if provision {
		made, err := s.config.Phones.AddFirstDevice(ctx, tx, *u)
		if err != nil {
			return fmt.Errorf("provision phone: %w", err)
		}
		sip = &made
	}
	s.publishChanged(tx, u.ID)
	err := s.outbox.Publish(ctx, tx, u.OrgID, event.UserCreated{UserID: u.ID, Email: u.Email, Name: u.Name, Role: u.Role,
		Extension: u.Extension, CreatedAt: u.CreatedAt, OrgID: u.OrgID})
	if err != nil {
		return err
	}
	if err := s.userChanged(ctx, tx, *u); err != nil {
		return err
	}
	users := []User{*u}
	if err := s.withDetails(ctx, tx, u.OrgID, users); err != nil {
		return err
	}
	*u = users[0]
	if sip != nil {
		u.SIP = sip
	}
	return nil
}

// save checks and stores a changed user.
func (s *Service) save(ctx context.Context, tx db.Querier, u *User, queues op.Change[[]string]) error {
	o, err := s.orgs.Get(ctx, u.OrgID)
	if err != nil {
		return fmt.Errorf("find organisation: %w", err)
	}
	if err := s.check(ctx, tx, *u, o.Country, queues.V); err != nil {
		return err
	}
	u.Name, u.UpdatedAt = fullName(u.FirstName, u.LastName), db.At(s.now())
	err = s.db.Tx(ctx, func(tx db.Querier) error { return update(ctx, tx, *u) })
	if db.IsConflict(err) {
		return s.conflict(ctx, tx, *u, true)
	}
	if err != nil {
		return wrapError(err, "change user")
	}
	s.publishChanged(tx, u.ID)
	if err := s.storePIN(ctx, tx, *u); err != nil {
		return err
	}
	if err := s.setQueues(ctx, tx, *u, queues.V, queues.Set); err != nil {
		return err
	}
	return s.userChanged(ctx, tx, *u)
}

// setQueues sets the queues of a user, if given.
func (s *Service) setQueues(ctx context.Context, tx db.Querier, u User, queues []string, given bool) error {
	if !given {
		return nil
	}
	return wrapError(s.config.Queues.SetMemberships(ctx, tx, u.OrgID, u.ID, queues), "join queues")
}

func (s *Service) userChanged(ctx context.Context, tx db.Querier, u User) error {
	return observe.Each(s.observers.changes, func(o ChangeObserver) error { return o.UserChanged(ctx, tx, u) })
}

// SwitchDND switches a user's do-not-disturb in the caller's transaction, without notifying a ChangeObserver.
func (s *Service) SwitchDND(ctx context.Context, tx db.Querier, org, id string, on bool, until db.Time) error {
	const text = `UPDATE users SET dnd = $3, dnd_until = $4, updated_at = $5
		WHERE org_id = $1 AND id = $2 AND (dnd <> $3 OR dnd_until IS DISTINCT FROM $4)`
	if !on {
		until = db.Time{}
	}
	if _, err := tx.Exec(ctx, text, org, id, on, until, db.At(s.now())); err != nil {
		return fmt.Errorf("switch do-not-disturb: %w", err)
	}
	s.publishChanged(tx, id)
	return nil
}

func (s *Service) publishChanged(tx db.Querier, id string) {
	db.OnCommit(tx, func() { s.bus.Publish(Changed, id) })
}

// statusChanged notifies the observers if the user was suspended, or is active again.
func (s *Service) statusChanged(ctx context.Context, tx db.Querier, was string, u User) error {
	if was == u.Status || was != Suspended && u.Status != Suspended {
		return nil
	}
	return observe.Each(s.observers.statuses, func(o StatusObserver) error { return o.UserStatusChanged(ctx, tx, u) })
}

// remove ends everything of a user and keeps the row for history.
func (s *Service) remove(ctx context.Context, tx db.Querier, u User, heir string) error {
	r := Removal{u.OrgID, u.ID, heir}
	if err := observe.Each(s.observers.removals, func(o RemovalObserver) error { return o.UserRemoved(ctx, tx, r) }); err != nil {
		return err
	}
	if err := dropInvitations(ctx, tx, u.OrgID, u.ID); err != nil {
		return fmt.Errorf("end invitations: %w", err)
	}
	if err := dropPreferences(ctx, tx, u.OrgID, u.ID); err != nil {
		return fmt.Errorf("remove preferences: %w", err)
	}
	u.Status, u.Extension, u.OutboundNumberID, u.UpdatedAt = Removed, nil, nil, db.At(s.now())
	if err := update(ctx, tx, u); err != nil {
		return fmt.Errorf("remove user: %w", err)
	}
	s.publishChanged(tx, u.ID)
	return nil
}

// ClearOutboundNumber removes a released number as the caller ID of users. Package number calls it.
func (s *Service) ClearOutboundNumber(ctx context.Context, tx db.Querier, org, number string) error {
	return wrapError(clearOutboundNumber(ctx, tx, org, number), "clear outbound number")
}

// ClearOutboundNumbers removes the caller ID of all users of an organisation without numbers, in the caller's
// transaction.
func (s *Service) ClearOutboundNumbers(ctx context.Context, tx db.Querier, org string) error {
	return wrapError(clearOutboundNumbers(ctx, tx, org), "clear outbound numbers")
}

func wrapError(err error, doing string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", doing, err)
}
