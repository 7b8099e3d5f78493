package sdp

import (
	"errors"
	"strings"
	"testing"

	"soniq/internal/protocol/media/mediatest"
)

const rfcKey = "inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz" // RFC 4568 §9.1

// testEndpoint is the end of a leg that can negotiate DTLS.
var testEndpoint = Endpoint{Local: legAddr, CertificateHash: FormatFingerprint(strings.Repeat("c", 32))}

// legWith returns the session of a leg with this profile.
func legWith(s Security) *Session { return NewSecureSession(testEndpoint, Profile{Security: s}) }

// exchange sends an offer of a to b, and the answer back. Both sessions then have an agreement.
func exchange(t *testing.T, a, b *Session, m LocalMedia) (offer, answer string) {
	t.Helper()
	body := a.Offer(m)
	d, err := b.ReceiveOffer(body)
	if err != nil {
		t.Fatalf("%v\n%s", err, body)
	}
	take, err := LocalAnswer(d)
	if err != nil {
		t.Fatal(err)
	}
	back, err := b.Answer(take)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.ReceiveAnswer(back); err != nil {
		t.Fatalf("%v\n%s", err, back)
	}
	return string(body), string(back)
}

func TestSecurity_KeysAgreed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b   Security
		proto  string
		secure bool
	}{
		{SDESPreferred, Plain, "RTP/AVP", true},
		{SDESRequired, Plain, "RTP/SAVP", true},
		{SDESRequired, SDESRequired, "RTP/SAVP", true},
		{Plain, SDESPreferred, "RTP/AVP", false},
		{WebRTC, Plain, "UDP/TLS/RTP/SAVPF", true},
	} {
		a, b := legWith(c.a), legWith(c.b)
		for range 2 { // the first exchange and a hold
			offer, answer := exchange(t, a, b, LocalOffer())
			for _, body := range []string{offer, answer} {
				if !strings.Contains(body, " "+c.proto+" ") {
					t.Errorf("%v to %v: want %s:\n%s", c.a, c.b, c.proto, body)
				}
			}
		}
		if a.Secure() != c.secure || b.Secure() != c.secure {
			t.Errorf("%v to %v: secure %v and %v", c.a, c.b, a.Secure(), b.Secure())
		}
		x, y := a.security.agreed, b.security.agreed
		if x.In != y.Out || x.Out != y.In || x.In.Valid() != (c.secure && c.a != WebRTC) {
			t.Errorf("%v to %v: keys %v %v", c.a, c.b, x, y)
		}
	}
}

// Repetitions in a re-INVITE must not change the keys in use, whichever side sends it.
func TestSecurity_ReinviteKeepsKeys(t *testing.T) {
	t.Parallel()
	a, b := legWith(SDESPreferred), legWith(Plain)
	exchange(t, a, b, LocalOffer())
	before := a.security.agreed
	offer, _ := exchange(t, b, a, LocalOffer())
	if strings.Count(offer, "a=crypto") != 1 {
		t.Errorf("the re-offer names more than what is in force:\n%s", offer)
	}
	if after := a.security.agreed; before.In != after.In || before.Out != after.Out {
		t.Errorf("keys changed from %v to %v", before, after)
	}
	if !a.IsRefresh([]byte(offer)) {
		t.Error("the repeated offer is not a refresh")
	}
	if a.IsRefresh([]byte(strings.Replace(offer, "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:", "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:AAAA", 1))) {
		t.Error("an offer with another key was taken for a refresh")
	}
}

func TestSecurity_WebRTCRolesAndICERestart(t *testing.T) {
	t.Parallel()
	a, b := legWith(WebRTC), legWith(Plain)
	exchange(t, a, b, LocalOffer())
	x, y := a.security.agreed, b.security.agreed
	if x.DTLSActive || !y.DTLSActive || !x.ICE.Controlling || y.ICE.Controlling || !x.Mux || !y.Mux {
		t.Fatalf("roles %+v %+v", x, y)
	}
	if x.ICE.Ufrag != y.ICE.RemoteUfrag || x.ICE.RemotePassword != y.ICE.Password || len(x.ICE.Candidates) != 1 ||
		x.ICE.Candidates[0].Addr != testEndpoint.Local {
		t.Errorf("ICE %+v %+v", x.ICE, y.ICE)
	}
	exchange(t, b, a, LocalOffer())
	if again := a.security.agreed; again.DTLSActive || again.ICE.Ufrag != x.ICE.Ufrag || again.ICE.RemoteUfrag != x.ICE.RemoteUfrag {
		t.Errorf("a re-INVITE changed the association: %+v", again)
	}
	offer := string(b.Offer(LocalOffer()))
	offer = strings.Replace(offer, "a=ice-ufrag:", "a=ice-ufrag:new", 1)
	d, err := a.ReceiveOffer([]byte(offer))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := LocalAnswer(d)
	if _, err := a.Answer(m); err != nil {
		t.Fatal(err)
	}
	if after := a.security.agreed; after.ICE.Ufrag == x.ICE.Ufrag || after.DTLSActive || !strings.HasPrefix(after.ICE.RemoteUfrag, "new") {
		t.Errorf("after the restart: %+v", after.ICE)
	}
}

func TestSecurity_BelowProfileRefused(t *testing.T) {
	t.Parallel()
	plain := mediatest.PhoneOffer("m=audio 4000 RTP/AVP 0")
	for _, s := range []Security{SDESRequired, WebRTC} {
		if _, err := legWith(s).ReceiveOffer(plain); !is488(err) {
			t.Errorf("%v: a plain offer gives %v", s, err)
		}
	}
	for name, answer := range map[string]string{
		"plain":         "m=audio 4000 RTP/AVP 0",
		"no key":        "m=audio 4000 RTP/SAVP 0",
		"other tag":     "m=audio 4000 RTP/SAVP 0\r\na=crypto:2 AES_CM_128_HMAC_SHA1_80 " + rfcKey,
		"other suite":   "m=audio 4000 RTP/SAVP 0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_32 " + rfcKey,
		"no encryption": "m=audio 4000 RTP/SAVP 0\r\na=crypto:1 AES_CM_128_HMAC_SHA1_80 " + rfcKey + " UNENCRYPTED_SRTP",
	} {
		n := legWith(SDESRequired)
		n.Offer(LocalOffer())
		if _, err := n.ReceiveAnswer(mediatest.PhoneOffer(answer)); !is488(err) || n.Secure() {
			t.Errorf("%s: got %v", name, err)
		}
	}
	n := legWith(Plain)
	n.Offer(LocalOffer())
	if _, err := n.ReceiveAnswer(mediatest.PhoneOffer("m=audio 4000 RTP/SAVP 0", "a=crypto:1 AES_CM_128_HMAC_SHA1_80 "+rfcKey)); !is488(err) {
		t.Errorf("a key nobody asked for: %v", err)
	}
	if _, err := NewSession(legAddr).ReceiveOffer(mediatest.PhoneOffer("m=audio 4000 UDP/TLS/RTP/SAVPF 0", "a=setup:actpass",
		"a=fingerprint:sha-256 "+FormatFingerprint(strings.Repeat("x", 32)))); !is488(err) {
		t.Errorf("DTLS without a certificate: %v", err)
	}
}

func is488(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Status == 488
}

func TestSecurity_SDESPreferredAcceptsPlainAnswer(t *testing.T) {
	t.Parallel()
	n := legWith(SDESPreferred)
	n.Offer(LocalOffer())
	if _, err := n.ReceiveAnswer(mediatest.PhoneOffer("m=audio 4000 RTP/AVP 0")); err != nil || n.Secure() {
		t.Fatalf("%v, secure %v", err, n.Secure())
	}
	if again := string(n.Offer(LocalOffer())); strings.Contains(again, "crypto") {
		t.Errorf("a plain call is offered a key again:\n%s", again)
	}
}

// The answer has the first supported suite of the offer, with its tag.
func TestSecurity_FirstSupportedSuite(t *testing.T) {
	t.Parallel()
	n := NewSession(legAddr)
	d, err := n.ReceiveOffer(mediatest.PhoneOffer("m=audio 4000 RTP/SAVP 0", "a=crypto:1 F8_128_HMAC_SHA1_80 "+rfcKey,
		"a=crypto:7 AES_CM_128_HMAC_SHA1_32 "+rfcKey, "a=crypto:8 AES_CM_128_HMAC_SHA1_80 "+rfcKey))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := LocalAnswer(d)
	body, err := n.Answer(m)
	if err != nil || !strings.Contains(string(body), "a=crypto:7 AES_CM_128_HMAC_SHA1_32 inline:") || strings.Count(string(body), "crypto") != 1 {
		t.Errorf("%v\n%s", err, body)
	}
}

func TestParseCandidate_Lines(t *testing.T) {
	t.Parallel()
	var p protection
	for _, v := range []string{
		"1 1 UDP 2122252543 192.0.2.5 50000 typ host generation 0",
		"2 2 udp 2122252542 192.0.2.5 50001 typ host", // RTCP
		"3 1 tcp 2122252541 192.0.2.5 9 typ host tcptype active",
		"4 1 udp 2122252540 3f1a.local 50002 typ host",
		"5 1 udp 2122252539 2001:db8::7 50003 typ srflx raddr :: rport 0",
		"6 1 udp 99999999999 192.0.2.5 50000 typ host",
		"7 1 udp 5 0.0.0.0 50000 typ host",
		"8 1 udp 5 192.0.2.5 0 typ host",
	} {
		p.attribute("candidate", v)
	}
	if len(p.candidates) != 2 || p.candidates[0].Addr.String() != "192.0.2.5:50000" || p.candidates[1].Addr.String() != "[2001:db8::7]:50003" {
		t.Errorf("%+v", p.candidates)
	}
	for range 50 {
		p.attribute("candidate", "1 1 UDP 2122252543 192.0.2.5 50000 typ host")
	}
	if len(p.candidates) != MaxCandidates {
		t.Errorf("%d candidates kept", len(p.candidates))
	}
}
