package mail

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"mime/quotedprintable"
	"net"
	netmail "net/mail"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/internal/protocol/sip/transport"
)

// mailServer is an SMTP server for tests.
type mailServer struct {
	net.Listener
	refuse string // response to RCPT; empty: accept
	secure *tls.Config

	hangsUp bool // after it has accepted a mail

	mu    sync.Mutex // guards lines and mails
	lines []string
	mails []string
}

// got returns the received lines and mails.
func (o *mailServer) got() (lines, mails []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.lines), slices.Clone(o.mails)
}

func startMailServer(t *testing.T, o *mailServer) *mailServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.Listener = l
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { defer c.Close(); o.serve(c) })
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return o
}

func (o *mailServer) serve(c net.Conn) {
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	in := bufio.NewReader(c)
	say := func(text string) { fmt.Fprint(c, text+"\r\n") }
	say("220 office")
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		o.mu.Lock()
		o.lines = append(o.lines, strings.TrimSpace(line))
		o.mu.Unlock()
		switch word := strings.ToUpper(strings.Fields(line)[0]); word {
		case "EHLO":
			if o.secure != nil {
				say("250-office\r\n250-AUTH PLAIN\r\n250 STARTTLS")
			} else {
				say("250-office\r\n250 AUTH PLAIN")
			}
		case "STARTTLS":
			say("220 go")
			c = tls.Server(c, o.secure)
			o.secure, in = nil, bufio.NewReader(c)
		case "AUTH":
			say("235 welcome")
		case "RCPT":
			say(map[bool]string{true: o.refuse, false: "250 ok"}[o.refuse != ""])
		case "DATA":
			say("354 go")
			var b strings.Builder
			for {
				l, err := in.ReadString('\n')
				if err != nil {
					return
				}
				if l == ".\r\n" {
					break
				}
				b.WriteString(l)
			}
			o.mu.Lock()
			o.mails = append(o.mails, b.String())
			o.mu.Unlock()
			say("250 taken")
			if o.hangsUp {
				return
			}
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

// toServer is a Dialer that connects to the server under test, whatever the address.
type toServer struct {
	server *mailServer
	plain  bool
}

func (d toServer) Dial(ctx context.Context, _ string) (net.Conn, bool, error) {
	n, err := (&net.Dialer{}).DialContext(ctx, "tcp", d.server.Addr().String())
	return n, d.plain, err
}

func newSender(t *testing.T, o *mailServer, plain bool, more func(*Config)) *Sender {
	t.Helper()
	_, port, _ := net.SplitHostPort(o.Addr().String())
	c := Config{Server: "smtp://voice@localhost:" + port, Password: "secret", From: "Vöice <voice@example.com>", Dialer: toServer{o, plain}}
	if more != nil {
		more(&c)
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSend_ContentUnchanged(t *testing.T) {
	t.Parallel()
	o := startMailServer(t, &mailServer{})
	const text = "Grüße,\n\n.a line with a dot\n" + "https://voice.example.com/invite/0123456789012345678901234567890123456789012345678901234567890123456789\n"
	if err := newSender(t, o, true, nil).Send(t.Context(), "ada@example.com", "Hällo\r\nBcc: eve@example.com", text); err != nil {
		t.Fatal(err)
	}
	_, mails := o.got()
	m, err := netmail.ReadMessage(strings.NewReader(mails[0]))
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(quotedprintable.NewReader(m.Body))
	got := strings.TrimPrefix(strings.ReplaceAll(string(body), "\r\n", "\n"), "")
	if strings.ReplaceAll(got, "\n..", "\n.") != text || m.Header.Get("To") != "<ada@example.com>" || m.Header.Get("Bcc") != "" {
		t.Errorf("arrived: %v\n%s", m.Header, got)
	}
}

func TestSend_RequiresEncryption(t *testing.T) {
	t.Parallel()
	o := startMailServer(t, &mailServer{})
	err := newSender(t, o, false, nil).Send(t.Context(), "ada@example.com", "x", "x")
	lines, mails := o.got()
	if err == nil || len(mails) > 0 {
		t.Errorf("sent in the clear: %v, %q", err, lines)
	}
	if err != nil && !strings.Contains(err.Error(), "--allow-targets") {
		t.Errorf("no remedy: %v", err)
	}
	for _, l := range lines {
		if strings.HasPrefix(l, "AUTH") {
			t.Errorf("the password was told: %s", l)
		}
	}
}

func TestSend_VerifiesCertificate(t *testing.T) {
	t.Parallel()
	cert, certPEM, _, err := transport.SelfSigned("localhost")
	if err != nil {
		t.Fatal(err)
	}
	o := startMailServer(t, &mailServer{secure: &tls.Config{Certificates: []tls.Certificate{cert}}})
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(certPEM)
	if err := newSender(t, o, false, func(c *Config) {
		c.TLS = &tls.Config{RootCAs: trusted}
	}).Send(t.Context(), "ada@example.com", "x", "x"); err != nil {
		t.Errorf("not sent: %v", err)
	}
	o = startMailServer(t, &mailServer{secure: &tls.Config{Certificates: []tls.Certificate{cert}}})
	if err := newSender(t, o, false, nil).Send(t.Context(), "ada@example.com", "x", "x"); err == nil {
		t.Error("a certificate that nobody vouches for was believed")
	}
}

func TestSend_PermanentAndTemporaryErrors(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{"550 no such mailbox": true, "451 later": false} {
		o := startMailServer(t, &mailServer{refuse: answer})
		err := newSender(t, o, true, nil).Send(t.Context(), "ada@example.com", "x", "x")
		if err == nil || errors.Is(err, ErrRefused) != want || !strings.Contains(err.Error(), answer[:4]) ||
			strings.Contains(err.Error(), "ada@") {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// silentServer is a Dialer to a server that never answers. It ends the context when it is connected.
type silentServer struct {
	conn   net.Conn
	cancel context.CancelFunc
}

func (d silentServer) Dial(context.Context, string) (net.Conn, bool, error) {
	d.cancel()
	return d.conn, true, nil
}

// A server that never answers ends with the context, and its connection is closed.
func TestSend_EndsWithContext(t *testing.T) {
	t.Parallel()
	ours, theirs := net.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	s := newSender(t, startMailServer(t, &mailServer{}), true, func(c *Config) {
		c.Dialer = silentServer{ours, cancel}
	})
	if err := s.Send(ctx, "ada@example.com", "x", "x"); err == nil || errors.Is(err, ErrRefused) {
		t.Errorf("sent to a server that says nothing: %v", err)
	}
	if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is open: %v", err)
	}
}

// A server that hangs up after it has accepted the mail has it: a second attempt would send it twice.
func TestSend_AcceptedMailIsSent(t *testing.T) {
	t.Parallel()
	o := startMailServer(t, &mailServer{hangsUp: true})
	if err := newSender(t, o, true, nil).Send(t.Context(), "ada@example.com", "x", "x"); err != nil {
		t.Error(err)
	}
}

func TestNew_InvalidSettings(t *testing.T) {
	t.Parallel()
	for _, c := range []Config{{Server: "http://x", From: "a@b.c"}, {Server: "smtp://", From: "a@b.c"}, {Server: "smtp://x", From: "nobody"}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}
