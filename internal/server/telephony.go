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

// Starts media and SIP.

// openTelephony starts media, the switch and SIP.
func (s *Server) openTelephony(ctx context.Context) (err error) {
	p, c := s.Platform, s.Platform.config
	low, high, err := c.RTPPortRange()
	if err != nil {
		return err
	}
	public, _ := netip.ParseAddr(c.PublicIP)
	bind, err := config.BindAddress(c.SIP)
	if err != nil {
		return err
	}
	if err := p.devices.DropFlows(ctx); err != nil {
		return err
	}
	s.closers.push("calls", func(context.Context) { p.calls.Close() })
	if s.media, err = media.New(media.Config{PortMin: low, PortMax: high, Bind: bind, Advertise: public, Logger: p.log}); err != nil {
		return fmt.Errorf("media: %w", err)
	}
	s.closers.push("media", func(context.Context) { s.media.Close() })
	if s.parties, err = testparty.Open(ctx, testparty.Config{DB: p.db, Numbers: p, Speech: promptSpeaker{p}, Server: s, Log: p.log}); err != nil {
		return err
	}
	s.closers.push("test parties", func(context.Context) { s.parties.Close() })
	dir := p.newDirectory(ctx, s.parties)
	s.switcher = pbx.New(pbx.Config{Directory: dir, Records: p.calls, Media: s.media, Files: p.files, LiveTranscriber: p.ears(),
		Speaker: promptSpeaker{p}, Audio: p.prompts, OnRecorded: p.transcripts.OnRecordingsReady, RecoverRecording: recoverRecording, Log: p.log, Now: time.Now, RingTimeout: c.RingTime, CallerName: p.callerName, RecordingQuota: p.orgs.CheckStorage, OnRing: p.publishScreenPop, Attend: p.routing.Attend, Verify: p.verify(),
		Streams: p.outbox, MediaTimeout: c.MediaTimeout})
	p.sandbox.StartCall = s.parties.Call
	s.wireSandboxReset()
	messages := sipmessage.New(sipmessage.Config{DB: p.db, Directory: dir, Orgs: p.orgs, Users: p.users, Devices: p.devices, Numbers: p.numbers,
		OwnNumber: p, Messages: p.messages, SIPDomain: c.SIPDomain, Log: p.log})
	p.messages.Carriers[sipmessage.Carrier], p.messages.ForwardToPhones = messages, messages.Forward
	p.queues.HasPendingRelease = s.switcher.HasPendingRelease
	p.calls.Switch = s.switcher
	states := phonestate.Config{DB: p.db, Bus: p.bus, Directory: dir, Devices: p.devices, Users: p.users, Agents: p.agents, Voicemail: p.voicemail,
		SIPDomain: c.SIPDomain, Log: p.log}
	s.messageWaiting, s.busyLamps = phonestate.NewMessageWaiting(states), phonestate.NewBusyLampField(states)
	dir.OnRegister(func(device, _ string, all []sip.Binding) { s.switcher.Registered(device, all) })
	dir.OnRegister(s.messageWaiting.Registered)
	proxies, err := config.ParseNetworks("trusted-proxies", c.TrustedProxies)
	if err != nil {
		return err
	}
	secure, err := s.tlsConfig()
	if err != nil {
		return err
	}
	s.sip, err = sip.Listen(ctx, sip.Config{Addr: c.SIP, TLS: secure, PublicIP: public,
		WebSocket: sip.WebSocketConfig{Origins: config.SplitList(c.WebOrigins), Proxies: proxies, Token: p.devices.UsernameOfToken}, SessionExpires: c.SessionExpires, NATKeepalive: c.KeepAlive, OnBan: s.banned, IsUrgent: trunk.MaybeEmergency,
		Realm: c.SIPDomain, Names: c.SIPNames(), Accounts: dir, Bindings: dir, OnMessage: messages.Receive,
		EventPackages: []sip.EventPackage{s.messageWaiting.Topic(), s.busyLamps.Topic()}, Logger: p.log, Trace: s.switcher.Trace,
		Limits: sip.Limits{Calls: c.MaxCalls, InvitesPerSecond: c.CallRate}}, s.switcher)
	if err != nil {
		return fmt.Errorf("SIP cannot use %s: %w; choose another with --sip", c.SIP, err)
	}
	p.owns = s.sip.IsLocalURI
	p.devices.Notify = func(ctx context.Context, b device.Binding, aor, event string) (int, error) {
		return s.sip.Notify(ctx, directory.BindingOf(b), aor, event)
	}
	s.closers.push("SIP", func(context.Context) { _ = s.sip.Close() })
	messages.Attach(s.sip)
	s.messageWaiting.Start(ctx, s.sip)
	s.busyLamps.Start(ctx, s.sip)
	s.closers.push("phone state", func(context.Context) {
		s.messageWaiting.Close()
		s.busyLamps.Close()
	})
	s.registerTrunks(ctx)
	s.run(func() { s.switcher.PublishQuality(ctx) })
	return s.keepOpen(ctx)
}

// newDirectory returns the directory of the switch.
func (p *Platform) newDirectory(ctx context.Context, parties directory.TestParties) *directory.Directory {
	return directory.New(ctx, directory.Config{DB: p.db, Bus: p.bus, Orgs: p.orgs, Users: p.users, Devices: p.devices, Numbers: p.numbers,
		Trunks: p.trunks, Gate: p.gate, Outbox: p.outbox, Now: time.Now, TestParties: parties, Suspensions: &p.suspended})
}

// keepOpen resumes the NAT keep-alives of phones that registered before a restart.
func (s *Server) keepOpen(ctx context.Context) error {
	registered, err := s.Platform.devices.AllBindings(ctx)
	if err != nil {
		return err
	}
	s.sip.RestoreNATKeepalives(directory.BindingsOf(registered))
	return nil
}

// registerTrunks registers with trunks and probes them until the server stops. The registrations are removed before SIP closes.
func (s *Server) registerTrunks(ctx context.Context) {
	p := s.Platform
	ctx, cancel := context.WithCancel(ctx)
	s.run(func() { p.trunks.RunHostResolver(ctx, net.DefaultResolver) })
	r := trunkreg.New(trunkreg.Config{Trunks: p.trunks, SIP: s.sip, Bus: p.bus, Log: p.log, ProbeInterval: p.config.TrunkProbe})
	p.trunks.Probe = r.Probe
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	s.closers.push("trunk registrations", func(context.Context) {
		cancel()
		<-done
	})
}

// banned logs the ban of a source.
func (s *Server) banned(source netip.Addr, until time.Time, why string) {
	s.Platform.log.Warn("source banned", "source", source, "until", until.UTC().Format(time.RFC3339), "why", why)
}
