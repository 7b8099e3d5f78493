// Package media carries the audio of calls: RTP sessions, SDP offers and
// answers, G.711, the relay between two legs, recordings and tones.
//
// It knows nothing of signalling beyond SDP bytes and nothing of organisations.
// A leg of a call is a [Stream] (sockets) and a [Session] (offer/answer state);
// the switch passes SDP bytes between its dialogs and the sessions, applies the
// outcome to the streams and bridges them:
//
//	a, _ := engine.Open()                          // caller's leg
//	b, _ := engine.OpenBeside(a)                   // callee's leg, same loop
//	sa, sb := a.NewSession(media.Profile{}), b.NewSession(media.Profile{})
//	offer, err := sa.ReceiveOffer(inviteBody)      // *SDPError: 400 or 488
//	toB := sb.Offer(media.OfferBeside(offer))       // INVITE to the callee
//	answer, err := sb.ReceiveAnswer(okBody)
//	m, err := media.AnswerBeside(offer, answer)
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

// ErrNoPorts is returned by Open when no free even/odd port pair is left in
// the configured range, or the process is out of sockets.
var ErrNoPorts = errors.New("no free RTP port pair")

// ErrClosed is returned by everything on a closed Engine or Stream.
var ErrClosed = errors.New("media closed")

// Config says where an Engine listens. The zero value listens on all IPv4
// addresses at ephemeral ports.
type Config struct {
	PortMin, PortMax int              // RTP on even, RTCP on odd ports of this range; 0-0 lets the kernel choose
	Bind             netip.Addr       // address the sockets are bound to; zero is 0.0.0.0
	Advertise        netip.Addr       // address written into SDP; zero is Bind, or the machine's own when Bind is unspecified
	Loops            int              // packet loops; 0 is one per core
	Latch            time.Duration    // how long after a negotiation a new media source is accepted; 0 is 3 s
	Logger           *slog.Logger     // nil discards; never used on the packet path
	Now              func() time.Time // nil is time.Now
}
