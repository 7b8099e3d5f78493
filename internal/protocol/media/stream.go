package media

import (
	"net/netip"
	"sync"
	"time"
)

// A Stream is one leg's RTP session. All methods are safe for concurrent use.
//
// Its two halves have a lock each. Packets are handled under in.mu by the loop
// that read them and sent under the other stream's out.mu; nobody takes an in.mu
// while holding an out.mu, or two of a kind.
type Stream struct {
	engine *Engine
	loop   *loopSlot
	bind   netip.Addr
	local  netip.AddrPort

	rtp, rtcp packetSocket
	in        inbound
	out       outbound

	voice voice

	mixer      *Mixer // the one the leg is in; guarded by engine.bridging
	conversion *Mixer // of its bridge; guarded by engine.bridging

	mu     sync.Mutex // guards player, ears, watch and closed
	closed bool
	player *player
	ears   *ears
	watch  *watch
}

func newStream(e *Engine, loop *loopSlot, bind netip.Addr) *Stream {
	s := &Stream{engine: e, loop: loop, bind: bind}
	s.in.init()
	s.out.init()
	return s
}

// listen binds RTP at an even port and RTCP at the one above (RFC 3550 §11).
func (s *Stream) listen(at netip.AddrPort) (err error) {
	if s.rtp, err = s.loop.listen(at, s); err != nil {
		return err
	}
	s.rtcp, err = s.loop.listen(netip.AddrPortFrom(at.Addr(), at.Port()+1), (*rtcpReceiver)(s))
	if err != nil {
		s.rtp.close()
	}
	return err
}

// Local returns the address and RTP port to advertise in SDP; RTCP is the port above.
func (s *Stream) Local() netip.AddrPort { return s.local }

// Close stops everything on the stream and frees its ports. It may be called
// twice. Sends in progress return ErrClosed. A recorder of the stream goes on,
// with silence in this channel.
func (s *Stream) Close() {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	p, l, w := s.player, s.ears, s.watch
	s.mu.Unlock()
	if again {
		return
	}
	w.stop()
	if p != nil {
		p.stop()
	}
	s.Unbridge()
	s.sendBye()
	s.unprotect()
	s.settle()
	s.in.shut()
	s.out.shut()
	s.rtp.close()
	s.rtcp.close()
	if l != nil {
		l.stop()
	}
	s.engine.forget(s)
}

// Remote says where a leg's media goes and which payload types both sides named.
type Remote struct {
	Addr    netip.AddrPort // RTP, as signalled; an unspecified or zero address sends nothing until a source is learned
	RTCP    netip.AddrPort // zero is the port above Addr's
	Via     netip.Addr     // where the leg's signalling comes from; trusted like Addr's host; may be zero
	Strict  bool           // accept no third host (trunks with fixed media addresses)
	Formats []Format       // as the other side declared them: payload types we send, the best first; nil leaves them as they were
	Ours    []Format       // as we declared them: payload types we receive; nil is Formats

	ice bool // ICE finds the address
}

// SetRemote points the stream at the other side and opens the latch window;
// the type latch (latch.go) documents which sources are accepted when.
func (s *Stream) SetRemote(r Remote) {
	r.Addr = netip.AddrPortFrom(r.Addr.Addr().Unmap(), r.Addr.Port())
	r.Via = r.Via.Unmap()
	source := s.in.negotiate(r, s.engine.clock(), s.engine.cfg.Latch)
	s.out.negotiate(r, source)
	s.reconsider()
}

// Apply is SetRemote and SetDirection from a completed offer/answer exchange;
// via is the address signalling came from, or zero.
func (s *Stream) Apply(n *Session, via netip.Addr) {
	d, ok := n.Remote()
	if !ok {
		return
	}
	if n.terms.agreed.again && n.terms.agreed.security != Plain {
		return // without keys there is nothing to say
	}
	ours := n.Ours()
	s.protect(&n.terms.agreed)
	s.SetDirection(ours.Direction.Sends(), ours.Direction.Receives())
	s.SetRemote(Remote{Addr: d.Addr, RTCP: d.RTCP, Via: via, Formats: n.formats(), Ours: append(ours.Formats[:len(ours.Formats):len(ours.Formats)], d.Formats...), ice: n.terms.agreed.ice != nil})
	s.meet(&n.terms.agreed)
}

// SetMuted keeps what this leg says, from now on, from everybody: it is neither
// relayed nor mixed nor recorded nor given to OnAudio. Its DTMF events still reach OnDTMF.
func (s *Stream) SetMuted(on bool) {
	s.in.mu.Lock()
	s.in.muted = on
	s.in.mu.Unlock()
}

// SetDirection says whether audio is sent to this leg and accepted from it.
// Both are on at first. What is not accepted is neither relayed nor recorded.
func (s *Stream) SetDirection(send, recv bool) {
	s.in.mu.Lock()
	s.in.accept = recv
	s.in.quiet.direct(s, recv, s.engine.clock())
	s.in.mu.Unlock()
	s.out.mu.Lock()
	s.out.enabled = send
	s.out.mu.Unlock()
}

// StreamStats is what a stream has seen. Received counts accepted packets only.
type StreamStats struct {
	Received, ReceivedBytes uint64 // payload bytes
	Sent, SentBytes         uint64
	Lost                    int64          // RFC 3550 §6.4.1 cumulative; duplicates can make it negative
	Jitter                  time.Duration  // RFC 3550 §6.4.1 interarrival jitter
	OutOfOrder              uint64         // arrived after one with a higher number
	Ignored                 uint64         // from a source the latch refuses
	Malformed               uint64         // not RTP version 2, or cut short
	Unproved                uint64         // SRTP that the leg's key does not prove to be the leg's, repetitions too
	DTMF                    uint64         // RFC 4733 events begun, repeats not counted
	First, Last             time.Time      // of received RTP; zero before the first
	Remote                  netip.AddrPort // where RTP is sent now
}

// Stats returns a snapshot; it stays readable after Close.
func (s *Stream) Stats() StreamStats {
	var st StreamStats
	s.in.stats(&st, s.engine)
	s.out.stats(&st)
	return st
}
