package sip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"soniq/internal/protocol/sip/digest"
	"soniq/internal/protocol/sip/guard"
	"soniq/internal/protocol/sip/resolve"
	"soniq/internal/protocol/sip/sipmsg"
	"soniq/internal/protocol/sip/transport"
)

// Server: start, drain, close, and the goroutines for lookups.

// Server is a SIP endpoint over UDP, TCP, TLS and WebSocket.
type Server struct {
	config      Config
	limits      Limits
	handler     Handler
	allow       string // supported methods
	allowEvents string // supported event packages
	hasher      keyHasher
	startedAt   time.Time

	layer   *transport.Layer
	locator *resolve.Locator

	shards          []*shard
	statelessSender messageSender // sends refusals outside any shard: the server itself

	stats         counters
	calls         atomic.Int64 // inbound calls in progress
	lookups       atomic.Int64
	queueDelay    atomic.Int64 // time that the last message waited in its queue
	draining      atomic.Bool
	inviteRate    guard.RateLimiter
	urgentRate    guard.RateLimiter
	guard         *guard.Guard
	auth          digest.Authenticator
	guessLimiter  *digest.GuessLimiter
	realmPins     *digest.RealmPins
	accountLocks  accountLocks
	natKeepalives natKeepalives
	browserFlows  browserFlows
	subscriptions subscriptionTable

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	done    chan struct{} // closed by Close
	closing sync.Once
	workers sync.WaitGroup // lookups and handlers
	loops   sync.WaitGroup
}

// Listen opens the sockets and starts serving. h receives the calls. The Server ends by Close or with ctx.
func Listen(ctx context.Context, c Config, h Handler) (*Server, error) {
	if c.Accounts == nil {
		return nil, errors.New("sip: listen: Config.Accounts is not set")
	}
	s := newServer(ctx, c, h)
	if err := s.layer.Bind(); err != nil {
		s.cancel()
		return nil, fmt.Errorf("sip: listen on %s: %w", s.config.Addr, err)
	}
	if placer, ok := h.(interface{ Serve(*Server) }); ok {
		placer.Serve(s)
	}
	for _, sh := range s.shards {
		s.loops.Go(sh.run)
	}
	s.layer.Serve()
	s.loops.Go(s.runNATKeepalives)
	s.loops.Go(s.expireSubscriptions)
	stop := context.AfterFunc(ctx, func() { s.Close() })
	context.AfterFunc(s.ctx, func() { stop() })
	return s, nil
}

func newServer(ctx context.Context, c Config, h Handler) *Server {
	if c.Addr == "" {
		c.Addr = "0.0.0.0:5060"
	}
	if c.Realm == "" {
		c.Realm = "sip"
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	s := &Server{config: c, limits: c.Limits.withDefaults(), handler: h, hasher: newKeyHasher(), done: make(chan struct{})}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	s.startedAt = c.Now()
	s.locator = resolve.NewLocator(resolve.Config{Host: upper{s}, Resolver: c.Resolver, Targets: c.Targets})
	s.allow = "INVITE, ACK, BYE, CANCEL, OPTIONS, INFO, REFER, NOTIFY, UPDATE, PRACK"
	if c.OnMessage != nil {
		s.allow += ", MESSAGE"
	}
	if c.Bindings != nil {
		s.allow += ", REGISTER"
	}
	s.allowEvents = "refer"
	for _, t := range c.EventPackages {
		s.allowEvents += ", " + t.Event()
	}
	if len(c.EventPackages) > 0 {
		s.allow += ", SUBSCRIBE"
	}
	s.inviteRate.Interval = time.Second / time.Duration(s.limits.InvitesPerSecond)
	s.urgentRate.Interval = time.Second / urgentPerSecond
	s.guard = guard.New(s.limits.ofSources())
	s.layer = transport.New(s.ctx, s.layerConfig())
	s.statelessSender = s.layer
	s.guessLimiter = digest.NewGuessLimiter(s.limits.AccountFailures)
	s.realmPins = digest.NewRealmPins()
	s.auth = digest.NewAuthenticator(c.Realm, s.clock)
	for range max(2, runtime.GOMAXPROCS(0)) {
		s.shards = append(s.shards, newShard(s, s.layer, s.limits.QueueDepth))
	}
	return s
}

func (l Limits) withDefaults() Limits {
	def := func(p *int, n int) {
		if *p <= 0 {
			*p = n
		}
	}
	def(&l.Calls, 20000)
	def(&l.InvitesPerSecond, 4000)
	def(&l.QueueDepth, 8192)
	def(&l.Lookups, 4000)
	def(&l.SourcePerSecond, 200)
	def(&l.FailedLogins, 30)
	def(&l.AccountFailures, 20)
	def(&l.Probes, 100)
	def(&l.Connections, 20000)
	def(&l.SourceConnections, 64)
	def(&l.MessageBytes, 65535)
	def(&l.Contacts, 10)
	def(&l.Subscriptions, 100)
	if l.BanFor <= 0 {
		l.BanFor = 5 * time.Minute
	}
	if l.MaxBan <= 0 {
		l.MaxBan = 24 * time.Hour
	}
	if l.PingInterval <= 0 {
		l.PingInterval = 30 * time.Second
	}
	if l.RetryAfter <= 0 {
		l.RetryAfter = 5 * time.Second
	}
	return l
}

// layerConfig returns the settings of the transport layer.
func (s *Server) layerConfig() transport.Config {
	c := &s.config
	l := transport.Config{
		Receiver: upper{s}, Host: upper{s}, Guard: s.guard, Logger: c.Logger,
		Addr: c.Addr, TLS: c.TLS, WebSocket: c.WebSocket, RootCAs: c.RootCAs, PublicIP: c.PublicIP, PublicIP6: c.PublicIP6,
		Connections: s.limits.Connections, SourceConnections: s.limits.SourceConnections,
		MessageBytes: s.limits.MessageBytes, PingInterval: s.limits.PingInterval,
	}
	if c.Tracer != nil {
		l.Tracer = upper{s}
	}
	return l
}

// ofSources returns the limits of one source. A source stays trusted for longer than a registration lasts.
func (l Limits) ofSources() guard.Limits {
	return guard.Limits{
		PerSecond: l.SourcePerSecond, FailedLogins: l.FailedLogins, Probes: l.Probes, BanFor: l.BanFor, MaxBan: l.MaxBan,
		TrustFor: maxExpires*time.Second + 10*time.Minute,
	}
}

// clock returns the time since the server started.
func (s *Server) clock() time.Duration { return s.config.Now().Sub(s.startedAt) }

// Drain refuses new INVITEs with 503 and Retry-After from now on. Everything inside dialogs continues.
func (s *Server) Drain() { s.draining.Store(true) }

// WaitForDialogs waits until every dialog has ended, including the answers to our BYEs and CANCELs, or until ctx
// ends. Call it between the last call and Close.
func (s *Server) WaitForDialogs(ctx context.Context) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for s.Stats().Dialogs > 0 {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// Close stops serving and waits for every goroutine, Handler.Invite included. Live legs get the event Lost, and no
// further message is sent for them. It must not be called from an event callback. A second call does nothing.
func (s *Server) Close() error {
	s.closing.Do(func() {
		s.draining.Store(true)
		s.cancel()
		close(s.done)
		s.layer.Close()
		for _, sh := range s.shards {
			sh.close() // a reader may wait for space in the queue
		}
		s.layer.Wait()
		s.loops.Wait() // from now on only workers start workers, so their number does not rise from 0 during the wait
		s.workers.Wait()
	})
	return nil
}

// spawn runs a lookup or a handler on a goroutine of its own. Admission bounds their number.
func (s *Server) spawn(do func()) {
	s.lookups.Add(1)
	s.workers.Go(func() {
		defer s.lookups.Add(-1)
		do()
	})
}

// startInvite authenticates an INVITE and hands it to the switch on a goroutine of its own. The handler may keep that
// goroutine by Inbound.RunAfterInvite: then it no longer counts as a lookup, and Close does not wait for it.
func (s *Server) startInvite(in *Inbound) {
	s.lookups.Add(1)
	s.workers.Add(1)
	go func() {
		s.authenticateInvite(in)
		s.lookups.Add(-1)
		s.workers.Done()
		if in.afterInvite != nil {
			in.afterInvite()
		}
	}()
}

// logFailure logs a failed lookup or store. It logs nothing once the server is closing, because such a failure is
// then expected.
func (s *Server) logFailure(what string, err error, with ...any) {
	if s.ctx.Err() == nil {
		s.config.Logger.Error("sip: "+what, append(with, "error", err)...)
	}
}

func (s *Server) logPanic(r any, stack []byte) {
	s.stats.panics.Add(1)
	s.config.Logger.Error("sip: recovered from a panic", "panic", r, "stack", string(stack))
}

// shardOf returns the shard of a Call-ID.
func (s *Server) shardOf(callID string) *shard {
	return s.shards[hashParts(s.hasher.a, []string{callID})%uint64(len(s.shards))]
}

// admissionKey returns the key by which admission recognises an INVITE; never 0.
func (s *Server) admissionKey(callID, branch string) uint64 {
	return hashParts(s.hasher.b, []string{"m", callID, branch}) | 1
}

// statelessTag returns a To tag that is the same for every retransmission (RFC 3261 §8.2.7).
func (s *Server) statelessTag(m *received) string {
	return string(sipmsg.AppendHex(nil, hashParts(s.hasher.b, []string{"t", m.CallID, m.Via.Branch, m.From.Tag})))
}

// Addr returns the first bound address. Its port is the same for UDP and TCP.
func (s *Server) Addr() netip.AddrPort { return s.layer.Addr() }

// Addrs returns all bound addresses for UDP and TCP.
func (s *Server) Addrs() []netip.AddrPort { return s.layer.Addrs() }

// TLSAddr returns the first bound address for TLS, or the zero AddrPort if there is none.
func (s *Server) TLSAddr() netip.AddrPort { return s.layer.TLSAddr() }

// WebSocket returns the handler that serves SIP to browsers (RFC 7118, RFC 6455). Requests over it never count as a
// trunk's.
func (s *Server) WebSocket() http.Handler { return http.HandlerFunc(s.layer.ServeWebSocket) }

// CloseToken closes the WebSockets that a token of an account authorised.
func (s *Server) CloseToken(username string) { s.layer.CloseToken(username) }

// IsLocalURI reports whether a SIP URI names a user at this server: its host is the realm, one of Config.Names, a
// public address, or a listening address with the same port, if the URI has one.
func (s *Server) IsLocalURI(u sipmsg.URI) bool {
	host := strings.TrimSuffix(u.Host, ".")
	if host == "" || !u.IsSIP() {
		return false
	}
	same := func(name string) bool { return strings.EqualFold(host, name) }
	if same(s.config.Realm) || slices.ContainsFunc(s.config.Names, same) {
		return true
	}
	a, err := netip.ParseAddr(host)
	if same("localhost") {
		a, err = netip.AddrFrom4([4]byte{127, 0, 0, 1}), nil
	}
	if err != nil {
		return false
	}
	return s.layer.IsOurs(a, u.Port)
}
