package media

import (
	"bytes"
	"net/netip"
	"testing"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/mediatest"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/media/srtp"
	"soniq/internal/protocol/media/stun"
)

// FuzzSTUN passes arbitrary bytes to the STUN parser. Unauthenticated messages must not make their source trusted.
func FuzzSTUN(f *testing.F) {
	f.Add(mediatest.HexBytes(f, mediatest.STUNRequest))
	f.Add(mediatest.HexBytes(f, mediatest.STUNResponse))
	s := fuzzLeg(f)
	terms := sdp.NewICEParameters()
	terms.RemoteUfrag, terms.RemotePassword = "them", "their-password"
	agent := newICEAgent(s, terms)
	var w stun.Writer
	w.Begin(stun.Request, stun.TransactionID{1})
	copy(w.Add(stun.Username, len(terms.Ufrag)+5), terms.Ufrag+":them")
	f.Add(bytes.Clone(w.End(mediatest.MacOf("guess"))))
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
	s.SetRemote(Remote{Addr: netip.MustParseAddrPort("127.0.0.1:9"), Formats: g711Formats(codec.PCMU, 101)})
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
	sdes.applySecurity(&sdp.Agreement{Security: sdp.SDESRequired, In: srtp.NewMasterKey(srtp.AES128SHA80),
		Out: srtp.NewMasterKey(srtp.AES128GCM)})
	from := netip.MustParseAddrPort("127.0.0.1:9")
	n := web.NewSession(sdp.Profile{Security: sdp.WebRTC})
	n.Offer(sdp.LocalOffer())
	answer := mediatest.BrowserAnswer()
	if _, err := n.ReceiveAnswer(answer); err != nil {
		f.Fatal(err)
	}
	web.Apply(n, netip.Addr{})
	web.in.mu.Lock()
	web.in.ice.markProved(from) // so that DTLS and RTP from this address are processed
	web.in.ice.usePair(web.in.ice.add(from, 1), true)
	web.in.mu.Unlock()
	web.setKeys(srtp.NewMasterKey(srtp.AES256GCM), srtp.NewMasterKey(srtp.AES128SHA80))
	other := fuzzLeg(f)
	Bridge(sdes, other)
	f.Add(rtpPacket(1, 1, 1, 0, make([]byte, 160)), true)
	f.Add([]byte{0x80, 200, 0, 6, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 1, 1, 2, 3, 4, 5, 6,
		7, 8, 9, 10}, false)
	f.Add([]byte{22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3, 1, 0, 0}, true)
	f.Add(mediatest.HexBytes(f, mediatest.STUNRequest), true)
	f.Add([]byte{0x90, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 7, 0xBE, 0xDE, 0, 1, 0x10, 0xFF, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3, 4}, true)
	f.Fuzz(func(t *testing.T, b []byte, isRTP bool) {
		for _, s := range []*Stream{sdes, web} {
			c := bytes.Clone(b)
			if isRTP {
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
