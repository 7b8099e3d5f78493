package media

import (
	"soniq/internal/protocol/media/sdp"
)

// NewSession returns the offer/answer state of a leg whose media uses this stream.
func (s *Stream) NewSession(p sdp.Profile) *sdp.Session { return sdp.NewSecureSession(s.endpoint(), p) }

// endpoint returns the addresses and the certificate that sessions of this stream offer.
func (s *Stream) endpoint() sdp.Endpoint {
	at := sdp.Endpoint{Local: s.local, CertificateHash: s.engine.certificate.hash}
	if s.bind == s.engine.cfg.Bind {
		at.Own = s.engine.ownAddr
	}
	return at
}

// RestoreSession continues a session of an earlier process on this stream. Its media has another port now and its
// keys are new. The caller therefore sends an offer in a re-INVITE; its o= version is above all versions sent before.
// Until that is answered, Apply sends the media of an unencrypted leg to its old address; an encrypted leg stays
// silent. The error is an *sdp.Error with 400 if the state is invalid.
func (s *Stream) RestoreSession(st sdp.SessionState) (*sdp.Session, error) {
	return sdp.RestoreSession(s.endpoint(), st)
}
