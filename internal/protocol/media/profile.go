package media

// Security is how the media of a session is protected.
type Security uint8

// What a session offers.
const (
	Plain         Security = iota // RTP/AVP
	SDESPreferred                 // RTP/AVP with a=crypto (RFC 4568)
	SDESRequired                  // RTP/SAVP with a=crypto
	WebRTC                        // UDP/TLS/RTP/SAVPF: DTLS-SRTP and ICE
)

// A Profile says what the session of a leg asks for.
type Profile struct {
	Security Security
}

// NewSession makes the offer/answer state of a leg whose media is this stream's.
func (s *Stream) NewSession(p Profile) *Session {
	n := NewSession(s.local)
	n.terms.profile, n.terms.certificate = p, s.engine.certificate
	if s.bind == s.engine.cfg.Bind {
		n.terms.own = s.engine.own
	}
	return n
}
