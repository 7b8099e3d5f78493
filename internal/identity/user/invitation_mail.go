package user

import (
	"context"
	"errors"
	"fmt"

	"soniq/internal/platform/db"
	"soniq/internal/platform/job"
)

// MailQueue is the job queue of mails to users. It must be processed on nodes that can send mail.
const MailQueue = "mail"

const inviteKind = "user.invite"

// invitationJob is the argument of the job that mails an invitation.
type invitationJob struct {
	ID string `json:"id"`
}

// HandleMail registers the handlers of the mail queue.
func (s *Service) HandleMail(r *job.Runner) { r.Handle(inviteKind, s.mailInvitation) }

// mailInvitation sends the link of an invitation. An invitation that was replaced meanwhile is not sent. After
// sending, the link is deleted.
func (s *Service) mailInvitation(ctx context.Context, j job.Job) error {
	var ref invitationJob
	if err := j.Bind(&ref); err != nil {
		return errors.Join(err, job.ErrDead)
	}
	q := s.db.Read(ctx)
	userID, sealed, err := invitation(ctx, q, j.Org, ref.ID)
	if db.IsNone(err) || err == nil && sealed == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read invitation: %w", err)
	}
	u, err := s.Get(ctx, q, j.Org, userID)
	if db.IsNone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read user: %w", err)
	}
	o, err := s.orgs.Get(ctx, j.Org)
	if err != nil {
		return fmt.Errorf("find organisation: %w", err)
	}
	token, err := s.config.Invites.Seal.Unseal(sealed, invitationAAD(j.Org, ref.ID))
	if err != nil {
		return errors.Join(err, job.ErrDead)
	}
	if s.config.Invites.Mailer == nil {
		return errors.New("no mail is sent by this server; see --smtp")
	}
	name := o.Name
	if o.Brand != nil {
		name = *o.Brand
	}
	text := invitationText(u.FirstName, name, s.link(string(token)))
	if err := s.config.Invites.Mailer.Send(ctx, u.Email, "Your invitation to "+name, text); err != nil {
		return fmt.Errorf("mail invitation: %w", err)
	}
	job.AtEnd(ctx, func(ctx context.Context, tx db.Querier) error {
		return invitationSent(ctx, tx, j.Org, ref.ID, db.At(s.now()))
	})
	return nil
}

func invitationText(first, org, link string) string {
	return "Hello " + first + ",\n\nyou are invited to make and take calls with " + org + ". Follow this link to begin:\n\n" + link +
		"\n\nIt works once, and for seven days. If you did not expect this mail, you need not do anything.\n"
}
