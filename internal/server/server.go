package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/api/console"
	"soniq/internal/api/mcp"
	"soniq/internal/api/rest"
	"soniq/internal/config"
	"soniq/internal/contactcenter/phonestate"
	"soniq/internal/control"
	"soniq/internal/identity/auth"
	"soniq/internal/platform/access"
	"soniq/internal/platform/certificate"
	"soniq/internal/platform/clock"
	"soniq/internal/platform/event"
	"soniq/internal/platform/job"
	"soniq/internal/platform/op"
	"soniq/internal/platform/visibility"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/record"
	"soniq/internal/protocol/sip"
	"soniq/internal/sandbox/testparty"
	"soniq/internal/server/datadir"
	"soniq/internal/server/gctuning"
	"soniq/internal/server/httplimit"
	"soniq/internal/server/readiness"
	"soniq/internal/telephony/call"
	"soniq/internal/telephony/pbx"
)

// Server is a running Platform: signalling, media, HTTP, SMPP and background jobs.
type Server struct {
	Platform       *Platform
	media          *media.Engine
	sip            *sip.Server
	switcher       *pbx.Switch
	rest           *rest.Server
	tools          *mcp.Server
	listener       net.Listener // HTTP
	secure         net.Listener // HTTPS; nil if it is off
	server         *http.Server
	descriptors    *httplimit.Descriptors
	connections    *httplimit.Limiter // of HTTP
	smpp           smppListeners
	storage        *readiness.Storage
	certificate    *certificate.Files // nil if no listener uses TLS
	parties        *testparty.Service
	messageWaiting *phonestate.MessageWaiting
	busyLamps      *phonestate.BusyLampField
	resettable     []*job.Runner // runners whose jobs are abandoned when a sandbox is reset

	started    time.Time
	draining   atomic.Bool
	closers    closers
	background sync.WaitGroup
	cancel     context.CancelFunc // ends background
	once       sync.Once

	mayDrain context.Context // ends when Stop must not wait for calls any longer
	endDrain context.CancelFunc
}

// Start opens a platform and serves it. Media and signalling come first, so that calls cut by a crash can be resumed. Then it closes
// the calls that cannot be resumed, starts jobs, and listens for HTTP. On an error everything is stopped again.
func Start(ctx context.Context, c config.Config, log *slog.Logger) (*Server, error) {
	l, err := net.Listen("tcp", c.HTTP)
	if err != nil {
		return nil, fmt.Errorf("HTTP cannot use %s: %w; choose another with --http", c.HTTP, err)
	}
	base, guessed := c.LinkBase(l.Addr().String())
	if guessed {
		log.Warn("HTTP listens at all addresses and --base-url is not set: links, mails and OAuth begin with an address of this machine; "+
			"set --base-url to the address that others use", "links", base)
	}
	c.BaseURL = base
	p, err := Open(ctx, c, log)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{Platform: p, listener: l, cancel: cancel, started: time.Now(), descriptors: httplimit.NewDescriptors()}
	s.storage = readiness.New(readiness.Config{DB: p.db, Data: c.Data, Clock: clock.System(), Log: log})
	s.mayDrain, s.endDrain = context.WithCancel(context.Background())
	p.server = s
	s.closers.push("HTTP listener", func(context.Context) { _ = l.Close() })
	for _, step := range []func(context.Context) error{s.openCertificate, s.joinNodes, s.openTelephony, s.recover, s.startJobs,
		s.startBackground, s.openControl, s.openSMPP, s.openHTTP} {
		if err := step(ctx); err != nil {
			s.Stop()
			return nil, err
		}
	}
	return s, nil
}

// recover resumes calls that a crash cut off, closes those that cannot be resumed, and admits new calls.
func (s *Server) recover(ctx context.Context) error {
	p := s.Platform
	if err := p.replay(ctx); err != nil {
		return err
	}
	if err := s.closeFormer(ctx); err != nil {
		return err
	}
	carried, err := s.resume(ctx)
	if err != nil {
		return err
	}
	isCarried := func(_, id string) bool { return carried[id] }
	closed, err := p.calls.Recover(ctx, p.lastAlive(), isCarried)
	if err == nil {
		err = p.recordings.Recover(ctx, recoverRecording, p.transcripts.OnRecordingsReady, isCarried)
	}
	if err == nil {
		err = errors.Join(p.voicemail.Recover(ctx), p.smppApps.Recover(ctx, p.node, p.lastAlive()))
	}
	if closed+len(carried) > 0 {
		p.log.Warn("a crash cut calls off", "carried on", len(carried), "closed", closed)
	}
	s.switcher.Open()
	return err
}

// resume continues calls that a crash cut off, and returns their IDs. In a copied database they are calls of the original, which may still
// carry them: their phones get nothing from here.
func (s *Server) resume(ctx context.Context) (map[string]bool, error) {
	p := s.Platform
	if p.copied.Copied {
		return nil, nil
	}
	cut, err := p.calls.ResumableCalls(ctx)
	if err != nil {
		return nil, err
	}
	return s.switcher.Resume(ctx, cut, p.lastAlive()), nil
}

// lastAlive returns when the calls of this node were last known to be in progress: before a crash, or when the database was copied.
func (p *Platform) lastAlive() time.Time {
	if p.copied.Copied && !p.copied.Taken.IsZero() {
		return p.copied.Taken
	}
	return datadir.LastAlive(p.config.Data)
}

// recoverRecording completes the recording that a crash cut, or reads it if it is complete.
func recoverRecording(path string) (call.Audio, error) {
	r, err := record.Recover(path + ".part")
	if errors.Is(err, os.ErrNotExist) {
		return inspect(path)
	}
	return call.Audio{Duration: r.Duration, Size: r.Size, SHA256: r.SHA256, SampleRate: r.SampleRate, Channels: r.Channels}, err
}

// startBackground starts the goroutines that end with the context: the outbox, sweeps, caches, presence and queues.
func (s *Server) startBackground(ctx context.Context) error {
	p := s.Platform
	reader := &event.Reader{Outbox: p.outbox, Log: p.log, CreateDeliveries: p.webhooks.CreateDeliveries}
	s.run(func() { reader.Run(ctx) })
	s.run(func() { p.keys.Run(ctx, p.log) })
	s.run(func() { p.removeExpiredLogins(ctx) })
	s.run(func() { datadir.KeepAlive(ctx, p.config.Data) })
	s.run(func() { p.clock.Run(ctx) })
	s.run(func() { s.sweep(ctx) })
	s.run(func() { p.count(ctx) })
	s.run(func() { p.finishMessages(ctx) })
	s.run(func() { p.devices.WatchExpirations(ctx, p.log) })
	s.run(func() { p.agents.Run(ctx, p.log) })
	s.run(func() { p.queues.Run(ctx, p.log) })
	s.run(func() { gctuning.ReleaseMemory(ctx, p.db) })
	s.run(func() { gctuning.Tune(ctx) })
	s.run(func() { s.descriptors.Watch(ctx, p.log) })
	s.run(func() {
		if err := datadir.RemoveOrphanRecordings(filepath.Join(p.config.Data, "recordings"), s.started, s.switcher.HasCall,
			p.log); err != nil {
			p.log.Warn("stray recordings not removed", "err", err)
		}
	})
	if p.copied.Held() == nil {
		s.run(func() { p.acd.Distribute(ctx, p.bus) })
		s.run(func() { p.smsCarriers.Run(ctx) })
		s.run(func() { p.smsCarriers.Sweep(ctx) })
	}
	if err := p.enableDatabaseSearch(ctx); err != nil {
		return err
	}
	s.run(func() {
		if err := p.memory.WarmIndexes(ctx); err != nil && ctx.Err() == nil {
			p.log.Warn("memory not warmed", "err", err)
		}
		p.memory.Run(ctx, p.log)
	})
	return nil
}

// run starts a goroutine that ends with the context of the server. Stop waits for it.
func (s *Server) run(f func()) {
	s.background.Add(1)
	go func() {
		defer s.background.Done()
		f()
	}()
}

func (s *Server) openControl(ctx context.Context) error {
	all := s.Platform.Actions()
	all["status"], all["session"] = s.status, s.session
	return control.Listen(ctx, s.Platform.config.Data, all)
}

func (s *Server) openHTTP(context.Context) (err error) {
	p := s.Platform
	proxies, err := config.ParseNetworks("trusted-proxies", p.config.TrustedProxies)
	if err != nil {
		return err
	}
	s.connections = httplimit.New(httplimit.Config{Connections: p.config.HTTPConns, PerAddress: p.config.HTTPPerAddress,
		WebSockets: p.config.WebSockets, Proxies: proxies, Descriptors: s.descriptors})
	m := newMetrics(s)
	if err := s.listenHTTPS(); err != nil {
		return err
	}
	pages, err := console.New()
	if err != nil {
		return err
	}
	s.rest, err = rest.New(rest.Config{
		Pipeline: &op.Pipeline{DB: p.db, Sealer: p.seal, Cursors: op.Cursors{Key: p.seal.Key("cursors")}, Log: p.log,
			Visibility: visibility.Guard{DB: p.db, Calls: s.switcher}, OnDone: m.operation, OnMissingScope: p.stepUp,
			Limiter: access.NewLimiter(time.Now), AttemptsPerMinute: p.config.RateAttempts},
		Operations: p.operations(), Keys: p.keys, Sessions: p.signin, Readiness: s, Log: p.log,
		Metrics: m.handler(), MetricsKey: p.config.MetricsKey,
		SIPWebSocket: s.sip.WebSocket(), Webhooks: p.webhooks, Delegation: p.keys, Proxies: proxies,
		Secure:   strings.HasPrefix(p.config.BaseURL, "https://"),
		Metadata: p.oauth.ResourceMetadata(""), EntryPoints: []rest.EntryPoint{p.oauth, p.signin, p.smsCarriers, p.crm, pages},
		Origins: config.SplitList(p.config.CORSOrigins), Provision: s.provisioner(), Notices: p.crm, Console: pages.Home(),
	})
	if err != nil {
		return err
	}
	s.openTools()
	s.server = s.rest.HTTP()
	s.server.Handler, s.server.ConnState = s.connections.Handler(s.server.Handler), s.connections.State
	s.closers.push("HTTP", func(ctx context.Context) {
		p.streams.Close()
		s.tools.Close()
		_ = s.server.Shutdown(ctx)
	})
	s.serveHTTP(s.connections.Listener(s.listener, true))
	if s.secure != nil {
		s.serveHTTP(s.secure)
	}
	return nil
}

func (s *Server) serveHTTP(l net.Listener) {
	s.run(func() {
		if err := s.server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.Platform.log.Error("HTTP ended", "err", err)
		}
	})
}

// Notice implements rest.Readiness. It returns what the operator has to know about a restored copy, or "".
func (s *Server) Notice() string { return s.Platform.copied.Notice() }

// Ready implements rest.Readiness. It returns an error if the node does not accept calls and requests, or sends nothing.
func (s *Server) Ready(ctx context.Context) error {
	if s.draining.Load() {
		return errors.New("shutting down")
	}
	if err := s.Platform.copied.Held(); err != nil {
		return err
	}
	return s.storage.Check(ctx)
}

// HTTPAddr returns the address of the HTTP listener.
func (s *Server) HTTPAddr() string { return s.listener.Addr().String() }

// BaseURL returns the public URL of the API, without a slash at the end.
func (s *Server) BaseURL() string { return s.Platform.config.BaseURL }

// SIPAddr returns the address of the SIP listener.
func (s *Server) SIPAddr() string { return s.sip.Addr().String() }

// OtherAddrs returns the addresses beside HTTPAddr and SIPAddr as text for the start message: more of SIP, those of TLS
// and of SMPP. It is empty if there are none.
func (s *Server) OtherAddrs() string {
	text := ""
	for _, a := range s.sip.Addrs()[1:] {
		text += " sip=" + a.String()
	}
	if s.secure != nil {
		text += " https=" + s.secure.Addr().String()
	}
	if a := s.sip.TLSAddr(); a.IsValid() {
		text += " sips=" + a.String()
	}
	text += s.smpp.String()
	return text
}

// CreateFirstKey creates an organisation and prints its API key if the installation has none.
func (s *Server) CreateFirstKey(ctx context.Context, c config.Config) error {
	all, err := s.Platform.orgs.List(ctx)
	if err != nil || len(all) > 0 {
		return err
	}
	id, err := s.Platform.CreateOrg(ctx, control.OrgRequest{Name: "My organisation", Country: c.Country})
	if err != nil {
		return err
	}
	key, err := s.Platform.CreateKey(ctx, control.KeyRequest{Org: id, Scopes: "all", Kind: string(access.StandardKey), Env: "live",
		Name: "first key"})
	if err != nil {
		return err
	}
	fmt.Printf("first start: organisation %s was made; its admin key, shown only now:\n%s\n", id, key)
	return nil
}

var _ rest.Verifier = (*auth.Service)(nil)
