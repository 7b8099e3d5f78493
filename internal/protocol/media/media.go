// Package media carries the audio of calls: RTP sessions, the relay between two legs, mixing, prompts and DTMF.
//
// It reads and writes SDP bodies, but no other signalling, and has no organisations. A leg of a call is a [Stream] (sockets) and an
// [sdp.Session] (offer/answer state). The switch passes SDP bodies between its dialogs and the sessions, applies the outcome to the streams
// and bridges them:
//
//	a, _ := engine.Open()                          // caller's leg
//	b, _ := engine.OpenPeer(a)                     // callee's leg, same loop
//	sa, sb := a.NewSession(sdp.Profile{}), b.NewSession(sdp.Profile{})
//	offer, err := sa.ReceiveOffer(inviteBody)      // *sdp.Error: 400 or 488
//	toB := sb.Offer(sdp.RelayedOffer(offer))       // INVITE to the callee
//	answer, err := sb.ReceiveAnswer(okBody)
//	m, err := sdp.RelayedAnswer(offer, answer)
//	toA, err := sa.Answer(m)                       // 200 to the caller
//	a.Apply(sa, callerSignallingAddr)
//	b.Apply(sb, calleeSignallingAddr)
//	media.Bridge(a, b)
package media

import (
	"errors"
	"log/slog"
	"net/netip"
	"time"
)

// ErrNoPorts is returned by Open if no free even/odd port pair is left in the configured range, or the process has no
// descriptors left.
var ErrNoPorts = errors.New("no free RTP port pair")

// ErrClosed is returned by all methods of a closed Engine or Stream that return an error.
var ErrClosed = errors.New("media closed")

// Targets decides to which addresses audio may be sent.
type Targets interface {
	// CheckMedia returns the reason why audio may not be sent to an address that a peer named, or nil. signalling is
	// the source of the peer's signalling; it may be zero.
	CheckMedia(media, signalling netip.Addr) error
}

// Config holds the settings of an Engine. The zero value listens on all IPv4 addresses at ephemeral ports.
type Config struct {
	PortMin, PortMax int              // RTP on even, RTCP on odd ports of this range; 0-0 lets the kernel choose
	Bind             netip.Addr       // address the sockets are bound to; zero is 0.0.0.0
	Advertise        netip.Addr       // address written into SDP; zero is Bind, or the machine's own when Bind is unspecified
	Loops            int              // packet loops; 0 is one per core
	Latch            time.Duration    // how long after a negotiation a new media source is accepted; 0 is 3 s
	Shares           Shares           // division of the streams between parties
	Logger           *slog.Logger     // nil discards; never used on the packet path
	Now              func() time.Time // nil is time.Now
	Targets          Targets          // nil allows every address
}
