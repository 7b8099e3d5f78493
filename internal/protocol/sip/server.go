package sip

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
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

	sockets         []*udpSocket
	listeners       []listener
	conns           *connTable
	failedTargets   failedTargets
	dnsCache        *dnsCache
	advertisedAddrs advertisedAddrs

	shards          []*shard
	statelessSender messageSender // sends refusals outside any shard: the server itself

	stats         counters
	calls         atomic.Int64 // inbound calls in progress
	lookups       atomic.Int64
	queueDelay    atomic.Int64 // time that the last message waited in its queue
	draining      atomic.Bool
	inviteRate    RateLimiter
	urgentRate    RateLimiter
	guard         sourceGuard
	auth          authenticator
	guessLimiter  guessLimiter
	accountLocks  accountLocks
	natKeepalives natKeepalives
	subscriptions subscriptionTable

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	done    chan struct{} // closed by Close
	closing sync.Once
	readers sync.WaitGroup
	workers sync.WaitGroup // lookups and handlers
	loops   sync.WaitGroup
}

// Listen opens the sockets and starts serving. h receives the calls. The Server ends by Close or with ctx.
func Listen(ctx context.Context, c Config, h Handler) (*Server, error) {
	if c.Accounts == nil {
		return nil, errors.New("sip: listen: Config.Accounts is not set")
	}
	s := newServer(c, h)
	if err := s.bind(); err != nil {
		return nil, fmt.Errorf("sip: listen on %s: %w", s.config.Addr, err)
	}
	s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if placer, ok := h.(interface{ Serve(*Server) }); ok {
		placer.Serve(s)
	}
	for _, sh := range s.shards {
		s.loops.Go(sh.run)
	}
	for _, k := range s.sockets {
		s.readers.Go(func() { k.readLoop(s) })
	}
	s.loops.Go(s.runNATKeepalives)
	s.loops.Go(s.expireSubscriptions)
	for _, l := range s.listeners {
		s.readers.Go(func() { s.conns.accept(l.TCPListener, l.secure) })
	}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	context.AfterFunc(s.ctx, func() { stop() })
	return s, nil
}

func newServer(c Config, h Handler) *Server {
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
	s.startedAt, s.statelessSender, s.conns = c.Now(), s, newConnTable(s)
	s.dnsCache = newDNSCache(s)
	s.allow = "INVITE, ACK, BYE, CANCEL, OPTIONS, INFO, REFER, NOTIFY, UPDATE, PRACK"
	if c.OnMessage != nil {
		s.allow += ", MESSAGE"
	}
	if c.Bindings != nil {
		s.allow += ", REGISTER"
	}
	s.allowEvents = "refer"
	for _, t := range c.EventPackages {
		s.allowEvents += ", " + t.Event
	}
	if len(c.EventPackages) > 0 {
		s.allow += ", SUBSCRIBE"
	}
	s.inviteRate.Interval = time.Second / time.Duration(s.limits.InvitesPerSecond)
	s.urgentRate.Interval = time.Second / urgentPerSecond
	s.guard.init(s.limits)
	s.guessLimiter.burst = s.limits.AccountFailures
	s.auth = newAuthenticator(c.Realm, s.clock)
	for range max(2, runtime.GOMAXPROCS(0)) {
		s.shards = append(s.shards, newShard(s, s, s.limits.QueueDepth))
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
		for _, k := range s.sockets {
			k.conn.Close()
		}
		for _, l := range s.listeners {
			l.Close()
		}
		s.conns.close()
		for _, sh := range s.shards {
			sh.close()
		}
		s.readers.Wait()
		s.workers.Wait()
		s.loops.Wait()
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

// admissionKey returns the key by which admission recognizes an INVITE; never 0.
func (s *Server) admissionKey(callID, branch string) uint64 {
	return hashParts(s.hasher.b, []string{"m", callID, branch}) | 1
}

// statelessTag returns a To tag that is the same for every retransmission (RFC 3261 §8.2.7).
func (s *Server) statelessTag(m *message) string {
	return string(appendHex(nil, hashParts(s.hasher.b, []string{"t", m.callID, m.via.branch, m.from.tag})))
}
