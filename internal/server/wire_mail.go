package server

import (
	"context"
	"errors"

	"soniq/internal/identity/user"
	"soniq/internal/platform/job"
	"soniq/internal/platform/mail"
)

// This file reads what the operator says of plans and of mail.

// buildMail lets users be invited, by mail where there is a server for it.
func (p *Platform) buildMail() error {
	p.users.Invites = user.Invites{Seal: p.seal, BaseURL: p.config.BaseURL, Jobs: p.jobs}
	m, err := p.config.NewMailer(p.guard)
	if err != nil || m == nil {
		return err
	}
	p.users.Invites.Send = func(ctx context.Context, to, subject, text string) error {
		err := m.Send(ctx, to, subject, text)
		if errors.Is(err, mail.ErrRefused) {
			return errors.Join(err, job.ErrDead)
		}
		return err
	}
	return nil
}
