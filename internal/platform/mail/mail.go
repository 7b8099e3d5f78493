// Package mail sends mails through the SMTP server of the operator.
package mail

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"net/url"
	"strings"
	"time"

	"soniq/internal/platform/db"
)

// Config holds the settings and dependencies of a Sender.
type Config struct {
	Server   string // smtps://user@host:465 (TLS), or smtp://user@host:587 (STARTTLS)
	Password string // password of the user in Server
	From     string // such as Soniq <voice@example.com>
	// Dial connects to the server. plain reports whether a connection without TLS is allowed.
	Dial func(ctx context.Context, address string) (c net.Conn, plain bool, err error)
	TLS  *tls.Config // for servers with private certificate authorities; nil: the system's authorities
	Now  func() time.Time
}

// Sender sends mails. It is safe for concurrent use. Every mail uses a connection of its own.
type Sender struct {
	Config
	from        *mail.Address
	host        string // without port
	addr        string
	user        string
	implicitTLS bool // implicit TLS (RFC 8314)
}

// ErrRefused is returned if the server refused a mail permanently, so that a retry is useless.
var ErrRefused = errors.New("the mail server refused")

// timeout limits the sending of one mail.
const timeout = time.Minute

// New validates the settings and returns a Sender.
func New(c Config) (*Sender, error) {
	u, err := url.Parse(c.Server)
	if err != nil || u.Scheme != "smtp" && u.Scheme != "smtps" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" {
		return nil, fmt.Errorf("mail server %q must be smtps://user@host or smtp://user@host:587", c.Server)
	}
	s := &Sender{Config: c, host: u.Hostname(), user: u.User.Username(), implicitTLS: u.Scheme == "smtps"}
	if s.from, err = mail.ParseAddress(c.From); err != nil {
		return nil, fmt.Errorf("sender of mails %q must be an address such as Voice <voice@example.com>", c.From)
	}
	port := u.Port()
	if port == "" {
		port = map[bool]string{true: "465", false: "587"}[s.implicitTLS]
	}
	s.addr = net.JoinHostPort(s.host, port)
	return s, nil
}

// Send sends a text mail to one address. An error that wraps ErrRefused is permanent.
func (s *Sender) Send(ctx context.Context, to, subject, text string) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	c, err := s.connect(ctx)
	if err != nil {
		return fmt.Errorf("mail server %s: %w", s.addr, err)
	}
	defer c.Close()
	if err := s.deliver(c, to, s.message(to, subject, text)); err != nil {
		return fmt.Errorf("mail server %s: %w", s.addr, markFinal(err))
	}
	return nil
}

// markFinal wraps permanent errors of the server (5yz, RFC 5321 §4.2.1) in ErrRefused.
func markFinal(err error) error {
	var e *textproto.Error
	if errors.As(err, &e) && e.Code >= 500 {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return err
}

func (s *Sender) tlsConfig() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.TLS != nil {
		c = s.TLS.Clone()
	}
	c.ServerName = s.host
	return c
}

// connect opens an encrypted connection and authenticates. Without encryption it fails, unless Dial allows it.
func (s *Sender) connect(ctx context.Context) (*smtp.Client, error) {
	conn, plain, err := s.Dial(ctx, s.addr)
	if err != nil {
		return nil, err
	}
	deadline, _ := ctx.Deadline()
	_ = conn.SetDeadline(deadline)
	if s.implicitTLS {
		conn = tls.Client(conn, s.tlsConfig())
	}
	c, err := smtp.NewClient(conn, s.host)
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	if err := s.startTLSAndAuth(c, plain); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (s *Sender) startTLSAndAuth(c *smtp.Client, plain bool) error {
	if !s.implicitTLS {
		offered, _ := c.Extension("STARTTLS")
		if !offered && !plain {
			return errors.New("it offers no encryption; use smtps://, or open the server with --allow-targets")
		}
		if offered {
			if err := c.StartTLS(s.tlsConfig()); err != nil {
				return err
			}
		}
	}
	if s.user == "" {
		return nil
	}
	return c.Auth(smtp.PlainAuth("", s.user, s.Password, s.host))
}

func (s *Sender) deliver(c *smtp.Client, to string, message []byte) error {
	if err := c.Mail(s.from.Address); err != nil {
		return err
	}
	if err := c.Rcpt(to); err != nil {
		return err
	}
	w, err := c.Data()
	if err != nil {
		return err
	}
	if _, err := w.Write(message); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	_ = c.Quit() // the server has accepted the mail
	return nil
}

// message returns the mail in the format of RFC 5322, with UTF-8 text.
func (s *Sender) message(to, subject, text string) []byte {
	var b strings.Builder
	domain := s.from.Address[strings.LastIndexByte(s.from.Address, '@')+1:]
	for _, h := range [][2]string{{"From", s.from.String()}, {"To", (&mail.Address{Address: to}).String()},
		{"Subject", mime.QEncoding.Encode("utf-8", oneLine(subject))}, {"Date", s.Now().Format(time.RFC1123Z)},
		{"Message-ID", "<" + db.NewID("mail") + "@" + domain + ">"}, {"MIME-Version", "1.0"}, {"Auto-Submitted", "auto-generated"},
		{"Content-Type", "text/plain; charset=utf-8"}, {"Content-Transfer-Encoding", "quoted-printable"}} {
		b.WriteString(h[0] + ": " + h[1] + "\r\n")
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	_, _ = w.Write([]byte(strings.ReplaceAll(text, "\n", "\r\n")))
	_ = w.Close()
	return []byte(b.String())
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
