package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"soniq/internal/config"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/trunk"
	"soniq/internal/telephony/trunkreg"
)

// This file starts media and SIP.

// openTelephony starts media and SIP.
func (n *Server) openTelephony(ctx context.Context) (err error) {
	h, c := n.Platform, n.Platform.config
	low, high, err := c.RTPPortRange()
	if err != nil {
		return err
	}
	public, _ := netip.ParseAddr(c.PublicIP)
	bind, err := config.BindAddress(c.SIP)
	if err != nil {
		return err
	}
	if err := h.devices.DropFlows(ctx); err != nil {
		return err
	}
	if n.media, err = media.New(media.Config{PortMin: low, PortMax: high, Bind: bind, Advertise: public, Logger: h.log}); err != nil {
		return fmt.Errorf("media: %w", err)
	}
	dir := newDirectory(ctx, h.bus, &directory{db: h.db, orgs: h.orgs, users: h.users, devices: h.devices, numbers: h.numbers,
		trunks: h.trunks, gate: h.gate, outbox: h.outbox, now: time.Now})
	n.switcher = pbx.New(pbx.Config{Directory: dir, Records: h.calls, Media: n.media, Files: h.files, Ears: h.ears(),
		Speaker: speaker{h}, Audio: h.audio, OnRecorded: h.transcripts.Recorded, Salvage: salvage, Log: h.log, Now: time.Now, RingTimeout: c.RingTime, CallerName: h.callerName, Room: h.orgs.Room, Rings: h.rings, Attend: h.attendant.Attend, Verify: h.verify(),
		Streams: h.outbox, MediaTimeout: c.MediaTimeout})
	if n.parties, err = openParties(ctx, h); err != nil {
		n.parties = nil
		return err
	}
	n.strangers = newStrangers(ctx, n)
	dir.parties, dir.strangers, dir.bars, h.sandbox.Call = n.parties, n.strangers, &h.bars, n.strangers.call
	n.joinReset()
	x := &texts{house: h, dir: dir}
	h.messages.Carriers[phoneCarrier], h.messages.Forward = x, x.forward
	h.queues.LettingGo = n.switcher.LettingGo
	h.calls.Switch, dir.registered = n.switcher, n.switcher.Registered
	n.lamps, n.lights = newLamps(h, dir), newLights(h)
	dir.lamps = n.lamps
	proxies, err := config.ParseNetworks("trusted-proxies", c.TrustedProxies)
	if err != nil {
		return err
	}
	secure, err := n.tlsConfig()
	if err != nil {
		return err
	}
	n.sip, err = sip.Listen(ctx, sip.Config{Addr: c.SIP, TLS: secure, PublicIP: public,
		Web: sip.WebConfig{Origins: config.SplitList(c.WebOrigins), Proxies: proxies, Token: h.devices.Browser}, SessionExpires: c.SessionExpires, KeepAlive: c.KeepAlive, OnBan: n.banned, Urgent: trunk.MaybeEmergency,
		Realm: c.SIPDomain, Names: c.SIPNames(), Accounts: dir, Bindings: dir, OnMessage: x.took, Topics: []sip.Topic{n.lamps.topic(), n.lights.topic()}, Logger: h.log, Trace: n.switcher.Trace,
		Limits: sip.Limits{Calls: c.MaxCalls, InvitesPerSecond: c.CallRate}}, n.switcher)
	if err != nil {
		return fmt.Errorf("SIP cannot use %s: %w; choose another with --sip", c.SIP, err)
	}
	h.owns = n.sip.Owns
	h.devices.Notify = func(ctx context.Context, b device.Binding, aor, event string) (int, error) {
		return n.sip.Notify(ctx, bindingOf(b), aor, event)
	}
	x.sip, n.lamps.sip, n.lights.sip = n.sip, n.sip, n.sip
	n.lamps.start(ctx)
	n.lights.start(ctx)
	n.keepLines(ctx)
	n.run(func() { n.switcher.TellQuality(ctx) })
	return n.keepOpen(ctx)
}

// keepOpen has the ways to phones that registered before a restart kept open.
func (n *Server) keepOpen(ctx context.Context) error {
	registered, err := n.Platform.devices.Registered(ctx)
	if err != nil {
		return err
	}
	all := make([]sip.Binding, len(registered))
	for i, b := range registered {
		all[i] = bindingOf(b)
	}
	n.sip.KeepOpen(all)
	return nil
}

// keepLines looks after the trunks until the node stops; they are logged out before signalling closes.
func (n *Server) keepLines(ctx context.Context) {
	h := n.Platform
	ctx, n.hangUp = context.WithCancel(ctx)
	n.run(func() { h.trunks.KeepResolved(ctx, net.DefaultResolver) })
	l := trunkreg.New(trunkreg.Config{Trunks: h.trunks, SIP: n.sip, Bus: h.bus, Log: h.log, ProbeInterval: h.config.TrunkProbe})
	h.trunks.Ask = l.Probe
	n.lines.Go(func() { l.Run(ctx) })
}

// banned tells the log of a source that is met with silence.
func (n *Server) banned(source netip.Addr, until time.Time, why string) {
	n.Platform.log.Warn("source banned", "source", source, "until", until.UTC().Format(time.RFC3339), "why", why)
}
