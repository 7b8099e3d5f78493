package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"soniq/internal/identity/org"
	"soniq/internal/identity/user"
	"soniq/internal/platform/egress"
	"soniq/internal/platform/job"
	"soniq/internal/platform/mail"
)

// This file reads what the operator says of plans and of mail.

// plans are those of the file, or the default ones.
func (c *Config) plans() (org.Plans, error) {
	if c.Plans == "" {
		return org.DefaultPlans(), nil
	}
	f, err := os.Open(c.Plans)
	if err != nil {
		return org.Plans{}, fmt.Errorf("--plans: %w", err)
	}
	defer f.Close()
	p, err := org.ReadPlans(f)
	if err != nil {
		return p, fmt.Errorf("--plans %s: %w", c.Plans, err)
	}
	return p, nil
}

// mailer sends mails through the operator's server; nil where none is set.
func (c *Config) mailer(g *egress.Guard) (*mail.Sender, error) {
	if c.SMTP == "" {
		return nil, nil
	}
	m, err := mail.New(mail.Config{Server: c.SMTP, Password: c.SMTPPassword, From: c.MailFrom, Now: time.Now,
		Dial: func(ctx context.Context, address string) (net.Conn, bool, error) { return g.Dial(ctx, address) }})
	if err != nil {
		return nil, fmt.Errorf("--smtp, --mail-from: %w", err)
	}
	return m, nil
}

// buildMail lets users be invited, by mail where there is a server for it.
func (h *house) buildMail() error {
	h.users.Invites = user.Invites{Seal: h.seal, BaseURL: h.config.BaseURL, Jobs: h.jobs}
	m, err := h.config.mailer(h.guard)
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

// startMail sends what is waiting to be sent.
func (n *node) startMail(ctx context.Context) error {
	h := n.house
	if h.users.Invites.Send == nil {
		return nil
	}
	n.mails = &job.Runner{DB: h.db, Queue: h.jobs, Name: user.MailQueue, Node: h.node, Log: h.log,
		Options: job.Options{Workers: 2, PerLane: 1, Timeout: 2 * time.Minute}}
	h.users.HandleMail(n.mails)
	n.mails.Handle(messageMail, h.sendMessageMail)
	return n.mails.Start(ctx)
}
