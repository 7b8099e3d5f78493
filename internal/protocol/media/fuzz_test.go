package media

import (
	"bytes"
	"net/netip"
	"strings"
	"testing"
)

// FuzzSTUN passes arbitrary bytes to the STUN parser. Unauthenticated messages must not make their source trusted.
func FuzzSTUN(f *testing.F) {
	f.Add(hexBytes(f, vectorRequest))
	f.Add(hexBytes(f, vectorResponse))
	s := fuzzLeg(f)
	terms := newICEParameters()
	terms.remoteUfrag, terms.remotePwd = "them", "their-password"
	agent := newICEAgent(s, terms)
	var w stunWriter
	w.begin(stunRequest, stunTx{1})
	copy(w.add(stunUsername, len(terms.ufrag)+5), terms.ufrag+":them")
	f.Add(bytes.Clone(w.end(macOf("guess"))))
	stranger := netip.MustParseAddrPort("127.0.0.66:9")
	f.Fuzz(func(t *testing.T, b []byte) {
		agent.receive(b, stranger, 1)
		if agent.isProved(stranger) {
			t.Errorf("%x proved something", b)
		}
	})
}

// fuzzLeg returns a leg that processes packets but sends none to the network.
func fuzzLeg(f *testing.F) *Stream {
	e := testEngine(f, Config{Loops: 1}, newLoop)
	s := openStream(f, e)
	s.SetRemote(Remote{Addr: netip.MustParseAddrPort("127.0.0.1:9"), Formats: g711Formats(PCMU, 101)})
	real, realRTCP := s.rtp, s.rtcp
	s.out.mu.Lock()
	s.rtp, s.rtcp = &discardSocket{}, &discardSocket{}
	s.out.mu.Unlock()
	f.Cleanup(func() { // ICE sends checks until the engine closes
		s.out.mu.Lock()
		s.rtp, s.rtcp = real, realRTCP
		s.out.mu.Unlock()
	})
	return s
}

// FuzzSecureLeg passes packets to legs that use SRTP by SDES and by DTLS with ICE: RTP, RTCP, STUN and DTLS on one
// port. Packets that are not authenticated are never counted as received.
func FuzzSecureLeg(f *testing.F) {
	sdes, web := fuzzLeg(f), fuzzLeg(f)
	sdes.applySecurity(&securityAgreement{security: SDESRequired, in: newMasterKey(aesSHA80), out: newMasterKey(aes128GCM)})
	from := netip.MustParseAddrPort("127.0.0.1:9")
	n := web.NewSession(Profile{Security: WebRTC})
	n.Offer(LocalOffer())
	answer := browserAnswer()
	if _, err := n.ReceiveAnswer(answer); err != nil {
		f.Fatal(err)
	}
	web.Apply(n, netip.Addr{})
	web.in.mu.Lock()
	web.in.ice.markProved(from) // so that DTLS and RTP from this address are processed
	web.in.ice.usePair(web.in.ice.add(from, 1), true)
	web.in.mu.Unlock()
	web.setKeys(newMasterKey(aes256GCM), newMasterKey(aesSHA80))
	other := fuzzLeg(f)
	Bridge(sdes, other)
	f.Add(rtpPacket(1, 1, 1, 0, make([]byte, 160)), true)
	f.Add([]byte{0x80, 200, 0, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, false)
	f.Add([]byte{22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3, 1, 0, 0}, true)
	f.Add(hexBytes(f, vectorRequest), true)
	f.Add([]byte{0x90, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7, 0xBE, 0xDE, 0, 1, 0x10, 0xFF, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4}, true)
	f.Fuzz(func(t *testing.T, b []byte, rtp bool) {
		for _, s := range []*Stream{sdes, web} {
			c := bytes.Clone(b)
			if rtp {
				s.receive(c, from, s.engine.clock())
			} else {
				(*rtcpReceiver)(s).receive(c, from, s.engine.clock())
			}
			if st := s.Stats(); st.Received > 0 {
				t.Fatalf("%x was received", b)
			}
		}
		if st := other.Stats(); st.Sent > 0 {
			t.Fatalf("%x was relayed", b)
		}
	})
}

func browserAnswer() []byte {
	return phoneOffer("m=audio 9 UDP/TLS/RTP/SAVPF 0", "a=mid:0", "a=rtcp-mux", "a=setup:active", "a=ice-ufrag:them", "a=ice-pwd:theirPasswordIsLongEnough",
		"a=fingerprint:sha-256 "+colonHex(strings.Repeat("x", 32)), "a=candidate:1 1 udp 1 127.0.0.1 9 typ host")
}

// FuzzOffer answers arbitrary offers. Our answer and our next offer must be parseable.
func FuzzOffer(f *testing.F) {
	f.Add(browserAnswer())
	f.Add(phoneOffer("m=audio 4000 RTP/SAVP 0", "a=crypto:1 AES_CM_128_HMAC_SHA1_80 "+rfcKey+"|2^20|1:4"))
	f.Add(phoneOffer("a=group:BUNDLE a", "m=video 0 RTP/AVP 96", "a=mid:v", "m=audio 4000 RTP/AVP 8 0 101", "a=mid:a", "a=rtcp:9 IN IP6 ::1"))
	s := fuzzLeg(f)
	f.Fuzz(func(t *testing.T, b []byte) {
		n := s.NewSession(Profile{})
		d, err := n.ReceiveOffer(b)
		if err != nil {
			return
		}
		m, err := LocalAnswer(d)
		if err != nil {
			return
		}
		body, err := n.Answer(m)
		if err != nil {
			return
		}
		for _, said := range [][]byte{body, n.Offer(m)} {
			if back, err := ParseOffer(said); err != nil && d.Direction != Inactive {
				t.Errorf("%v\noffer:\n%s\nours:\n%s", err, b, said)
			} else if err == nil && back.security != d.security {
				t.Errorf("security %v became %v\n%s", d.security, back.security, said)
			}
		}
	})
}
