package crm

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/go-ldap/ldap/v3"

	"soniq/internal/platform/egress"
)

const (
	ldapAnswer = 4 << 20 // bytes of the answer to a question
	ldapIdle   = 4       // connections kept
	ldapRest   = time.Minute
)

// An ldapPool keeps connections to a directory, on which we have said who we are. It is safe for concurrent use.
type ldapPool struct {
	s       LDAPSettings
	guard   *egress.Guard
	address string
	tls     *tls.Config

	mu     sync.Mutex // guards the rest
	idle   []*ldapConn
	closed bool
}

// An ldapConn is a connection of the pool: one question at a time.
type ldapConn struct {
	*ldap.Conn
	raw  *metered
	rest *time.Timer // ends it when it has been idle for long
}

func newLDAPPool(s LDAPSettings, g *egress.Guard) (*ldapPool, error) {
	address, err := s.server(g)
	if err != nil {
		return nil, err
	}
	c, err := s.tls()
	return &ldapPool{s: s, guard: g, address: address, tls: c}, err
}

// with has something asked over a connection, and cuts it when the time is up or the answer is longer than so many bytes. A
// connection that has grown stale is replaced by a new one.
func (p *ldapPool) with(ctx context.Context, limit int64, ask func(*ldap.Conn) error) error {
	c := p.rested()
	for fresh := c == nil; ; fresh = true {
		if c == nil {
			var err error
			if c, err = p.connect(ctx); err != nil {
				return p.verdict(ctx, err)
			}
		}
		err := c.ask(ctx, limit, ask)
		if !ldap.IsErrorWithCode(err, ldap.ErrorNetwork) || fresh || ctx.Err() != nil {
			p.keep(c, err)
			return p.verdict(ctx, err)
		}
		p.drop(c)
		c = nil
	}
}

// ask asks one question; the connection is cut when its time is up.
func (c *ldapConn) ask(ctx context.Context, limit int64, ask func(*ldap.Conn) error) error {
	c.raw.allow(limit)
	stop := context.AfterFunc(ctx, func() { _ = c.raw.Close() })
	defer stop()
	return ask(c.Conn)
}

// rested takes a connection that is not used; nil where there is none.
func (p *ldapPool) rested() *ldapConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.rest.Stop() && !c.IsClosing() {
			return c
		}
		p.drop(c)
	}
	return nil
}

// keep puts a connection back, unless something was wrong with it.
func (p *ldapPool) keep(c *ldapConn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && !answered(err) || p.closed || c.IsClosing() || len(p.idle) >= ldapIdle {
		p.drop(c)
		return
	}
	c.rest = time.AfterFunc(ldapRest, func() { _ = c.raw.Close() })
	p.idle = append(p.idle, c)
}

// answered reports whether an error came from the directory itself, over a connection that is as good as before.
func answered(err error) bool {
	var e *ldap.Error
	return errors.As(err, &e) && e.ResultCode < ldap.ErrorNetwork
}

// drop ends a connection, without waiting for the directory.
func (p *ldapPool) drop(c *ldapConn) {
	_ = c.raw.Close()
}

// Close ends the connections that are not used; those that are end after their question.
func (p *ldapPool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		c.rest.Stop()
		p.drop(c)
	}
	p.idle = nil
	return nil
}

// connect connects, goes over to TLS, and says who we are.
func (p *ldapPool) connect(ctx context.Context) (*ldapConn, error) {
	raw, plain, err := p.guard.Dial(ctx, p.address)
	if err != nil {
		return nil, err
	}
	secure := strings.HasPrefix(p.s.URL, "ldaps:")
	if !secure && !p.s.StartTLS && !plain {
		_ = raw.Close()
		return nil, fmt.Errorf("%w: it may be reached with TLS only, unless the operator opens it with --allow-targets", egress.ErrBlocked)
	}
	m := &metered{Conn: raw, left: ldapAnswer}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	c, err := p.introduce(ctx, m, secure)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return &ldapConn{Conn: c, raw: m}, nil
}

func (p *ldapPool) introduce(ctx context.Context, m *metered, secure bool) (*ldap.Conn, error) {
	var on net.Conn = m
	if secure {
		t := tls.Client(m, p.tls)
		if err := t.HandshakeContext(ctx); err != nil {
			return nil, err
		}
		on = t
	}
	c := ldap.NewConn(on, secure)
	c.Start()
	if p.s.StartTLS {
		if err := c.StartTLS(p.tls.Clone()); err != nil {
			return nil, err
		}
	}
	if p.s.BindDN == "" {
		return c, nil
	}
	return c, c.Bind(p.s.BindDN, p.s.Password)
}

// verdict says what an error means to us.
func (p *ldapPool) verdict(ctx context.Context, err error) error {
	var from *took
	switch {
	case err == nil:
		return nil
	case errors.As(err, &from):
		return from.error
	case ctx.Err() != nil:
		return ctx.Err()
	case ldap.IsErrorAnyOf(err, ldap.LDAPResultInvalidCredentials, ldap.LDAPResultInappropriateAuthentication, ldap.LDAPResultInsufficientAccessRights,
		ldap.LDAPResultStrongAuthRequired, ldap.LDAPResultConfidentialityRequired):
		return fmt.Errorf("%w: %s", ErrAuth, ldapWords(err))
	case ldap.IsErrorWithCode(err, ldap.LDAPResultBusy):
		return &Busy{After: retryAfter("")}
	}
	return errors.New(ldapWords(err))
}

// ldapWords is an error of the directory without what was asked.
func ldapWords(err error) string {
	var e *ldap.Error
	if errors.As(err, &e) && e.ResultCode < ldap.ErrorNetwork {
		return fmt.Sprintf("the directory answered %d (%s)", e.ResultCode, ldap.LDAPResultCodeMap[e.ResultCode])
	}
	return err.Error()
}

// A metered connection ends with an error where more comes than is allowed.
type metered struct {
	net.Conn
	mu   sync.Mutex // guards left
	left int64
}

func (m *metered) allow(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = n
}

func (m *metered) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left -= int64(n); m.left < 0 {
		_ = m.Conn.Close()
		return 0, egress.ErrTooLarge
	}
	return n, err
}
