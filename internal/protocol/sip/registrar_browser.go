package sip

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"soniq/internal/protocol/sip/transport"
)

// Browsers that are gone: a closed page sends no REGISTER that ends its registration. Its WebSocket ends, or does not answer pings.

// browserFlows holds the accounts that registered over open WebSockets.
type browserFlows struct {
	mu       sync.Mutex // guards accounts
	accounts map[*transport.Conn][]string
}

func (b *browserFlows) add(c *transport.Conn, account string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.accounts == nil {
		b.accounts = map[*transport.Conn][]string{}
	}
	if !slices.Contains(b.accounts[c], account) {
		b.accounts[c] = append(b.accounts[c], account)
	}
}

// take returns the accounts of a connection and forgets it.
func (b *browserFlows) take(c *transport.Conn) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	accounts := b.accounts[c]
	delete(b.accounts, c)
	return accounts
}

// noteBrowser records that an account registered over a WebSocket.
func (s *Server) noteBrowser(r *registerRequest, account string) {
	if s.limits.BrowserTimeout <= 0 || !r.conn.Transport().IsWebSocket() {
		return
	}
	s.browserFlows.add(r.conn, account)
	if !r.conn.IsOpen() { // it ended before it was recorded
		s.awaitBrowser(r.conn)
	}
}

// awaitBrowser gives the browsers that registered over an ended connection time to register again, as after the page is loaded again.
// Then it ends the registrations that are left without a connection.
func (s *Server) awaitBrowser(c *transport.Conn) {
	accounts := s.browserFlows.take(c)
	if len(accounts) == 0 || s.ctx.Err() != nil {
		return
	}
	s.workers.Go(func() {
		timer := time.NewTimer(s.limits.BrowserTimeout)
		defer timer.Stop()
		select {
		case <-s.done:
			return
		case <-timer.C:
		}
		for _, account := range accounts {
			if err := s.dropLostBindings(account); err != nil {
				s.logFailure("end the registration of a browser that is gone", err)
			}
		}
	})
}

// dropLostBindings removes the bindings of an account whose connections to this server have ended.
func (s *Server) dropLostBindings(account string) error {
	ctx, cancel := context.WithTimeout(s.ctx, lookupTimeout)
	defer cancel()
	lock := s.accountLocks.forAccount(s.hasher, account)
	lock.Lock()
	defer lock.Unlock()
	all, err := s.config.Bindings.Load(ctx, account)
	if err != nil {
		return fmt.Errorf("load bindings of %s: %w", account, err)
	}
	if !slices.ContainsFunc(all, s.hasLostFlow) {
		return nil // it came back
	}
	if err := s.config.Bindings.Save(ctx, account, s.liveBindings(all, s.config.Now())); err != nil {
		return fmt.Errorf("save bindings of %s: %w", account, err)
	}
	return nil
}
