package server

import (
	"context"
	"crypto/x509"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"

	"soniq/internal/config"
	"soniq/internal/contactcenter/phonestate"
	"soniq/internal/messaging/sipmessage"
	"soniq/internal/platform/egress"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/sip"
	"soniq/internal/protocol/sip/transport"
	"soniq/internal/protocol/stir"
	"soniq/internal/sandbox/testparty"
	"soniq/internal/telephony/directory"
	"soniq/internal/telephony/pbx"
	"soniq/internal/telephony/pbx/admission"
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
	if err := p.dropRegistrations(ctx); err != nil {
		return err
	}
	s.closers.push("calls", func(context.Context) { p.calls.Close() })
	if s.media, err = media.New(media.Config{PortMin: low, PortMax: high, Bind: bind, Advertise: public, Logger: p.log,
		Targets: p.guard, Shares: media.DefaultShares(c.OrgShare, pairsOf(low, high), openFiles())}); err != nil {
		return fmt.Errorf("media: %w", err)
	}
	s.closers.push("media", func(context.Context) { s.media.Close() })
	if s.parties, err = testparty.Open(ctx, testparty.Config{DB: p.db, Numbers: p, Speech: promptSpeaker{p}, Server: s,
		Log: p.log}); err != nil {
		return err
	}
	s.closers.push("test parties", func(context.Context) { s.parties.Close() })
	dir := p.newDirectory(ctx, s.parties)
	p.directory = dir
	s.switcher = pbx.New(pbx.Config{
		Directory: pbx.Directory{Identity: dir, Routes: dir, Outbound: dir},
		Records: pbx.Records{Store: p.calls, Journal: p.calls, Timelines: p.calls, Recordings: p.recordings, Files: p.files,
			OnRecorded: p.transcripts.OnRecordingsReady, RecoverRecording: recoverRecording, StorageQuota: p.orgs},
		Sounds:     pbx.Sounds{Media: s.media, LiveTranscriber: p.liveTranscriber(), Speaker: promptSpeaker{p}, Audio: p.prompts},
		Routing:    pbx.Routing{CallerNames: switchDependencies{p}, Scripts: p.routing, Verifier: p.verify()},
		CallLimits: admission.Limits{Device: c.DeviceCalls, User: c.UserCalls, Organisation: c.OrgCalls},
		Streams:    p.outbox, Log: p.log, RingTimeout: c.RingTime, MediaTimeout: c.MediaTimeout,
		BrowserTimeout: c.BrowserTimeout})
	s.switcher.Observe(switchDependencies{p})
	messages := sipmessage.New(sipmessage.Config{DB: p.db, Directory: dir, Orgs: p.orgs, Users: p.users, Devices: p.devices,
		Numbers: p.numbers, OwnNumber: p, Messages: p.messages, SIPDomain: c.SIPDomain, Log: p.log})
	p.messages.BuiltIn[sipmessage.Carrier], p.sipMessages = messages, messages
	p.switcher, p.calls.Switch = s.switcher, s.switcher
	states := phonestate.Config{DB: p.db, Bus: p.bus, Directory: dir, Devices: p.devices, Users: p.users, Agents: p.agents,
		Voicemail: p.voicemail, SIPDomain: c.SIPDomain, Log: p.log}
	s.messageWaiting, s.busyLamps = phonestate.NewMessageWaiting(states), phonestate.NewBusyLampField(states)
	dir.OnRegister(func(device, _ string, all []sip.Binding) { s.switcher.Registered(device, all) })
	dir.OnRegister(s.messageWaiting.Registered)
	proxies, err := config.ParseNetworks("trusted-proxies", c.TrustedProxies)
	if err != nil {
		return err
	}
	edges, err := config.ParseNetworks("sip-edges", c.SIPEdges)
	if err != nil {
		return err
	}
	s.sip, err = sip.Listen(ctx, sip.Config{Addr: c.SIP, TLS: s.tlsConfig(), PublicIP: public,
		WebSocket: transport.WebSocketConfig{Origins: config.SplitList(c.WebOrigins), Proxies: proxies,
			Tokens: browserTokens{p}},
		SessionExpires: c.SessionExpires, NATKeepalive: c.KeepAlive, OnBan: s.banned, IsUrgent: trunk.MaybeEmergency,
		Node: p.node, Realm: c.SIPDomain, Names: c.SIPNames(), Edges: edges, Accounts: dir, Bindings: dir, OnMessage: messages.Receive,
		Targets:       sipTargets{p.guard, s.parties},
		EventPackages: []sip.EventPackage{s.messageWaiting.Topic(), s.busyLamps.Topic()}, Logger: p.log, Tracer: s.switcher,
		Limits: sip.Limits{Calls: c.MaxCalls, InvitesPerSecond: c.CallRate, BrowserTimeout: c.BrowserTimeout}}, s.switcher)
	if err != nil {
		return fmt.Errorf("SIP cannot use %s: %w; choose another with --sip", c.SIP, err)
	}
	p.owns = s.sip.IsLocalURI
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

// dropRegistrations ends registrations over connections that ended with an earlier process. In a restored copy that is not confirmed it
// ends all from before the copy was recognised: those phones are registered at the original.
func (p *Platform) dropRegistrations(ctx context.Context) error {
	err := p.devices.DropFlows(ctx, p.node)
	if err == nil && p.copied.Held() != nil {
		err = p.devices.DropBefore(ctx, p.copied.Since())
	}
	return err
}

// pairsOf returns the number of pairs of ports in a range; 0-0 is the range of the system.
func pairsOf(low, high int) int {
	if low == 0 && high == 0 {
		return 1 << 14
	}
	return (high - low + 1) / 2
}

// openFiles returns the number of descriptors that the process may have.
func openFiles() int {
	var l syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l) != nil {
		return 1 << 20
	}
	return int(min(l.Cur, 1<<20))
}

// sipTargets decides to which addresses SIP requests go: those that the guard allows, and the test parties of the
// sandbox, which run in this process.
type sipTargets struct {
	guard   *egress.Guard
	parties *testparty.Service
}

// CheckTarget implements resolve.Targets.
func (t sipTargets) CheckTarget(a netip.AddrPort) error {
	if t.parties.IsCallee(a) {
		return nil
	}
	return t.guard.CheckAddress(a.Addr())
}

// newDirectory returns the directory of the switch.
func (p *Platform) newDirectory(ctx context.Context, parties directory.TestParties) *directory.Directory {
	return directory.New(ctx, directory.Config{DB: p.db, Bus: p.bus, Orgs: p.orgs, Users: p.users, Devices: p.devices, Numbers: p.numbers,
		Trunks: p.trunks, Gate: p.gate, Outbox: p.outbox, TestParties: parties, Suspensions: &p.suspended})
}

// keepOpen restores the registrations from before a restart in the SIP server.
func (s *Server) keepOpen(ctx context.Context) error {
	registered, err := s.Platform.devices.AllBindings(ctx)
	if err != nil {
		return err
	}
	s.sip.RestoreRegistrations(directory.BindingsOf(registered))
	return nil
}

// trunkProber implements trunk.Prober with the registrations, which are built later.
type trunkProber struct{ p *Platform }

// Probe sends OPTIONS to a trunk.
func (t trunkProber) Probe(ctx context.Context, to trunk.Trunk) (time.Duration, error) {
	if err := t.p.copied.Held(); err != nil {
		return 0, err
	}
	return t.p.trunkReg.Probe(ctx, to)
}

// registerTrunks registers with trunks and probes them until the server stops. The registrations are removed before SIP closes. A restored
// copy that is not confirmed does neither.
func (s *Server) registerTrunks(ctx context.Context) {
	p := s.Platform
	ctx, cancel := context.WithCancel(ctx)
	s.run(func() { p.trunks.RunHostResolver(ctx, net.DefaultResolver) })
	r := trunkreg.New(trunkreg.Config{Trunks: p.trunks, SIP: s.sip, Bus: p.bus, Log: p.log, ProbeInterval: p.config.TrunkProbe})
	p.trunkReg = r
	if p.copied.Held() != nil {
		s.closers.push("trunk hosts", func(context.Context) { cancel() })
		return
	}
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

// Verification of signed caller identities (STIR/SHAKEN, RFC 8224).

// certificateLimits bounds the download of a carrier's certificate.
var certificateLimits = egress.Limits{Connect: time.Second, Total: 2 * time.Second, Body: 64 << 10, Idle: 1}

// buildVerifier constructs the verifier of calls from trunks if --stir-roots is set.
func (p *Platform) buildVerifier(now func() time.Time) error {
	all, err := p.config.ReadSTIRRoots()
	if err != nil || len(all) == 0 {
		return err
	}
	roots := x509.NewCertPool()
	for _, root := range all {
		roots.AddCert(root)
	}
	p.verifier = stir.New(stir.Config{Roots: roots, Client: p.guard.Client(certificateLimits), Now: now})
	return nil
}

// verify returns the verifier of the switch, or nil if calls are not verified.
func (p *Platform) verify() pbx.Verifier {
	if p.verifier == nil {
		return nil
	}
	return p.verifier
}
