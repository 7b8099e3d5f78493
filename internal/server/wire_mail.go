package server

import (
	"context"
	"errors"

	"soniq/internal/identity/user"
	"soniq/internal/platform/job"
	"soniq/internal/platform/mail"
)

// Mails to users: invitations, and voicemail.

// letterMailer sends mails without and with files.
type letterMailer interface {
	user.Mailer
	SendFiles(ctx context.Context, to, subject, text string, files ...mail.File) error
}

// mailer sends mails for jobs: a mail that the server refused is not sent again.
type mailer struct{ sender *mail.Sender }

// Send implements user.Mailer.
func (m mailer) Send(ctx context.Context, to, subject, text string) error {
	return m.SendFiles(ctx, to, subject, text)
}

// SendFiles sends a mail with files.
func (m mailer) SendFiles(ctx context.Context, to, subject, text string, files ...mail.File) error {
	err := m.sender.Send(ctx, to, subject, text, files...)
	if errors.Is(err, mail.ErrRefused) {
		return errors.Join(err, job.ErrDead)
	}
	return err
}

// buildMail sets the mailer if a mail server is configured.
func (p *Platform) buildMail() error {
	s, err := p.config.NewMailer(p.guard)
	if err == nil && s != nil {
		p.mailer = mailer{s}
	}
	return err
}
