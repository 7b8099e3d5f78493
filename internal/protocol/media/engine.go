package media

import (
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/netip"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	"soniq/internal/protocol/media/record"
)

// receiveBuffer is the socket buffer in bytes. It holds over a second of one leg's packets.
const receiveBuffer = 256 << 10

// defaultLatchWindow is how long a new source is accepted after a negotiation.
const defaultLatchWindow = 3 * time.Second

// Engine owns the packet loops, the recording writers and every open Stream. It is safe for concurrent use.
type Engine struct {
	cfg       Config
	log       *slog.Logger
	startTime time.Time // wall time at clock 0
	loops     loopSet
	ports     portSet
	recorders *record.Recorders

	prewarmed prewarmedStreams
	kept      prewarmedStreams // for emergency calls

	certificate *certificate // for DTLS
	ownAddr     netip.Addr   // source address of packets; differs from the advertised one behind a NAT

	mu      sync.Mutex // guards closed and streams
	closed  bool
	streams map[*Stream]struct{}

	capacity int            // streams for all but emergency calls; fixed
	entered  int            // streams counted under claims; guarded by mu
	owned    map[string]int // the same by owner; guarded by mu

	mixers map[*Mixer]struct{} // guarded by mu

	bridgeMu sync.Mutex // serialises Bridge, Unbridge and Mixer.Set; never held by a packet loop

	transcodeRequests chan *Stream     // legs whose packets their bridge peer cannot decode
	dtmfRequests      chan dtmfRequest // live digits to send
	mixerClocks       sync.WaitGroup   // mixer clocks
	quit              chan struct{}
	workerDone        chan struct{} // closed when mediaWorker has ended

	opened, noPorts atomic.Uint64
}

// New starts the packet loops and the recording writers. The caller must call Close.
func New(cfg Config) (*Engine, error) { return newEngine(cfg, newLoop) }

func newEngine(cfg Config, loop func(clock func() int64) (packetLoop, error)) (*Engine, error) {
	e := &Engine{streams: map[*Stream]struct{}{}, mixers: map[*Mixer]struct{}{},
		transcodeRequests: make(chan *Stream, 64), dtmfRequests: make(chan dtmfRequest, 256), quit: make(chan struct{}),
		workerDone: make(chan struct{})}
	if err := e.configure(cfg); err != nil {
		return nil, err
	}
	var err error
	if e.certificate, err = newCertificate(e.startTime); err != nil {
		return nil, err
	}
	for range e.cfg.Loops {
		l, err := loop(e.clock)
		if err != nil {
			e.loops.close()
			return nil, fmt.Errorf("start packet loop: %w", err)
		}
		e.loops.loops = append(e.loops.loops, &loopSlot{packetLoop: l})
	}
	e.recorders = record.NewRecorders(e.clock, e.log)
	go e.mediaWorker()
	for range e.kept.most + e.prewarmed.most {
		e.prewarm()
	}
	return e, nil
}

func (e *Engine) configure(cfg Config) (err error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Loops <= 0 {
		cfg.Loops = runtime.GOMAXPROCS(0)
	}
	if cfg.Latch <= 0 {
		cfg.Latch = defaultLatchWindow
	}
	if !cfg.Bind.IsValid() {
		cfg.Bind = netip.IPv4Unspecified()
	}
	if !cfg.Advertise.IsValid() {
		cfg.Advertise = advertisedAddr(cfg.Bind)
	}
	e.ownAddr = advertisedAddr(cfg.Bind)
	e.cfg, e.log, e.startTime = cfg, cfg.Logger, cfg.Now()
	if e.ports, err = newPortSet(cfg.PortMin, cfg.PortMax); err != nil {
		return err
	}
	e.prewarmed.most, e.kept.most = prewarmedCount, cfg.Shares.Emergency
	e.setCapacity()
	return nil
}

// advertisedAddr returns the address to write into SDP for a socket bound to bind. If bind is unspecified, it is the
// source address of packets to the Internet.
func advertisedAddr(bind netip.Addr) netip.Addr {
	if !bind.IsUnspecified() {
		return bind
	}
	target, fallback := "192.0.2.1:9", netip.MustParseAddr("127.0.0.1") // documentation addresses; no packet is sent
	if bind.Is6() {
		target, fallback = "[2001:db8::1]:9", netip.IPv6Loopback()
	}
	c, err := net.Dial("udp", target)
	if err != nil {
		return fallback
	}
	defer c.Close()
	return c.LocalAddr().(*net.UDPAddr).AddrPort().Addr().Unmap()
}

// clock returns the time since the engine started in ns. It is monotonic.
func (e *Engine) clock() int64 { return int64(e.cfg.Now().Sub(e.startTime)) }

// wallTime converts a clock reading into a time. Zero stays the zero time.
func (e *Engine) wallTime(at int64) time.Time {
	if at == 0 {
		return time.Time{}
	}
	return e.startTime.Add(time.Duration(at))
}

// Open opens one leg's RTP (even port) and RTCP (odd port) sockets on a random free pair. The error wraps ErrNoPorts
// if there is none.
func (e *Engine) Open() (*Stream, error) {
	return e.For(Claim{}).Open()
}

// OpenPeer is Open on the packet loop and the addresses of s. Use it for the other leg of a call.
func (e *Engine) OpenPeer(s *Stream) (*Stream, error) {
	return e.For(Claim{}).OpenPeer(s)
}

// OpenOn is Open bound to another address than the engine's (IPv6, a second interface). If advertise is zero, the
// address is determined like Config.Advertise.
func (e *Engine) OpenOn(bind, advertise netip.Addr) (*Stream, error) {
	return e.For(Claim{}).OpenOn(bind, advertise)
}

func (e *Engine) open(c Claim, loop *loopSlot, bind, advertise netip.Addr) (*Stream, error) {
	if err := e.enter(c); err != nil {
		e.noPorts.Add(1)
		return nil, err
	}
	s, err := e.takeStream(c, loop, bind)
	if err != nil {
		e.noPorts.Add(1)
		e.leave(c.Owner)
		return nil, err
	}
	s.owner = unique.Make(c.Owner)
	s.local = netip.AddrPortFrom(advertise, s.local.Port())
	s.loop.streams.Add(1)
	e.mu.Lock()
	closed := e.closed
	if !closed {
		e.streams[s] = struct{}{}
	}
	e.mu.Unlock()
	if closed {
		s.Close()
		return nil, ErrClosed
	}
	e.opened.Add(1)
	return s, nil
}

func (e *Engine) removeStream(s *Stream) {
	e.mu.Lock()
	delete(e.streams, s)
	e.mu.Unlock()
	s.loop.streams.Add(-1)
	e.ports.release(s.local.Port())
	e.leave(s.owner.Value())
	e.prewarm()
}

// Close closes every open stream and recorder and waits for all goroutines. It may be called twice.
func (e *Engine) Close() {
	e.mu.Lock()
	again := e.closed
	e.closed = true
	left := make([]*Stream, 0, len(e.streams))
	for s := range e.streams {
		left = append(left, s)
	}
	mixers := slices.Collect(maps.Keys(e.mixers))
	e.mu.Unlock()
	if again {
		return
	}
	e.recorders.Close()
	close(e.quit)
	<-e.workerDone
	for _, s := range left {
		s.Close()
	}
	for _, m := range mixers {
		m.Close()
	}
	e.closePrewarmed()
	e.mixerClocks.Wait()
	e.loops.close()
}

// EngineStats holds counters over all streams of an engine.
type EngineStats struct {
	Streams    int    // open now
	Recorders  int    // running now
	Opened     uint64 // streams opened since the start
	NoPorts    uint64 // Open calls that failed for lack of ports or sockets
	Recorded   uint64 // recordings finished
	RecordFail uint64 // recordings that failed or were cut short
}

// Stats returns a snapshot of the counters.
func (e *Engine) Stats() EngineStats {
	e.mu.Lock()
	n := len(e.streams)
	e.mu.Unlock()
	return EngineStats{Streams: n, Recorders: e.recorders.Running(), Opened: e.opened.Load(), NoPorts: e.noPorts.Load(),
		Recorded: e.recorders.Recorded(), RecordFail: e.recorders.Failed()}
}

// wakeUp wakes the goroutine that waits for c, now or when it next waits.
func wakeUp(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
