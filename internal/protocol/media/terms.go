package media

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// securityNegotiation negotiates the media protection of a session: SDES, DTLS and ICE.
type terms struct {
	certificate *certificate // of the engine; nil disables DTLS
	own         netip.Addr   // the machine's own address, if another one is advertised
	keys        []masterKey  // ours by suite; nil before the first
	profile     Profile
	proposal    Security // of our pending offer
	all         bool     // the offer has all suites
	bundle      bool     // the audio line is a BUNDLE group of its own
	role        setup    // our role in the DTLS handshake
	tag         int      // of the agreed crypto line
	ice         iceTerms

	agreed agreement
}

// A securityAgreement is the protection that a completed exchange agreed on.
type agreement struct {
	prints   []fingerprint // of the other side's certificate
	ice      *iceTerms     // nil without ICE
	in, out  masterKey     // of SDES; DTLS exports its own
	security Security
	mux      bool
	active   bool // we start the handshake
	again    bool // restored from an earlier process: its keys are lost
}

// propose decides the protection of the next offer: the one in force, or for the first offer that of the profile.
func (t *terms) propose(first bool) {
	again := t.agreed.again
	t.proposal, t.all = t.agreed.security, first || again
	if first {
		t.proposal = t.profile.Security
	}
	if t.proposal == WebRTC && (first || again) {
		t.bundle = true
		t.ice = newICETerms()
		t.ice.controlling = true
	}
}

// proto returns the protocol of a first offer's media line.
func (t *terms) proto() string {
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
func (t *terms) key(s suite) masterKey {
	if t.keys == nil { // allocated on first use, because most legs are not encrypted
		t.keys = make([]masterKey, len(suiteTable))
	}
	if !t.keys[s].valid() {
		t.keys[s] = newMasterKey(s)
	}
	return t.keys[s]
}

// offerLines returns the attributes that our offer adds to its audio line.
func (t *terms) offerLines(local netip.AddrPort) string {
	var b strings.Builder
	switch t.proposal {
	case SDESPreferred, SDESRequired:
		t.offerCryptos(&b)
	case WebRTC:
		b.WriteString("a=rtcp-mux\r\n")
		t.writeDTLS(&b, actpass) // RFC 5763 §5
		t.ice.write(&b, local, t.own)
	}
	return b.String()
}

func (t *terms) offerCryptos(b *strings.Builder) {
	if !t.all {
		fmt.Fprintf(b, "a=crypto:%s\r\n", crypto{t.tag, t.agreed.out}.line())
		return
	}
	for i, s := range offeredSuites {
		fmt.Fprintf(b, "a=crypto:%s\r\n", crypto{i + 1, t.key(s)}.line())
	}
}

// group returns the session-level line that bundles the audio with itself, because some browsers refuse media outside
// a group (RFC 9143 §7).
func (t *terms) group(mid string) string {
	if !t.bundle || mid == "" {
		return ""
	}
	return "a=group:BUNDLE " + mid + "\r\n"
}

// firstLine returns the media line of a first offer.
func (t *terms) firstLine() mediaLine {
	l := mediaLine{kind: "audio", proto: t.proto()}
	if t.proposal == WebRTC {
		l.mid = "0"
	}
	return l
}

// writeDTLS writes the fingerprint and the role. It also names the track, because browser applications look for it
// (RFC 8830 §2).
func (t *terms) writeDTLS(b *strings.Builder, role setup) {
	fmt.Fprintf(b, "a=fingerprint:sha-256 %s\r\na=setup:%s\r\na=msid:audio audio\r\n", t.certificate.hash, role)
}

// checkOffer returns an error if the protection of an offer is less than the profile requires, or of a kind that this
// session cannot negotiate.
func (t *terms) admit(d *Description) error {
	if d.security == Plain && (t.profile.Security == SDESRequired || t.profile.Security == WebRTC) {
		return notAcceptable("media without encryption")
	}
	if d.security == WebRTC && t.certificate == nil {
		return notAcceptable("no DTLS here")
	}
	return nil
}

// acceptOffer agrees to the protection of an offer. It takes the first supported crypto line, because the order is
// the offerer's preference (RFC 4568 §5.1.1).
func (t *terms) answer(d *Description) {
	a := agreement{security: d.security, mux: d.protection.mux}
	t.bundle = d.protection.bundle
	switch d.security {
	case SDESPreferred, SDESRequired:
		c := d.protection.cryptos[0]
		t.tag, a.in, a.out = c.tag, c.key, t.key(c.key.suite)
	case WebRTC:
		t.answerDTLS(d, &a)
	}
	t.agreed = a
}

func (t *terms) answerDTLS(d *Description, a *agreement) {
	p := &d.protection
	switch same := t.agreed.security == WebRTC && slices.Equal(p.prints, t.agreed.prints); {
	case p.setup == active:
		t.role = passive
	case p.setup == passive:
		t.role = active
	case same: // the association continues (RFC 5763 §6.6)
	case p.ufrag != "":
		t.role = active // RFC 5763 §5: saves a round trip
	default:
		t.role = passive // behind a NAT only the phone can start the handshake
	}
	a.prints, a.active = p.prints, t.role == active
	if p.ufrag == "" || p.pwd == "" {
		return
	}
	if t.agreed.ice == nil || t.agreed.ice.restarted(p) {
		t.ice = newICETerms()
		t.ice.controlling = p.lite // RFC 8445 §6.1.1
	}
	a.ice = t.ice.with(p)
}

// answerLines returns the attributes that our answer adds to its audio line.
func (t *terms) answerLines(local netip.AddrPort) string {
	var b strings.Builder
	if t.agreed.mux {
		b.WriteString("a=rtcp-mux\r\n")
	}
	switch t.agreed.security {
	case SDESPreferred, SDESRequired:
		fmt.Fprintf(&b, "a=crypto:%s\r\n", crypto{t.tag, t.agreed.out}.line())
	case WebRTC:
		t.writeDTLS(&b, t.role)
		if t.agreed.ice != nil {
			t.ice.write(&b, local, t.own)
		}
	}
	return b.String()
}

// acceptAnswer processes the answer to our offer. On error the agreement is unchanged.
func (t *terms) answered(d *Description) error {
	switch t.proposal {
	case SDESPreferred, SDESRequired:
		return t.answeredSDES(d)
	case WebRTC:
		return t.answeredDTLS(d)
	}
	if d.security == SDESRequired || d.security == WebRTC {
		return notAcceptable("the answer encrypts, the offer did not")
	}
	t.agreed = agreement{}
	return nil
}

func (t *terms) answeredSDES(d *Description) error {
	for _, c := range d.protection.cryptos {
		if ours, ok := t.proposed(c); ok {
			t.tag = c.tag
			t.agreed = agreement{security: t.proposal, in: c.key, out: ours}
			return nil
		}
	}
	if t.proposal == SDESRequired || d.security != Plain {
		return notAcceptable("the answer has no key of a suite we offered")
	}
	t.agreed = agreement{}
	return nil
}

// offeredKey returns our key of the crypto line that c answers. Tag and suite must be those of the offer.
func (t *terms) proposed(c crypto) (masterKey, bool) {
	if !t.all {
		return t.agreed.out, c.tag == t.tag && c.key.suite == t.agreed.out.suite
	}
	if c.tag < 1 || c.tag > len(offeredSuites) || offeredSuites[c.tag-1] != c.key.suite {
		return masterKey{}, false
	}
	return t.key(c.key.suite), true
}

func (t *terms) answeredDTLS(d *Description) error {
	p := &d.protection
	if d.security != WebRTC || p.setup == actpass || p.ufrag == "" || p.pwd == "" {
		return notAcceptable("the answer to WebRTC is none")
	}
	t.role = passive
	if p.setup == passive {
		t.role = active
	}
	if p.lite {
		t.ice.controlling = true
	}
	t.agreed = agreement{security: WebRTC, mux: true, prints: p.prints, active: t.role == active, ice: t.ice.with(p)}
	return nil
}
