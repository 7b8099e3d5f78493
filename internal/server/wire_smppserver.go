package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"sync"
	"time"

	"soniq/internal/messaging/smppserver"
	"soniq/internal/platform/access"
	"soniq/internal/platform/job"
)

// This file joins the SMPP server with the other services and opens its listeners.

// buildESME constructs the SMPP server.
func (h *Platform) buildESME(now func() time.Time) (err error) {
	h.esme, err = smppserver.New(smppserver.Config{DB: h.db, Jobs: h.jobs, Messages: h.messages, Digest: h.seal.Digest, Now: now, Node: h.node, Log: h.log,
		Number: h.e164, Environment: func(ctx context.Context, org string) (access.Environment, error) {
			o, err := h.orgs.Get(ctx, org)
			if err == nil && o.Sandbox() {
				return access.Sandbox, nil
			}
			return access.Live, err
		}})
	return err
}

// smppDoors are the addresses at which SMPP is spoken.
type smppDoors struct {
	plain, secure net.Listener // nil where there is none
	stop          context.CancelFunc
	serving       sync.WaitGroup
}

// openSMPP starts deliveries to SMPP applications, and opens the configured listeners.
func (n *Server) openSMPP(ctx context.Context) (err error) {
	h := n.Platform
	n.applications = &job.Runner{DB: h.db, Queue: h.jobs, Name: smppserver.Queue, Node: h.node, Log: h.log,
		Options: job.Options{Workers: 16, PerLane: 8, Timeout: 2 * time.Minute}}
	h.esme.Handle(n.applications)
	if err := n.applications.Start(ctx); err != nil {
		return err
	}
	ctx, n.smpp.stop = context.WithCancel(ctx)
	if a := h.config.SMPP; a != "" {
		if n.smpp.plain, err = n.smppDoor(ctx, "--smpp", a, nil); err != nil {
			return err
		}
	}
	if a := h.config.SMPPS; a != "" {
		pair, err := h.config.KeyPair()
		if err != nil {
			return fmt.Errorf("SMPP over TLS: %w; see --tls-cert and --tls-key", err)
		}
		n.smpp.secure, err = n.smppDoor(ctx, "--smpps", a, &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12})
		return err
	}
	return nil
}

func (n *Server) smppDoor(ctx context.Context, flag, address string, c *tls.Config) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("SMPP cannot use %s: %w; choose another with %s", address, err, flag)
	}
	n.smpp.serving.Go(func() {
		if err := n.Platform.esme.Serve(ctx, l, c); err != nil {
			n.Platform.log.Error("SMPP ended", "err", err)
		}
	})
	return l, nil
}

// close says goodbye to who is connected.
func (d *smppDoors) close() {
	if d.stop != nil {
		d.stop()
	}
	d.serving.Wait()
}

// String returns the addresses of the listeners for the start message.
func (d *smppDoors) String() (text string) {
	if d.plain != nil {
		text += " smpp=" + d.plain.Addr().String()
	}
	if d.secure != nil {
		text += " smpps=" + d.secure.Addr().String()
	}
	return text
}
