package media

import (
	"net/netip"
	"sync"
	"time"
	"unique"

	"soniq/internal/protocol/media/sdp"
)

// A Stream is one leg's RTP session. All methods are safe for concurrent use.
//
// Its two halves have a lock each. The loop that read a packet handles it under in.mu and sends it under the other
// stream's out.mu. Lock order: in.mu before out.mu; never two in.mu or two out.mu at once.
type Stream struct {
	engine *Engine
	loop   *loopSlot
	owner  unique.Handle[string] // of its claim
	bind   netip.Addr
	local  netip.AddrPort

	rtp, rtcp packetSocket
	in        inbound
	out       outbound

	promptSender promptSender

	mixer            *Mixer // the leg's mixer; guarded by engine.bridgeMu
	transcodingMixer *Mixer // mixer of its bridge, if codecs differ; guarded by engine.bridgeMu

	mu           sync.Mutex // guards player, decoded, silenceWatch and closed
	closed       bool
	player       *player
	decoded      *decodedReceiver
	silenceWatch *silenceWatch
}

func newStream(e *Engine, loop *loopSlot, bind netip.Addr) *Stream {
	s := &Stream{engine: e, loop: loop, bind: bind}
	s.in.init()
	s.out.init()
	return s
}

// listen binds RTP to an even port and RTCP to the port above (RFC 3550 §11).
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

// Local returns the address and RTP port to advertise in SDP. RTCP uses the port above.
func (s *Stream) Local() netip.AddrPort { return s.local }

// Close stops everything on the stream and frees its ports. It may be called twice. Sends in progress return
// ErrClosed. A recorder of the stream continues with silence in this channel.
func (s *Stream) Close() {
	s.mu.Lock()
	again := s.closed
	s.closed = true
	p, l, w := s.player, s.decoded, s.silenceWatch
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
	s.stopICEAndDTLS()
	s.finishQuality()
	s.in.close()
	s.out.close()
	s.rtp.close()
	s.rtcp.close()
	if l != nil {
		l.stop()
	}
	s.engine.removeStream(s)
}

// Remote holds the media address of the other side and the payload types that both sides declared.
type Remote struct {
	Addr    netip.AddrPort // RTP, as signalled; for an unspecified or zero address nothing is sent until a source is learned
	RTCP    netip.AddrPort // zero is the port above Addr's
	Via     netip.Addr     // source address of the leg's signalling; trusted like Addr's host; may be zero
	Strict  bool           // accept no third host (trunks with fixed media addresses)
	Formats []sdp.Format   // as the other side declared them: payload types we send, best first; nil keeps the current ones
	Ours    []sdp.Format   // as we declared them: payload types we receive; nil is Formats

	ice bool // ICE determines the address
}

// SetRemote sets the other side's address and opens the latch window. The type latch (rtp_latch.go) documents which
// sources are accepted when.
func (s *Stream) SetRemote(r Remote) {
	r.Addr = netip.AddrPortFrom(r.Addr.Addr().Unmap(), r.Addr.Port())
	r.Via = r.Via.Unmap()
	source := s.in.negotiate(r, s.engine.clock(), s.engine.cfg.Latch)
	s.out.negotiate(r, source)
	s.resetTranscoding()
}

// Apply calls SetRemote and SetDirection with the result of a completed offer/answer exchange, and starts encryption
// if that was agreed on. via is the source address of the signalling, or zero.
func (s *Stream) Apply(n *sdp.Session, via netip.Addr) {
	d, ok := n.Remote()
	if !ok {
		return
	}
	a := n.Agreement()
	if a.Restored && a.Security != sdp.Plain {
		return // without keys nothing can be sent
	}
	ours := n.LocalMedia()
	s.applySecurity(a)
	s.SetDirection(ours.Direction.Sends(), ours.Direction.Receives())
	s.SetRemote(s.withoutRefused(Remote{Addr: d.Addr, RTCP: d.RTCP, Via: via, Formats: n.SendFormats(),
		Ours: append(ours.Formats[:len(ours.Formats):len(ours.Formats)], d.Formats...), ice: a.ICE != nil}))
	s.startICEAndDTLS(s.withoutRefusedCandidates(a, via))
}

// SetMuted stops or resumes the use of this leg's audio. While muted it is not relayed, mixed, recorded or passed to
// OnAudio. Its DTMF events still reach OnDTMF.
func (s *Stream) SetMuted(on bool) {
	s.in.mu.Lock()
	s.in.muted = on
	s.in.mu.Unlock()
}

// SetDirection sets whether audio is sent to this leg and accepted from it. Both are on at first. Audio that is not
// accepted is neither relayed nor recorded.
func (s *Stream) SetDirection(send, recv bool) {
	s.in.mu.Lock()
	s.in.accept = recv
	s.in.silence.setDirection(s, recv, s.engine.clock())
	s.in.mu.Unlock()
	s.out.mu.Lock()
	s.out.enabled = send
	s.out.mu.Unlock()
}

// StreamStats holds the counters of a stream. Received counts accepted packets only.
type StreamStats struct {
	Received, ReceivedBytes uint64 // payload bytes
	Sent, SentBytes         uint64
	Lost                    int64          // RFC 3550 §6.4.1 cumulative; duplicates can make it negative
	Jitter                  time.Duration  // RFC 3550 §6.4.1 interarrival jitter
	OutOfOrder              uint64         // arrived after one with a higher number
	Ignored                 uint64         // from a source that the latch refuses
	Malformed               uint64         // not RTP version 2, or truncated
	Unauthenticated         uint64         // SRTP that failed authentication, replays included
	DTMF                    uint64         // RFC 4733 events, repeats not counted
	First, Last             time.Time      // of received RTP; zero before the first
	Remote                  netip.AddrPort // current destination of RTP
}

// Stats returns a snapshot of the counters. It may be called after Close.
func (s *Stream) Stats() StreamStats {
	var st StreamStats
	s.in.stats(&st, s.engine)
	s.out.stats(&st)
	return st
}
