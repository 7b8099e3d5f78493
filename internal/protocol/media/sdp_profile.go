package media

// Security is the protection of a session's media.
type Security uint8

// The protection that a session offers.
const (
	Plain         Security = iota // RTP/AVP
	SDESPreferred                 // RTP/AVP with a=crypto (RFC 4568)
	SDESRequired                  // RTP/SAVP with a=crypto
	WebRTC                        // UDP/TLS/RTP/SAVPF: DTLS-SRTP and ICE
)

// A Profile configures the session of a leg.
type Profile struct {
	Security Security
}

// NewSession returns the offer/answer state of a leg whose media uses this stream.
func (s *Stream) NewSession(p Profile) *Session {
	n := NewSession(s.local)
	n.security.profile, n.security.certificate = p, s.engine.certificate
	if s.bind == s.engine.cfg.Bind {
		n.security.ownAddr = s.engine.ownAddr
	}
	return n
}
