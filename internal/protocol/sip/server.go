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

// Server is a SIP endpoint over UDP, TCP, TLS and WebSocket.
type Server struct {
	config      Config
	limits      Limits
	handler     Handler
	allow       string // methods we take
	allowEvents string // event packages we know
	keys        keyer
	start       time.Time

	sockets   []*socket
	listeners []listener
	streams   *streams
	dead      deadTargets
	names     *dnsCache
	host      hostNames

	shards []*shard
	out    wire // where refusals outside any shard go: the server itself

	stats    counters
	calls    atomic.Int64 // inbound calls in progress
	lookups  atomic.Int64
	lag      atomic.Int64 // how long the last message waited in its queue
	draining atomic.Bool
	rate     Pacer
	urgents  Pacer
	guard    guard
	auth     authenticator
	logins   logins
	accounts accountLocks
	pinholes pinholes
	watchers watchers

	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	done    chan struct{} // closed when ctx is
	closing sync.Once
	readers sync.WaitGroup
	workers sync.WaitGroup // look-ups and handlers
	loops   sync.WaitGroup
}

// Listen opens the sockets and starts serving; h gets the calls. The Server
// ends by Close, or with ctx.
func Listen(ctx context.Context, c Config, h Handler) (*Server, error) {
	if c.Accounts == nil {
		return nil, errors.New("sip: listen: no accounts given")
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
		s.readers.Go(func() { k.read(s) })
	}
	s.loops.Go(s.keepPinholes)
	s.loops.Go(s.endWatching)
	for _, l := range s.listeners {
		s.readers.Go(func() { s.streams.accept(l.TCPListener, l.secure) })
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
	s := &Server{config: c, limits: c.Limits.withDefaults(), handler: h, keys: newKeyer(), done: make(chan struct{})}
	s.start, s.out, s.streams = c.Now(), s, newStreams(s)
	s.names = newDNSCache(s)
	s.allow = "INVITE, ACK, BYE, CANCEL, OPTIONS, INFO, REFER, NOTIFY, UPDATE, PRACK"
	if c.OnMessage != nil {
		s.allow += ", MESSAGE"
	}
	if c.Bindings != nil {
		s.allow += ", REGISTER"
	}
	s.allowEvents = "refer"
	for _, t := range c.Topics {
		s.allowEvents += ", " + t.Event
	}
	if len(c.Topics) > 0 {
		s.allow += ", SUBSCRIBE"
	}
	s.rate.Every = time.Second / time.Duration(s.limits.InvitesPerSecond)
	s.urgents.Every = time.Second / urgentPerSecond
	s.guard.init(s.limits)
	s.logins.burst = s.limits.AccountFailures
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
	if l.BanMost <= 0 {
		l.BanMost = 24 * time.Hour
	}
	if l.Ping <= 0 {
		l.Ping = 30 * time.Second
	}
	if l.RetryAfter <= 0 {
		l.RetryAfter = 5 * time.Second
	}
	return l
}

// clock is the time since the server started.
func (s *Server) clock() time.Duration { return s.config.Now().Sub(s.start) }

// Drain refuses new INVITEs with 503 and Retry-After from now on; everything
// inside dialogs goes on.
func (s *Server) Drain() { s.draining.Store(true) }

// Settle waits until every dialog is over, the answers to our BYEs and CANCELs
// included, or ctx ends. Its place is between the last call and Close.
func (s *Server) Settle(ctx context.Context) {
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

// Close stops serving and waits for every goroutine, Handler.Invite included.
// Legs still alive get Lost and nothing more is sent for them. It must not be
// called from an event callback. The second call does nothing.
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
		s.streams.close()
		for _, sh := range s.shards {
			sh.close()
		}
		s.readers.Wait()
		s.workers.Wait()
		s.loops.Wait()
	})
	return nil
}

// spawn runs a look-up or a handler. Their number is bounded by admission.
func (s *Server) spawn(do func()) {
	s.lookups.Add(1)
	s.workers.Go(func() {
		defer s.lookups.Add(-1)
		do()
	})
}

// bring spawns what brings a call to the switch, which may take over the goroutine.
func (s *Server) bring(in *Inbound) {
	s.lookups.Add(1)
	s.workers.Add(1)
	go func() {
		s.screen(in)
		s.lookups.Add(-1)
		s.workers.Done()
		if in.carry != nil {
			in.carry()
		}
	}()
}

// failed reports what we were asked to look up or store and could not. A server that closes does no more of that, which is no fault.
func (s *Server) failed(what string, err error, with ...any) {
	if s.ctx.Err() == nil {
		s.config.Logger.Error("sip: "+what, append(with, "error", err)...)
	}
}

func (s *Server) panicked(r any, stack []byte) {
	s.stats.panics.Add(1)
	s.config.Logger.Error("sip: recovered from a panic", "panic", r, "stack", string(stack))
}

// shardOf is the shard of a Call-ID.
func (s *Server) shardOf(callID string) *shard {
	return s.shards[hashParts(s.keys.a, []string{callID})%uint64(len(s.shards))]
}

// mark is what admission knows an INVITE by; never 0.
func (s *Server) mark(callID, branch string) uint64 {
	return hashParts(s.keys.b, []string{"m", callID, branch}) | 1
}

// statelessTag is a To tag that is the same for every retransmission
// (RFC 3261 §8.2.7).
func (s *Server) statelessTag(m *message) string {
	return string(appendHex(nil, hashParts(s.keys.b, []string{"t", m.callID, m.via.branch, m.from.tag})))
}
