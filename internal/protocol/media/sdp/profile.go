package sdp

import "net/netip"

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

// An Endpoint is our end of a session's media.
type Endpoint struct {
	Local           netip.AddrPort // address of the media, as the other side reaches it
	Own             netip.Addr     // the machine's own address if it differs from Local's; a second ICE candidate; may be zero
	CertificateHash string         // SHA-256 fingerprint of our DTLS certificate in SDP notation; "" disables DTLS
}
