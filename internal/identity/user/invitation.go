package user

import (
	"context"
	"fmt"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/platform/access"
	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/platform/seal"
)

// Invitation is a link for a new user that works once, for seven days.
type Invitation struct {
	ExpiresAt db.Time `json:"expires_at"`
	Sent      bool    `json:"sent" doc:"A mail with the link is on its way to the user"`
	URL       *string `json:"url,omitempty" secret:"true" doc:"The link, given once, where no mail is sent"`
}

const (
	invitationLife   = 7 * 24 * time.Hour
	invitationLength = 40 // base62 characters, 238 bits
)

// InviteIn identifies the user to invite.
type InviteIn struct {
	OneIn
	Body struct{}
}

// Invite invites a user again. Earlier links stop working.
func (s *Service) Invite(ctx context.Context, in *InviteIn) (*op.Out[Invitation], error) {
	var i Invitation
	err := s.db.TxContext(ctx, func(ctx context.Context, tx db.Querier) error {
		u, err := s.Get(ctx, tx, access.Org(ctx), in.ID)
		if err != nil {
			return notFound(err)
		}
		if u.Status == Suspended {
			return op.State("the user is suspended", Suspended)
		}
		if err := s.checkInvite(ctx, tx, u); err != nil {
			return err
		}
		i, err = s.invite(ctx, tx, u)
		return err
	})
	if err != nil {
		return nil, err
	}
	return op.OK(i)
}

// checkInvite returns an error if the principal may not invite the user: it does not hold the role, or would see a link that replaces
// a password.
func (s *Service) checkInvite(ctx context.Context, tx db.Querier, u User) error {
	o, err := s.orgs.Get(ctx, u.OrgID)
	if err != nil {
		return fmt.Errorf("find organisation: %w", err)
	}
	if err := s.CheckRole(ctx, o, u.Role); err != nil || s.mails(o) {
		return err
	}
	return s.checkReset(ctx, tx, u)
}

// mails reports whether invitations of an organisation are mailed.
func (s *Service) mails(o org.Organization) bool {
	return s.config.Invites != nil && s.config.Invites.Mailer != nil && !o.Sandbox()
}

func (s *Service) invite(ctx context.Context, tx db.Querier, u User) (Invitation, error) {
	if s.config.Invites == nil {
		return Invitation{}, op.Fail("not_enabled", "invitations are not enabled here")
	}
	o, err := s.orgs.Get(ctx, u.OrgID)
	if err != nil {
		return Invitation{}, fmt.Errorf("find organisation: %w", err)
	}
	token, id, now := seal.Random(invitationLength), db.NewID("inv"), s.now()
	i := Invitation{ExpiresAt: db.At(now.Add(invitationLife)), Sent: s.mails(o)}
	var sealed []byte
	if i.Sent {
		if sealed, err = s.config.Invites.Seal.Seal([]byte(token), invitationAAD(u.OrgID, id)); err != nil {
			return i, fmt.Errorf("seal invitation: %w", err)
		}
	} else if mayShowLink(ctx) {
		link := s.link(token)
		i.URL = &link
	}
	if err := replaceInvitation(ctx, tx, u, id, s.config.Invites.Seal.Digest(token), sealed, db.At(now), i.ExpiresAt); err != nil {
		return i, fmt.Errorf("invite user: %w", err)
	}
	if !i.Sent {
		return i, nil
	}
	return i, s.config.Invites.Jobs.Enqueue(ctx, tx, job.Spec{Org: u.OrgID, Queue: MailQueue, Lane: u.OrgID, Kind: inviteKind,
		Args: invitationJob{id}})
}

func invitationAAD(org, id string) []byte { return []byte(org + "|invitations|" + id + "|token") }

func (s *Service) link(token string) string { return s.config.Invites.BaseURL + "/invite/" + token }

// Invited returns the user of an invitation. It returns db.ErrNone if the invitation does not exist, was used, or has
// expired.
func (s *Service) Invited(ctx context.Context, q db.Querier, token string) (User, error) {
	if s.config.Invites == nil {
		return User{}, db.ErrNone
	}
	org, user, err := invitedUser(ctx, q, s.config.Invites.Seal.Digest(token), db.At(s.now()))
	if err != nil {
		return User{}, err
	}
	return s.Get(ctx, q, org, user)
}

// Accept uses up an invitation and activates its user. Errors are the same as for Invited.
func (s *Service) Accept(ctx context.Context, tx db.Querier, token string) (User, error) {
	u, err := s.Invited(ctx, tx, token)
	if err != nil {
		return u, err
	}
	if u.Status == Suspended {
		return u, db.ErrNone
	}
	now := db.At(s.now())
	if err := acceptInvitation(ctx, tx, u.OrgID, u.ID, s.config.Invites.Seal.Digest(token), now); err != nil {
		return u, fmt.Errorf("accept invitation: %w", err)
	}
	if u.Status == "invited" {
		u.Status, u.UpdatedAt = "active", now
		err = update(ctx, tx, u)
		s.publishChanged(tx, u.ID)
	}
	return u, wrapError(err, "activate user")
}
