package config

import (
	"fmt"

	"soniq/internal/platform/egress"
	"soniq/internal/platform/mail"
)

// NewMailer returns a sender for the configured SMTP server, or nil if none is configured.
func (c *Config) NewMailer(g *egress.Guard) (*mail.Sender, error) {
	if c.SMTP == "" {
		return nil, nil
	}
	m, err := mail.New(mail.Config{Server: c.SMTP, Password: c.SMTPPassword, From: c.MailFrom, Dialer: g})
	if err != nil {
		return nil, fmt.Errorf("--smtp, --mail-from: %w", err)
	}
	return m, nil
}
