package sdp

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"soniq/internal/protocol/media/srtp"
)

// securityNegotiation negotiates the media protection of a session: SDES, DTLS and ICE.
type securityNegotiation struct {
	at             Endpoint         // ours
	keys           []srtp.MasterKey // ours by suite; nil before the first
	profile        Profile
	proposal       Security // of our pending offer
	offerAllSuites bool     // the offer has all suites
	bundle         bool     // the audio line is a BUNDLE group of its own
	role           setup    // our role in the DTLS handshake
	tag            int      // of the agreed crypto line
	ice            ICEParameters

	agreed Agreement
}

// An Agreement is the protection that a completed exchange agreed on.
type Agreement struct {
	Fingerprints []Fingerprint  // of the other side's certificate
	ICE          *ICEParameters // nil without ICE
	In, Out      srtp.MasterKey // of SDES; DTLS exports its own
	Security     Security
	Mux          bool
	DTLSActive   bool // we start the handshake
	Restored     bool // restored from an earlier process: its keys are lost
}

// propose decides the protection of the next offer: the one in force, or for the first offer that of the profile.
func (t *securityNegotiation) propose(first bool) {
	again := t.agreed.Restored
	t.proposal, t.offerAllSuites = t.agreed.Security, first || again
	if first {
		t.proposal = t.profile.Security
	}
	if t.proposal == WebRTC && (first || again) {
		t.bundle = true
		t.ice = NewICEParameters()
		t.ice.Controlling = true
	}
}

// proto returns the protocol of a first offer's media line.
func (t *securityNegotiation) proto() string {
	switch t.proposal {
	case SDESRequired:
		return "RTP/SAVP"
	case WebRTC:
		return "UDP/TLS/RTP/SAVPF"
	}
	return "RTP/AVP"
}

// key returns our key for a suite. It stays the same for the life of the session, so that re-INVITEs do not change
// our encryption.
func (t *securityNegotiation) key(s srtp.Suite) srtp.MasterKey {
	if t.keys == nil { // allocated on first use, because most legs are not encrypted
		t.keys = make([]srtp.MasterKey, srtp.SuiteCount)
	}
	if !t.keys[s].Valid() {
		t.keys[s] = srtp.NewMasterKey(s)
	}
	return t.keys[s]
}

// offerLines returns the attributes that our offer adds to its audio line.
func (t *securityNegotiation) offerLines(local netip.AddrPort) string {
	var b strings.Builder
	switch t.proposal {
	case SDESPreferred, SDESRequired:
		t.offerCryptos(&b)
	case WebRTC:
		b.WriteString("a=rtcp-mux\r\n")
		t.writeDTLS(&b, setupActpass) // RFC 5763 §5
		t.ice.writeSDP(&b, local, t.at.Own)
	}
	return b.String()
}

func (t *securityNegotiation) offerCryptos(b *strings.Builder) {
	if !t.offerAllSuites {
		fmt.Fprintf(b, "a=crypto:%s\r\n", cryptoAttribute{t.tag, t.agreed.Out}.encode())
		return
	}
	for i, s := range srtp.OfferedSuites {
		fmt.Fprintf(b, "a=crypto:%s\r\n", cryptoAttribute{i + 1, t.key(s)}.encode())
	}
}

// group returns the session-level line that bundles the audio with itself, because some browsers refuse media outside
// a group (RFC 9143 §7).
func (t *securityNegotiation) group(mid string) string {
	if !t.bundle || mid == "" {
		return ""
	}
	return "a=group:BUNDLE " + mid + "\r\n"
}

// firstLine returns the media line of a first offer.
func (t *securityNegotiation) firstLine() mediaLine {
	l := mediaLine{kind: "audio", proto: t.proto()}
	if t.proposal == WebRTC {
		l.mid = "0"
	}
	return l
}

// writeDTLS writes the fingerprint and the role. It also names the track, because browser applications look for it
// (RFC 8830 §2).
func (t *securityNegotiation) writeDTLS(b *strings.Builder, role setup) {
	fmt.Fprintf(b, "a=fingerprint:sha-256 %s\r\na=setup:%s\r\na=msid:audio audio\r\n", t.at.CertificateHash, role)
}

// checkOffer returns an error if the protection of an offer is less than the profile requires, or of a kind that this
// session cannot negotiate.
func (t *securityNegotiation) checkOffer(d *Description) error {
	if d.security == Plain && (t.profile.Security == SDESRequired || t.profile.Security == WebRTC) {
		return notAcceptable("media without encryption")
	}
	if d.security == WebRTC && t.at.CertificateHash == "" {
		return notAcceptable("no DTLS here")
	}
	return nil
}

// acceptOffer agrees to the protection of an offer. It takes the first supported crypto line, because the order is
// the offerer's preference (RFC 4568 §5.1.1).
func (t *securityNegotiation) acceptOffer(d *Description) {
	a := Agreement{Security: d.security, Mux: d.protection.mux}
	t.bundle = d.protection.bundle
	switch d.security {
	case SDESPreferred, SDESRequired:
		c := d.protection.cryptos[0]
		t.tag, a.In, a.Out = c.tag, c.key, t.key(c.key.Suite)
	case WebRTC:
		t.acceptDTLSOffer(d, &a)
	}
	t.agreed = a
}

func (t *securityNegotiation) acceptDTLSOffer(d *Description, a *Agreement) {
	p := &d.protection
	switch same := t.agreed.Security == WebRTC && slices.Equal(p.fingerprints, t.agreed.Fingerprints); {
	case p.setup == setupActive:
		t.role = setupPassive
	case p.setup == setupPassive:
		t.role = setupActive
	case same: // the association continues (RFC 5763 §6.6)
	case p.ufrag != "":
		t.role = setupActive // RFC 5763 §5: saves a round trip
	default:
		t.role = setupPassive // behind a NAT only the phone can start the handshake
	}
	a.Fingerprints, a.DTLSActive = p.fingerprints, t.role == setupActive
	if p.ufrag == "" || p.pwd == "" {
		return
	}
	if t.agreed.ICE == nil || t.agreed.ICE.isRestart(p) {
		t.ice = NewICEParameters()
		t.ice.Controlling = p.lite // RFC 8445 §6.1.1
	}
	a.ICE = t.ice.withRemote(p)
}

// answerLines returns the attributes that our answer adds to its audio line.
func (t *securityNegotiation) answerLines(local netip.AddrPort) string {
	var b strings.Builder
	if t.agreed.Mux {
		b.WriteString("a=rtcp-mux\r\n")
	}
	switch t.agreed.Security {
	case SDESPreferred, SDESRequired:
		fmt.Fprintf(&b, "a=crypto:%s\r\n", cryptoAttribute{t.tag, t.agreed.Out}.encode())
	case WebRTC:
		t.writeDTLS(&b, t.role)
		if t.agreed.ICE != nil {
			t.ice.writeSDP(&b, local, t.at.Own)
		}
	}
	return b.String()
}

// acceptAnswer processes the answer to our offer. On error the agreement is unchanged.
func (t *securityNegotiation) acceptAnswer(d *Description) error {
	switch t.proposal {
	case SDESPreferred, SDESRequired:
		return t.acceptSDESAnswer(d)
	case WebRTC:
		return t.acceptDTLSAnswer(d)
	}
	if d.security == SDESRequired || d.security == WebRTC {
		return notAcceptable("the answer encrypts, the offer did not")
	}
	t.agreed = Agreement{}
	return nil
}

func (t *securityNegotiation) acceptSDESAnswer(d *Description) error {
	for _, c := range d.protection.cryptos {
		if ours, ok := t.offeredKey(c); ok {
			t.tag = c.tag
			t.agreed = Agreement{Security: t.proposal, In: c.key, Out: ours}
			return nil
		}
	}
	if t.proposal == SDESRequired || d.security != Plain {
		return notAcceptable("the answer has no key of a suite we offered")
	}
	t.agreed = Agreement{}
	return nil
}

// offeredKey returns our key of the crypto line that c answers. Tag and suite must be those of the offer.
func (t *securityNegotiation) offeredKey(c cryptoAttribute) (srtp.MasterKey, bool) {
	if !t.offerAllSuites {
		return t.agreed.Out, c.tag == t.tag && c.key.Suite == t.agreed.Out.Suite
	}
	if c.tag < 1 || c.tag > len(srtp.OfferedSuites) || srtp.OfferedSuites[c.tag-1] != c.key.Suite {
		return srtp.MasterKey{}, false
	}
	return t.key(c.key.Suite), true
}

func (t *securityNegotiation) acceptDTLSAnswer(d *Description) error {
	p := &d.protection
	if d.security != WebRTC || p.setup == setupActpass || p.ufrag == "" || p.pwd == "" {
		return notAcceptable("the answer to WebRTC is none")
	}
	t.role = setupPassive
	if p.setup == setupPassive {
		t.role = setupActive
	}
	if p.lite {
		t.ice.Controlling = true
	}
	t.agreed = Agreement{Security: WebRTC, Mux: true, Fingerprints: p.fingerprints, DTLSActive: t.role == setupActive,
		ICE: t.ice.withRemote(p)}
	return nil
}
