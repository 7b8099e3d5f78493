// Package mail sends mails through the SMTP server of the operator.
package mail

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"strings"
	"time"

	gomail "github.com/wneessen/go-mail"

	"soniq/internal/platform/clock"
	"soniq/internal/platform/db"
)

// Config holds the settings and dependencies of a Sender.
type Config struct {
	Server   string // smtps://user@host:465 (TLS), or smtp://user@host:587 (STARTTLS)
	Password string // password of the user in Server
	From     string // such as Soniq <voice@example.com>
	Dialer   Dialer
	TLS      *tls.Config // for servers with private certificate authorities; nil: the system's authorities
	Clock    clock.Clock // nil: the system clock
}

// Dialer connects to the server. plain reports whether a connection without TLS is allowed.
type Dialer interface {
	Dial(ctx context.Context, address string) (c net.Conn, plain bool, err error)
}

// Sender sends mails. It is safe for concurrent use. Every mail uses a connection of its own.
type Sender struct {
	cfg         Config
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
	c.Clock = clock.OrSystem(c.Clock)
	s := &Sender{cfg: c, host: u.Hostname(), user: u.User.Username(), implicitTLS: u.Scheme == "smtps"}
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

// File is a file that is attached to a mail.
type File struct {
	Name, Type string // such as message.wav, audio/wav
	Content    []byte
}

// Send sends a text mail to one address, with files. An error that wraps ErrRefused is permanent.
func (s *Sender) Send(ctx context.Context, to, subject, text string, files ...File) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	m, err := s.message(to, subject, text)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	for _, f := range files {
		if err := m.AttachReader(f.Name, bytes.NewReader(f.Content), gomail.WithFileContentType(gomail.ContentType(f.Type))); err != nil {
			return fmt.Errorf("attach %s: %w", f.Name, err)
		}
	}
	if err := s.deliver(ctx, m); err != nil && !m.IsDelivered() { // an error after the server has accepted the mail is none
		return fmt.Errorf("mail server %s: %w", s.addr, err)
	}
	return nil
}

// deliver opens an encrypted connection, authenticates and sends a mail. Without encryption it fails, unless the dialer allows it.
func (s *Sender) deliver(ctx context.Context, m *gomail.Msg) error {
	conn, plain, err := s.cfg.Dialer.Dial(ctx, s.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })() // the library does not observe the context after it has connected
	c, err := s.client(conn, plain)
	if err != nil {
		return err
	}
	session, err := c.DialToSMTPClientWithContext(ctx)
	if err != nil {
		return connectError(err)
	}
	if err := c.SendWithSMTPClient(session, m); err != nil {
		return sendError(err)
	}
	return session.Quit()
}

// client returns a client of the library that uses an open connection.
func (s *Sender) client(conn net.Conn, plain bool) (*gomail.Client, error) {
	policy := gomail.TLSMandatory
	switch {
	case s.implicitTLS:
		conn, policy = tls.Client(conn, s.tlsConfig()), gomail.NoTLS
	case plain:
		policy = gomail.TLSOpportunistic
	}
	options := []gomail.Option{gomail.WithTLSPolicy(policy), gomail.WithTLSConfig(s.tlsConfig()), gomail.WithTimeout(timeout),
		gomail.WithHELO("localhost"), gomail.WithoutNoop(), gomail.WithoutRset(),
		gomail.WithDialContextFunc(func(context.Context, string, string) (net.Conn, error) { return conn, nil })}
	if s.user != "" {
		options = append(options, gomail.WithUsername(s.user), gomail.WithPassword(s.cfg.Password),
			gomail.WithOpportunisticSMTPAuth(gomail.SMTPAuthPlain, gomail.SMTPAuthLogin, gomail.SMTPAuthSCRAMSHA256,
				gomail.SMTPAuthSCRAMSHA1))
	}
	return gomail.NewClient(s.host, options...)
}

func (s *Sender) tlsConfig() *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if s.cfg.TLS != nil {
		c = s.cfg.TLS.Clone()
	}
	c.ServerName = s.host
	return c
}

// connectError adds the remedy to the error of a server without encryption.
func connectError(err error) error {
	if strings.Contains(err.Error(), "does not support STARTTLS") {
		return errors.New("it offers no encryption; use smtps://, or open the server with --allow-targets")
	}
	return err
}

// sendError wraps permanent errors of the server (5yz, RFC 5321 §4.2.1) in ErrRefused. It removes the recipient from
// the text.
func sendError(err error) error {
	text, _, _ := strings.Cut(err.Error(), ", affected ")
	var e *gomail.SendError
	if errors.As(err, &e) && e.ErrorCode() >= 500 {
		return fmt.Errorf("%w: %s", ErrRefused, text)
	}
	return errors.New(text)
}

// message returns the mail (RFC 5322), with UTF-8 text in quoted-printable.
func (s *Sender) message(to, subject, text string) (*gomail.Msg, error) {
	m := gomail.NewMsg(gomail.WithNoDefaultUserAgent())
	m.FromMailAddress(s.from)
	if err := m.To(to); err != nil {
		return nil, err
	}
	m.Subject(oneLine(subject))
	m.SetDateWithValue(s.cfg.Clock.Now())
	m.SetMessageIDWithValue(db.NewID("mail") + "@" + s.from.Address[strings.LastIndexByte(s.from.Address, '@')+1:])
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetBodyString(gomail.TypeTextPlain, text)
	return m, nil
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
