package server

import (
	"context"
	"errors"
	"time"

	"soniq/internal/identity/user"
	"soniq/internal/platform/job"
	"soniq/internal/platform/mail"
)

// This file reads what the operator says of plans and of mail.

// buildMail lets users be invited, by mail where there is a server for it.
func (h *Platform) buildMail() error {
	h.users.Invites = user.Invites{Seal: h.seal, BaseURL: h.config.BaseURL, Jobs: h.jobs}
	m, err := h.config.NewMailer(h.guard)
	if err != nil || m == nil {
		return err
	}
	h.users.Invites.Send = func(ctx context.Context, to, subject, text string) error {
		err := m.Send(ctx, to, subject, text)
		if errors.Is(err, mail.ErrRefused) {
			return errors.Join(err, job.ErrDead)
		}
		return err
	}
	return nil
}

// startMail starts the jobs that send mail, if a mail server is configured.
func (n *Server) startMail(ctx context.Context) error {
	h := n.Platform
	if h.users.Invites.Send == nil {
		return nil
	}
	n.mails = &job.Runner{DB: h.db, Queue: h.jobs, Name: user.MailQueue, Node: h.node, Log: h.log,
		Options: job.Options{Workers: 2, PerLane: 1, Timeout: 2 * time.Minute}}
	h.users.HandleMail(n.mails)
	n.mails.Handle(messageMail, h.sendMessageMail)
	return n.mails.Start(ctx)
}
