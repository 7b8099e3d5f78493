package media

import (
	stdcontext "context"
	"net/netip"
	"slices"
	"sync"

	"github.com/pion/transport/v4/packetio"

	"soniq/internal/protocol/media/sdp"
)

// A dtlsAssociation provides the SRTP keys of a leg by DTLS (RFC 5764). It ends with the stream, or when the other side
// closes the association.
//
// Anybody on the other side's host may send a ClientHello before the other side does, and no packet of a handshake proves
// its sender. So as a server without ICE each source has an attempt of its own. The first one whose certificate has a
// signalled fingerprint provides the keys, and ends the others.
type dtlsAssociation struct {
	s            *Stream
	fingerprints []sdp.Fingerprint
	active       bool
	pathReady    <-chan struct{} // closed when ICE has found a path; nil if packets can be sent at once

	ctx     stdcontext.Context
	cancel  stdcontext.CancelFunc
	running sync.WaitGroup

	// The stream's in.mu guards the fields below.
	attempts []*dtlsAttempt // the oldest first
	begun    int            // attempts so far
	complete bool           // one has succeeded
}

const (
	// maxDTLSAttempts bounds the handshakes at a time.
	maxDTLSAttempts = 4
	// maxDTLSBegun bounds the handshakes of all sources but the signalled one.
	maxDTLSBegun = 64
)

// startDTLS starts DTLS. The caller holds in.mu.
func startDTLS(s *Stream, a *sdp.Agreement, path <-chan struct{}) *dtlsAssociation {
	l := &dtlsAssociation{s: s, fingerprints: a.Fingerprints, active: a.DTLSActive, pathReady: path}
	l.ctx, l.cancel = stdcontext.WithCancel(stdcontext.Background())
	if !l.isBySource() {
		l.begin(netip.AddrPort{})
	}
	return l
}

// isBySource reports whether each source has an attempt of its own.
func (l *dtlsAssociation) isBySource() bool { return !l.active && l.pathReady == nil }

// begin starts an attempt with a source. The zero source stands for the RTP destination of the stream.
func (l *dtlsAssociation) begin(from netip.AddrPort) *dtlsAttempt {
	a := &dtlsAttempt{l: l, from: from, in: packetio.NewBuffer()}
	ctx, cancel := stdcontext.WithCancel(l.ctx)
	a.cancel = cancel
	a.in.SetLimitSize(maxHandshakeQueue)
	l.attempts = append(l.attempts, a)
	l.begun++
	l.running.Go(func() { a.run(ctx) })
	return a
}

// stop closes the association with a close_notify alert if it is established, and waits for its goroutines.
func (l *dtlsAssociation) stop() {
	l.s.in.mu.Lock() // no attempt begins afterwards
	l.cancel()
	l.s.in.mu.Unlock()
	l.running.Wait()
}

// receive passes a packet from the packet loop to its attempt. It reports false if there is none. The caller holds in.mu.
func (l *dtlsAssociation) receive(b []byte, from netip.AddrPort) bool {
	a := l.attemptOf(b, from)
	if a == nil {
		return false
	}
	_, _ = a.in.Write(b) // a packet that does not fit is dropped
	return true
}

// attemptOf returns the attempt of a packet. A ClientHello from a new source begins one.
func (l *dtlsAssociation) attemptOf(b []byte, from netip.AddrPort) *dtlsAttempt {
	if !l.isBySource() {
		return l.attempts[0]
	}
	for _, a := range l.attempts {
		if a.from == from {
			return a
		}
	}
	exact := from == l.s.in.latch.signalled
	if l.complete || l.ctx.Err() != nil || !isClientHello(b) || l.begun >= maxDTLSBegun && !exact {
		return nil
	}
	if len(l.attempts) >= maxDTLSAttempts && !l.dropOldest() {
		return nil
	}
	return l.begin(from)
}

// dropOldest ends the oldest attempt that is not of the signalled address.
func (l *dtlsAssociation) dropOldest() bool {
	i := slices.IndexFunc(l.attempts, func(a *dtlsAttempt) bool { return a.from != l.s.in.latch.signalled })
	if i >= 0 {
		l.attempts[i].cancel()
		l.attempts = slices.Delete(l.attempts, i, i+1)
	}
	return i >= 0
}

// isClientHello reports whether a DTLS packet begins with a ClientHello (RFC 6347 §4.1, §4.3.2).
func isClientHello(b []byte) bool { return len(b) > 13 && b[0] == 22 && b[13] == 1 }

// succeed ends the other attempts and sends media to the source of this one. It reports false if another one was first.
func (l *dtlsAssociation) succeed(a *dtlsAttempt) bool {
	in := &l.s.in
	in.mu.Lock()
	defer in.mu.Unlock()
	if l.complete {
		return false
	}
	l.complete = true
	for _, other := range l.attempts {
		if other != a {
			other.cancel()
		}
	}
	l.attempts = []*dtlsAttempt{a}
	if a.from.IsValid() {
		l.s.out.setDestination(a.from)
	}
	return true
}

// forget removes an attempt by source that ended, so that the source may begin another.
func (l *dtlsAssociation) forget(a *dtlsAttempt) {
	if !l.isBySource() {
		return
	}
	l.s.in.mu.Lock()
	defer l.s.in.mu.Unlock()
	l.attempts = slices.DeleteFunc(l.attempts, func(x *dtlsAttempt) bool { return x == a })
}

// matches reports whether an agreement asks for this association, by the signalled fingerprints.
func (l *dtlsAssociation) matches(a *sdp.Agreement) bool {
	return slices.Equal(l.fingerprints, a.Fingerprints)
}

// receiveNonRTP handles STUN and DTLS packets (RFC 7983 §7). The caller holds in.mu.
func (s *Stream) receiveNonRTP(b []byte, from netip.AddrPort, now int64) {
	in := &s.in
	switch {
	case len(b) == 0:
	case b[0] < 4 && in.ice != nil:
		if !in.ice.receive(b, from, now) {
			in.ignored++
		}
		return
	case b[0] >= 20 && b[0] < 64 && in.dtls != nil:
		if !s.acceptsDTLS(from) || !in.dtls.receive(b, from) {
			in.ignored++
		}
		return
	}
	in.malformed++
}

// acceptsDTLS reports whether DTLS packets from this source are processed. Without ICE only known hosts qualify, and as a client only the
// address that our packets go to. Packets of others could break the handshake.
func (s *Stream) acceptsDTLS(from netip.AddrPort) bool {
	if s.in.ice != nil {
		return s.in.ice.isProved(from)
	}
	if s.in.dtls.active {
		s.out.mu.Lock()
		defer s.out.mu.Unlock()
		return from == s.out.to
	}
	l := &s.in.latch
	return from == l.source || l.rankOf(from) >= rankKnownHost
}
