// Package sdp negotiates the audio of a leg by SDP offers and answers (RFC 3264, RFC 8866): formats, direction, and the
// keys of SRTP, DTLS and ICE.
package sdp

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"

	"soniq/internal/protocol/media/codec"
)

// A Session is our side of one leg's offer/answer state (RFC 3264): the o= line and its version, the agreed media
// lines and the last body of each side. It is not safe for concurrent use; the call's goroutine owns it.
type Session struct {
	security    securityNegotiation
	id          uint64
	version     uint64
	lastContent string // last body sent, without its o= line

	lines []mediaLine // media lines of the session, in order
	audio int

	offer       *Description // received, not answered yet
	pending     *LocalMedia  // our last offer; answers to it are accepted
	pendingBody []byte       // body of pending

	remote       *Description // agreed
	ours         LocalMedia   // agreed
	agreedBody   []byte       // agreed
	answeredByUs bool         // we sent the answer: ours is the narrower list
}

// NewSession returns the state of a leg whose media uses the address local. It cannot negotiate DTLS.
func NewSession(local netip.AddrPort) *Session {
	return NewSecureSession(Endpoint{Local: local}, Profile{})
}

// NewSecureSession returns the state of a leg whose media is protected as the profile says.
func NewSecureSession(at Endpoint, p Profile) *Session {
	id := rand.Uint64()>>2 | 1
	return &Session{id: id, version: id, security: securityNegotiation{at: at, profile: p}}
}

// Offer returns the body of an offer. The o= version rises if the content differs from the last body sent (RFC 3264
// §8). Media lines that the other side offered before stay, refused.
func (s *Session) Offer(m LocalMedia) []byte {
	s.pending, s.offer = &m, nil
	s.security.propose(s.remote == nil)
	s.pendingBody = s.buildBody(m, s.security.offerLines(s.security.at.Local))
	return s.pendingBody
}

// ReceiveOffer parses the other side's offer. On error the state is unchanged.
func (s *Session) ReceiveOffer(body []byte) (Description, error) {
	d, err := ParseOffer(body)
	if err != nil {
		return Description{}, err
	}
	if len(d.lines) < len(s.lines) { // RFC 3264 §8: lines are never removed
		return Description{}, notAcceptable("the offer has %d media lines, the session has %d; refuse a line with port 0",
			len(d.lines), len(s.lines))
	}
	if err := s.security.checkOffer(&d); err != nil {
		return Description{}, err
	}
	s.offer = &d
	return d, nil
}

// Answer returns the body that answers the last received offer. Its direction is restricted to what the offer allows.
// Media lines other than the audio are refused with port 0.
func (s *Session) Answer(m LocalMedia) ([]byte, error) {
	if s.offer == nil {
		return nil, fmt.Errorf("answer: no offer is waiting")
	}
	if len(m.Formats) == 0 {
		return nil, notAcceptable("no format to answer with")
	}
	m.Direction = m.Direction.intersect(s.offer.Direction)
	s.lines, s.audio = s.offer.lines, s.offer.audioLine
	s.remote, s.ours, s.offer, s.answeredByUs = s.offer, m, nil, true
	s.pending, s.pendingBody = nil, nil
	s.security.acceptOffer(s.remote)
	s.agreedBody = s.buildBody(m, s.security.answerLines(s.security.at.Local))
	return s.agreedBody, nil
}

// ReceiveAnswer parses the other side's answer to our last offer. If the answer has no format of the offer, the error
// is an *Error with 488, and the state before the offer stays in force. The same offer can be answered again
// (another fork, 200 after early media): the last answer counts.
func (s *Session) ReceiveAnswer(body []byte) (Description, error) {
	if s.pending == nil {
		return Description{}, fmt.Errorf("receive answer: no offer is waiting")
	}
	d, err := ParseAnswer(body)
	if err != nil {
		return Description{}, err
	}
	if !slices.ContainsFunc(d.Formats, s.isOffered) {
		return Description{}, notAcceptable("the answer has no codec of the offer")
	}
	if err := s.security.acceptAnswer(&d); err != nil {
		return Description{}, err
	}
	d.Direction = d.Direction.intersect(s.pending.Direction)
	if len(s.lines) == 0 {
		s.lines, s.audio = d.lines[:1:1], 0 // our offer had one line
		s.lines[0] = d.lines[d.audioLine]
	}
	s.remote, s.ours, s.agreedBody, s.answeredByUs = &d, *s.pending, s.pendingBody, false
	s.ours.Direction = s.ours.Direction.intersect(d.Direction)
	return d, nil
}

// isOffered reports whether f is a codec of the pending offer.
func (s *Session) isOffered(f Format) bool {
	_, audio := f.Codec()
	_, ok := findFormat(s.pending.Formats, f)
	return audio && ok
}

// Rollback drops a pending offer of either side that failed (an error response to a re-INVITE). The previous
// agreement stays in force.
func (s *Session) Rollback() { s.offer, s.pending, s.pendingBody = nil, nil, nil }

// LocalBody returns our body of the last completed exchange, nil before the first.
func (s *Session) LocalBody() []byte { return s.agreedBody }

// Remote returns the other side's description of the last completed exchange, or false before the first.
func (s *Session) Remote() (Description, bool) {
	if s.remote == nil {
		return Description{}, false
	}
	return *s.remote, true
}

// LocalMedia returns our media of the last completed exchange. Its direction is the one in force, seen from us.
func (s *Session) LocalMedia() LocalMedia { return s.ours }

// SendFormats returns the formats we may send: those of the answer, in its order, with the payload types that the
// other side declared (RFC 3264 §6.1).
func (s *Session) SendFormats() []Format {
	if s.remote == nil {
		return nil
	}
	order, allowed := s.remote.Formats, s.ours.Formats
	if s.answeredByUs {
		order, allowed = allowed, order
	}
	list := make([]Format, 0, len(order))
	for _, f := range order {
		o, ok := findFormat(allowed, f)
		if !ok {
			continue
		}
		if s.answeredByUs {
			f = o // the other side's payload type
		}
		list = append(list, f)
	}
	return list
}

// Codec returns the codec we send; PCMU before the first completed exchange.
func (s *Session) Codec() codec.Codec {
	for _, f := range s.SendFormats() {
		if c, ok := f.Codec(); ok {
			return c
		}
	}
	return codec.PCMU
}

// Agreement returns the protection that the last completed exchange agreed on. It is valid until the next exchange.
func (s *Session) Agreement() *Agreement { return &s.security.agreed }

// Secure reports whether the agreed media is encrypted.
func (s *Session) Secure() bool { return s.security.agreed.Security != Plain }

// IsRefresh reports whether body asks for exactly the media agreed already, as the re-INVITE of a session timer does
// (RFC 4028 §7.4). Answer it with LocalBody.
func (s *Session) IsRefresh(body []byte) bool {
	if s.remote == nil {
		return false
	}
	d, err := ParseOffer(body)
	return err == nil && d.Same(*s.remote)
}

// buildBody returns a body. It raises the version if the content changed.
func (s *Session) buildBody(m LocalMedia, protection string) []byte {
	core := s.content(m, protection)
	if s.lastContent != "" && core != s.lastContent {
		s.version++
	}
	s.lastContent = core
	return fmt.Appendf(nil, "v=0\r\no=- %d %d IN %s\r\n%s", s.id, s.version, address(s.security.at.Local.Addr()), core)
}

// content returns the body below the o= line.
func (s *Session) content(m LocalMedia, protection string) string {
	var b strings.Builder
	lines := s.lines
	if len(lines) == 0 {
		lines = []mediaLine{s.security.firstLine()}
	}
	fmt.Fprintf(&b, "s=-\r\nc=IN %s\r\nt=0 0\r\n%s", address(s.security.at.Local.Addr()), s.security.group(lines[s.audio].mid))
	for i, l := range lines {
		if i == s.audio {
			writeAudio(&b, l.proto, s.security.at.Local.Port(), m)
			b.WriteString(protection)
		} else {
			fmt.Fprintf(&b, "m=%s 0 %s %s\r\n", l.kind, l.proto, l.formats) // RFC 3264 §6: refused
		}
		if l.mid != "" {
			fmt.Fprintf(&b, "a=mid:%s\r\n", l.mid)
		}
	}
	return b.String()
}

func writeAudio(b *strings.Builder, proto string, port uint16, m LocalMedia) {
	fmt.Fprintf(b, "m=audio %d %s", port, proto)
	for _, f := range m.Formats {
		fmt.Fprintf(b, " %d", f.PT)
	}
	b.WriteString("\r\n")
	for _, f := range m.Formats {
		fmt.Fprintf(b, "a=rtpmap:%d %s\r\n", f.PT, f.rtpmapEncoding())
		if f.Param != "" {
			fmt.Fprintf(b, "a=fmtp:%d %s\r\n", f.PT, f.Param)
		}
	}
	if m.Ptime > 0 {
		fmt.Fprintf(b, "a=ptime:%d\r\n", m.Ptime)
	}
	fmt.Fprintf(b, "a=%s\r\n", m.Direction)
}

func address(a netip.Addr) string {
	if a.Is4() {
		return "IP4 " + a.String()
	}
	return "IP6 " + a.String()
}
