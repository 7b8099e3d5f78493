package fuzz

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"soniq/internal/protocol/sip"
)

// offers are session descriptions of telephones, carriers and browsers.
var offers = [][]byte{
	wired(`
v=0
o=- 3985 1 IN IP4 127.0.0.1
s=-
c=IN IP4 127.0.0.1
t=0 0
m=audio 41000 RTP/AVP 0 8 101
a=rtpmap:0 PCMU/8000
a=rtpmap:8 PCMA/8000
a=rtpmap:101 telephone-event/8000
a=fmtp:101 0-16
a=ptime:20
a=sendrecv
`), wired(`
v=0
o=Z 1732000000000 1 IN IP4 127.0.0.1
s=Z
c=IN IP4 127.0.0.1
t=0 0
m=audio 41002 RTP/AVP 106 9 98 101 0 8 3
a=rtpmap:106 opus/48000/2
a=fmtp:106 sprop-maxcapturerate=16000; minptime=20; useinbandfec=1; stereo=1
a=rtpmap:98 telephone-event/48000
a=fmtp:98 0-16
a=rtpmap:101 telephone-event/8000
a=fmtp:101 0-16
a=rtcp:41003 IN IP4 127.0.0.1
a=rtcp-mux
a=sendrecv
m=video 41004 RTP/AVP 96
a=rtpmap:96 H264/90000
a=fmtp:96 profile-level-id=42801F
`), wired(`
v=0
o=user1 53655765 2353687637 IN IP4 127.0.0.1
s=-
c=IN IP4 127.0.0.1
t=0 0
m=audio 41006 RTP/SAVP 0 101
a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:WVNfX19zZW1jdGwgKCkgewkyMjA7fQp9CnVubGVz|2^20|1:4
a=crypto:2 AES_CM_128_HMAC_SHA1_32 inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSoj
a=crypto:3 AEAD_AES_256_GCM inline:d0RmdmcmVCspeEc3QGZiNWpVLFJhQX1cfHAwJSojd0RmdmcmVCspeEc3QGY=
a=rtpmap:101 telephone-event/8000
a=inactive
`), wired(`
v=0
o=mozilla...THIS_IS_SDPARTA-99.0 3985 0 IN IP4 127.0.0.1
s=-
t=0 0
a=fingerprint:sha-256 19:E2:1C:3B:4B:9F:81:E6:B8:5C:F4:A5:A8:D8:73:04:BB:05:2F:70:9F:04:A9:0E:05:E9:26:33:E8:70:88:A2
a=group:BUNDLE 0
a=ice-options:trickle
a=msid-semantic:WMS *
m=audio 9 UDP/TLS/RTP/SAVPF 109 9 0 8 101
c=IN IP4 127.0.0.1
a=candidate:0 1 UDP 2122252543 127.0.0.1 41008 typ host
a=candidate:1 1 TCP 2105524479 127.0.0.1 9 typ host tcptype active
a=extmap:1 urn:ietf:params:rtp-hdrext:ssrc-audio-level
a=fmtp:109 maxplaybackrate=48000;stereo=1;useinbandfec=1
a=ice-pwd:9e3d0f2a6ce9c5a5c0d0bb8fda4df1b3
a=ice-ufrag:4b1e6a4d
a=mid:0
a=rtcp-mux
a=rtcp-fb:109 transport-cc
a=rtpmap:109 opus/48000/2
a=rtpmap:9 G722/8000/1
a=rtpmap:101 telephone-event/8000
a=setup:actpass
a=ssrc:3464215424 cname:{f1c2}
`), wired(`
v=0
o=CarrierSBC 8000 8001 IN IP4 127.0.0.1
s=SIP Media Capabilities
c=IN IP4 127.0.0.1
b=AS:84
t=0 0
m=audio 41010/2 RTP/AVP 18 4 8 0 13 96
a=rtpmap:18 G729/8000
a=fmtp:18 annexb=no
a=rtpmap:96 telephone-event/8000
a=maxptime:40
a=sendonly
m=image 41012 udptl t38
a=T38FaxVersion:0
a=T38MaxBitRate:14400
`),
}

var offerWords = []string{"audio", "video", "image", "application", "RTP/AVP", "RTP/AVPF", "RTP/SAVP", "UDP/TLS/RTP/SAVPF", "udptl", "IP4", "IP6", "IN",
	"sendrecv", "sendonly", "recvonly", "inactive", "0.0.0.0", "::", "::1", "127.0.0.1", "opus/48000/2", "PCMU/8000", "PCMA/8000/1", "G722/8000",
	"telephone-event/8000", "CN/8000", "crypto:1", "inline:", "AES_CM_128_HMAC_SHA1_80", "AEAD_AES_128_GCM", "ptime:1", "ptime:100000", "maxptime:0",
	"rtcp:1", "rtcp-mux", "mid:", "group:BUNDLE", "candidate:", "typ relay", "setup:passive", "setup:holdconn", "fingerprint:sha-1", "ice-lite",
	"end-of-candidates", "m=", "c=", "a=", "o=", "v=1", "*", "-"}

// theirs is a valid answer of the peer, with formats and keys.
var theirs = wired(`
v=0
o=- 7 1 IN IP4 127.0.0.1
s=-
c=IN IP4 127.0.0.1
t=0 0
m=audio 41020 RTP/AVP 0
a=ptime:20
`)

var roundOf = regexp.MustCompile(`\+1213(\d{7})`)

// TestSDP_AnyOffersAndAnswers calls with mutated offers and answers with mutated answers. An established call sends a
// new offer, and ends.
func TestSDP_AnyOffersAndAnswers(t *testing.T) {
	t.Parallel()
	f := newStand(t)
	bob := f.AddUser("Bob")
	w := f.way(bob)
	f.phone(bob, func(in *sip.Inbound) []byte { // the caller selects its answer
		n := roundOf.FindStringSubmatch(in.Header("From"))
		if n == nil {
			return theirs
		}
		round, _ := strconv.ParseUint(n[1], 10, 64)
		m := f.round(round<<32, offers, offerWords)
		if m.oneIn(2) {
			return theirs
		}
		b := home(m.one())
		f.sent("answered", b)
		return b
	})
	carrier := f.open(w.address(), func(*sip.Inbound) []byte { return theirs })
	f.begin()
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for m := f.next(offers, offerWords); m != nil; m = f.next(offers, offerWords) {
				if err := f.negotiates(m, carrier, w); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	f.sound(carrier, w.user)
	f.ends()
}

// negotiates makes one call with mutated offers.
func (f *stand) negotiates(m *mutator, carrier *line, w way) error {
	offer := home(m.one())
	f.sent("offered", offer)
	c, err := carrier.dial(fmt.Sprintf("+1213%07d", f.rounds.Load()%1e7), pick(m, []string{w.user, w.user, w.flow}), offer)
	if err != nil {
		return err
	}
	answer, err := c.decided()
	if err != nil || answer == nil && over(c) {
		return err
	}
	if m.oneIn(2) {
		again := home(m.one())
		f.sent("offered again", again)
		_, _ = c.leg.Reinvite(f.T.Context(), again) // which may be refused, and end the call
	}
	f.answers()
	return c.hangUp()
}

func over(c *call) bool {
	select {
	case <-c.over:
		return true
	default:
		return false
	}
}

// sound fails unless a valid call succeeds.
func (f *stand) sound(carrier *line, number string) {
	f.T.Helper()
	c, err := carrier.dial("+12125550100", number, theirs)
	if err != nil {
		f.T.Fatal(err)
	}
	answer, err := c.decided()
	if err == nil && !strings.Contains(string(answer), "m=audio") {
		err = fmt.Errorf("a good call is answered %q", answer)
	}
	if err == nil {
		err = c.hangUp()
	}
	if err != nil {
		f.T.Error(err)
	}
}
