package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"

	"soniq/internal/messaging/smppserver"
)

// Connects the SMPP server with the other services, and opens its listeners.

// buildSMPPServer constructs the SMPP server.
func (p *Platform) buildSMPPServer() (err error) {
	d := messageDependencies{p}
	p.smppApps, err = smppserver.New(smppserver.Config{DB: p.db, Jobs: p.jobs, Messages: p.messages, Digester: p.seal, Node: p.node,
		Log: p.log, Numbers: d, Environments: d, MayDelete: p.clock.MayDelete})
	return err
}

// smppListeners are the listeners for SMPP applications.
type smppListeners struct {
	plain, secure net.Listener // nil if it is off
	stop          context.CancelFunc
	serving       sync.WaitGroup
}

// openSMPP opens the configured listeners for SMPP applications.
func (s *Server) openSMPP(ctx context.Context) (err error) {
	p := s.Platform
	ctx, s.smpp.stop = context.WithCancel(ctx)
	s.closers.push("SMPP", func(context.Context) { s.smpp.close() })
	if a := p.config.SMPP; a != "" {
		if s.smpp.plain, err = s.listenSMPP(ctx, "--smpp", a, nil); err != nil {
			return err
		}
	}
	if a := p.config.SMPPS; a != "" {
		s.smpp.secure, err = s.listenSMPP(ctx, "--smpps", a, s.certificate.Config())
		return err
	}
	return nil
}

// listenSMPP serves SMPP on an address. flag names the setting in errors.
func (s *Server) listenSMPP(ctx context.Context, flag, address string, c *tls.Config) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("SMPP cannot use %s: %w; choose another with %s", address, err, flag)
	}
	s.smpp.serving.Go(func() {
		if err := s.Platform.smppApps.Serve(ctx, l, c); err != nil {
			s.Platform.log.Error("SMPP ended", "err", err)
		}
	})
	return l, nil
}

// close unbinds all applications, and waits until their connections are closed.
func (d *smppListeners) close() {
	d.stop()
	d.serving.Wait()
}

// String returns the addresses of the listeners for the start message.
func (d *smppListeners) String() (text string) {
	if d.plain != nil {
		text += " smpp=" + d.plain.Addr().String()
	}
	if d.secure != nil {
		text += " smpps=" + d.secure.Addr().String()
	}
	return text
}
