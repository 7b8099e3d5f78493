package adapter

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
	ldapMaxAnswer   = 4 << 20 // bytes of the answer to a lookup
	ldapMaxIdle     = 4       // idle connections
	ldapIdleTimeout = time.Minute
)

// ldapPool keeps connections to a directory that are already bound (RFC 4511 §4.2). It is safe for concurrent use.
type ldapPool struct {
	s       LDAPSettings
	guard   *egress.Guard
	address string
	tls     *tls.Config

	mu     sync.Mutex // guards the rest
	idle   []*ldapConn
	closed bool
}

// ldapConn is a connection of the pool. It carries one request at a time.
type ldapConn struct {
	*ldap.Conn
	raw       *limitedConn
	idleTimer *time.Timer // closes an idle connection
}

func newLDAPPool(s LDAPSettings, g *egress.Guard) (*ldapPool, error) {
	address, err := s.hostPort(g)
	if err != nil {
		return nil, err
	}
	c, err := s.tlsConfig()
	return &ldapPool{s: s, guard: g, address: address, tls: c}, err
}

// withConn runs a request over a connection. It closes the connection when the context ends, or when the answer
// exceeds limit bytes. If an idle connection proves to be dead, the request runs once more over a new one.
func (p *ldapPool) withConn(ctx context.Context, limit int64, ask func(*ldap.Conn) error) error {
	c := p.takeIdle()
	for fresh := c == nil; ; fresh = true {
		if c == nil {
			var err error
			if c, err = p.connect(ctx); err != nil {
				return p.classifyError(ctx, err)
			}
		}
		err := c.ask(ctx, limit, ask)
		if !ldap.IsErrorWithCode(err, ldap.ErrorNetwork) || fresh || ctx.Err() != nil {
			p.release(c, err)
			return p.classifyError(ctx, err)
		}
		p.drop(c)
		c = nil
	}
}

// ask runs one request. The connection is closed when the context ends.
func (c *ldapConn) ask(ctx context.Context, limit int64, ask func(*ldap.Conn) error) error {
	c.raw.setLimit(limit)
	stop := context.AfterFunc(ctx, func() { _ = c.raw.Close() })
	defer stop()
	return ask(c.Conn)
}

// takeIdle takes an idle connection; nil if there is none.
func (p *ldapPool) takeIdle() *ldapConn {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.idle) > 0 {
		c := p.idle[len(p.idle)-1]
		p.idle = p.idle[:len(p.idle)-1]
		if c.idleTimer.Stop() && !c.IsClosing() {
			return c
		}
		p.drop(c)
	}
	return nil
}

// release returns a connection to the pool, or closes it after a network error.
func (p *ldapPool) release(c *ldapConn, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && !isResultError(err) || p.closed || c.IsClosing() || len(p.idle) >= ldapMaxIdle {
		p.drop(c)
		return
	}
	c.idleTimer = time.AfterFunc(ldapIdleTimeout, func() { _ = c.raw.Close() })
	p.idle = append(p.idle, c)
}

// isResultError reports whether an error is a result of the directory, after which the connection is still usable.
func isResultError(err error) bool {
	var e *ldap.Error
	return errors.As(err, &e) && e.ResultCode < ldap.ErrorNetwork
}

// drop closes a connection without waiting for the directory.
func (p *ldapPool) drop(c *ldapConn) {
	_ = c.raw.Close()
}

// Close closes idle connections. Connections in use are closed after their request.
func (p *ldapPool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for _, c := range p.idle {
		c.idleTimer.Stop()
		p.drop(c)
	}
	p.idle = nil
	return nil
}

// connect opens a connection, negotiates TLS and binds.
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
	m := &limitedConn{Conn: raw, left: ldapMaxAnswer}
	stop := context.AfterFunc(ctx, func() { _ = raw.Close() })
	defer stop()
	c, err := p.startSession(ctx, m, secure)
	if err != nil {
		_ = raw.Close()
		return nil, err
	}
	return &ldapConn{Conn: c, raw: m}, nil
}

func (p *ldapPool) startSession(ctx context.Context, m *limitedConn, secure bool) (*ldap.Conn, error) {
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

// classifyError maps an LDAP error to the errors of adapters.
func (p *ldapPool) classifyError(ctx context.Context, err error) error {
	var from *callbackError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &from):
		return from.error
	case ctx.Err() != nil:
		return ctx.Err()
	case ldap.IsErrorAnyOf(err, ldap.LDAPResultInvalidCredentials, ldap.LDAPResultInappropriateAuthentication,
		ldap.LDAPResultInsufficientAccessRights, ldap.LDAPResultStrongAuthRequired, ldap.LDAPResultConfidentialityRequired):
		return fmt.Errorf("%w: %s", ErrAuth, ldapErrorText(err))
	case ldap.IsErrorWithCode(err, ldap.LDAPResultBusy):
		return &BusyError{After: parseRetryAfter("")}
	}
	return errors.New(ldapErrorText(err))
}

// ldapErrorText returns the text of an error of the directory without the query.
func ldapErrorText(err error) string {
	var e *ldap.Error
	if errors.As(err, &e) && e.ResultCode < ldap.ErrorNetwork {
		return fmt.Sprintf("the directory answered %d (%s)", e.ResultCode, ldap.LDAPResultCodeMap[e.ResultCode])
	}
	return err.Error()
}

// limitedConn is a connection that fails after a number of received bytes.
type limitedConn struct {
	net.Conn
	mu   sync.Mutex // guards left
	left int64
}

func (m *limitedConn) setLimit(n int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.left = n
}

// Read reads from the connection. Beyond the limit it closes the connection and returns egress.ErrTooLarge.
func (m *limitedConn) Read(b []byte) (int, error) {
	n, err := m.Conn.Read(b)
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left -= int64(n); m.left < 0 {
		_ = m.Conn.Close()
		return 0, egress.ErrTooLarge
	}
	return n, err
}
