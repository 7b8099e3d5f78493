package server

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"soniq/internal/config"
	"soniq/internal/contactcenter/phonestate"
	"soniq/internal/messaging/sipmessage"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
	"soniq/internal/sandbox/testparty"
	"soniq/internal/telephony/device"
	"soniq/internal/telephony/directory"
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
	if n.parties, err = testparty.Open(ctx, testparty.Config{DB: h.db, Numbers: h, Speech: speaker{h}, Server: n, Log: h.log}); err != nil {
		return err
	}
	dir := h.newDirectory(ctx, n.parties)
	n.switcher = pbx.New(pbx.Config{Directory: dir, Records: h.calls, Media: n.media, Files: h.files, Ears: h.ears(),
		Speaker: speaker{h}, Audio: h.audio, OnRecorded: h.transcripts.Recorded, Salvage: salvage, Log: h.log, Now: time.Now, RingTimeout: c.RingTime, CallerName: h.callerName, Room: h.orgs.Room, Rings: h.rings, Attend: h.attendant.Attend, Verify: h.verify(),
		Streams: h.outbox, MediaTimeout: c.MediaTimeout})
	h.sandbox.Call = n.parties.Call
	n.joinReset()
	messages := sipmessage.New(sipmessage.Config{DB: h.db, Directory: dir, Orgs: h.orgs, Users: h.users, Devices: h.devices, Numbers: h.numbers,
		OwnNumber: h, Messages: h.messages, SIPDomain: c.SIPDomain, Log: h.log})
	h.messages.Carriers[sipmessage.Carrier], h.messages.Forward = messages, messages.Forward
	h.queues.LettingGo = n.switcher.LettingGo
	h.calls.Switch = n.switcher
	states := phonestate.Config{DB: h.db, Bus: h.bus, Directory: dir, Devices: h.devices, Users: h.users, Agents: h.agents, Voicemail: h.voicemail,
		SIPDomain: c.SIPDomain, Log: h.log}
	n.messageWaiting, n.busyLamps = phonestate.NewMessageWaiting(states), phonestate.NewBusyLampField(states)
	dir.OnRegister(func(device, _ string, all []sip.Binding) { n.switcher.Registered(device, all) })
	dir.OnRegister(n.messageWaiting.Registered)
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
		Realm: c.SIPDomain, Names: c.SIPNames(), Accounts: dir, Bindings: dir, OnMessage: messages.Receive,
		Topics: []sip.Topic{n.messageWaiting.Topic(), n.busyLamps.Topic()}, Logger: h.log, Trace: n.switcher.Trace,
		Limits: sip.Limits{Calls: c.MaxCalls, InvitesPerSecond: c.CallRate}}, n.switcher)
	if err != nil {
		return fmt.Errorf("SIP cannot use %s: %w; choose another with --sip", c.SIP, err)
	}
	h.owns = n.sip.Owns
	h.devices.Notify = func(ctx context.Context, b device.Binding, aor, event string) (int, error) {
		return n.sip.Notify(ctx, directory.BindingOf(b), aor, event)
	}
	messages.Attach(n.sip)
	n.messageWaiting.Start(ctx, n.sip)
	n.busyLamps.Start(ctx, n.sip)
	n.keepLines(ctx)
	n.run(func() { n.switcher.TellQuality(ctx) })
	return n.keepOpen(ctx)
}

// newDirectory returns the directory of the switch.
func (h *Platform) newDirectory(ctx context.Context, parties directory.TestParties) *directory.Directory {
	return directory.New(ctx, directory.Config{DB: h.db, Bus: h.bus, Orgs: h.orgs, Users: h.users, Devices: h.devices, Numbers: h.numbers,
		Trunks: h.trunks, Gate: h.gate, Outbox: h.outbox, Now: time.Now, TestParties: parties, Suspensions: &h.suspended})
}

// keepOpen has the ways to phones that registered before a restart kept open.
func (n *Server) keepOpen(ctx context.Context) error {
	registered, err := n.Platform.devices.Registered(ctx)
	if err != nil {
		return err
	}
	n.sip.KeepOpen(directory.BindingsOf(registered))
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
