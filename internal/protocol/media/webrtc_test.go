package media

import (
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pion/webrtc/v4"
	"github.com/pion/webrtc/v4/pkg/media"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/media/srtp"
	"soniq/internal/protocol/media/stun"
)

// A browser is an independent WebRTC implementation: pion's, on the loopback.
type browser struct {
	*webrtc.PeerConnection
	mic *webrtc.TrackLocalStaticSample
	ear *earpiece
}

func newBrowser(t testing.TB, lite bool) *browser {
	t.Helper()
	var set webrtc.SettingEngine
	set.SetIncludeLoopbackCandidate(true)
	set.SetIPFilter(func(ip net.IP) bool { return ip.IsLoopback() })
	set.SetNetworkTypes([]webrtc.NetworkType{webrtc.NetworkTypeUDP4})
	set.SetLite(lite)
	set.SetHandleUndeclaredSSRCWithoutAnswer(true) // as browsers do
	// a part of its handshake that we lose is missing for good, instead of being repeated a second later
	set.SetDTLSRetransmissionInterval(time.Hour)
	m := &webrtc.MediaEngine{}
	pcmu := webrtc.RTPCodecCapability{MimeType: webrtc.MimeTypePCMU, ClockRate: 8000}
	if err := m.RegisterCodec(webrtc.RTPCodecParameters{RTPCodecCapability: pcmu, PayloadType: 0}, webrtc.RTPCodecTypeAudio); err != nil {
		t.Fatal(err)
	}
	pc, err := webrtc.NewAPI(webrtc.WithMediaEngine(m), webrtc.WithSettingEngine(set)).NewPeerConnection(webrtc.Configuration{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pc.Close() })
	mic, err := webrtc.NewTrackLocalStaticSample(pcmu, "mic", "browser")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pc.AddTrack(mic); err != nil {
		t.Fatal(err)
	}
	b := &browser{PeerConnection: pc, mic: mic, ear: &earpiece{more: make(chan struct{}, 1)}}
	pc.OnTrack(b.hear)
	return b
}

func (b *browser) hear(track *webrtc.TrackRemote, _ *webrtc.RTPReceiver) {
	for {
		p, _, err := track.ReadRTP()
		if err != nil {
			return
		}
		b.ear.mu.Lock()
		b.ear.pcm = append(b.ear.pcm, codec.PCMU.Decode(nil, p.Payload)...)
		b.ear.mu.Unlock()
		wakeUp(b.ear.more)
	}
}

// playTone sends a tone from the browser until the test ends.
func (b *browser) playTone(t testing.TB, hz float64) {
	done, over := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(over)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		words := codec.PCMU.Encode(nil, dsp.Tone(hz, -10, time.Second, 8000))
		for n := 0; ; n++ {
			select {
			case <-done:
				return
			case <-tick.C:
				at := n % 50 * 160
				_ = b.mic.WriteSample(media.Sample{Data: words[at : at+160], Duration: 20 * time.Millisecond})
			}
		}
	}()
	t.Cleanup(sync.OnceFunc(func() { close(done); <-over }))
}

// offer returns the browser's offer with all its candidates.
func (b *browser) offer(t testing.TB, restart bool) []byte {
	t.Helper()
	o, err := b.CreateOffer(&webrtc.OfferOptions{ICERestart: restart})
	if err != nil {
		t.Fatal(err)
	}
	return b.describe(t, o)
}

func (b *browser) describe(t testing.TB, d webrtc.SessionDescription) []byte {
	t.Helper()
	gathered := webrtc.GatheringCompletePromise(b.PeerConnection)
	if err := b.SetLocalDescription(d); err != nil {
		t.Fatal(err)
	}
	<-gathered
	return []byte(b.LocalDescription().SDP)
}

func (b *browser) take(t testing.TB, kind webrtc.SDPType, sdp []byte) {
	t.Helper()
	if err := b.SetRemoteDescription(webrtc.SessionDescription{Type: kind, SDP: string(sdp)}); err != nil {
		t.Fatalf("%v\n%s", err, sdp)
	}
}

// answer returns the browser's answer to our offer.
func (b *browser) answer(t testing.TB, offer []byte) []byte {
	t.Helper()
	b.take(t, webrtc.SDPTypeOffer, offer)
	a, err := b.CreateAnswer(nil)
	if err != nil {
		t.Fatal(err)
	}
	return b.describe(t, a)
}

// webCall is a call between a browser and a plain phone.
type webCall struct {
	*browser
	session  *sdp.Session
	leg      *Stream // the browser's
	other    *Stream
	phone    *Stream
	phoneEar *earpiece
}

func newWebCall(t testing.TB, e *Engine, lite bool) *webCall {
	t.Helper()
	phones := testEngine(t, Config{}, newLoop)
	c := &webCall{browser: newBrowser(t, lite), leg: openStream(t, e), other: openStream(t, e), phone: openStream(t, phones)}
	connect(c.phone, c.other, g711Formats(codec.PCMU, 101))
	c.phoneEar = newEarpiece(c.phone)
	c.session = c.leg.NewSession(sdp.Profile{Security: sdp.WebRTC})
	Bridge(c.leg, c.other)
	playTone(t, c.phone, 1000)
	c.playTone(t, 440)
	return c
}

// invite makes the browser call, or send a new offer in the call.
func (c *webCall) invite(t testing.TB, restart bool) {
	t.Helper()
	c.admit(t, c.offer(t, restart))
}

func (c *webCall) admit(t testing.TB, offer []byte) {
	t.Helper()
	d, err := c.session.ReceiveOffer(offer)
	if err != nil {
		t.Fatalf("%v\n%s", err, offer)
	}
	m, err := sdp.LocalAnswer(d)
	if err != nil {
		t.Fatal(err)
	}
	body, err := c.session.Answer(m)
	if err != nil {
		t.Fatal(err)
	}
	c.take(t, webrtc.SDPTypeAnswer, body)
	c.leg.Apply(c.session, netip.Addr{})
}

// call makes us call the browser.
func (c *webCall) call(t testing.TB) {
	t.Helper()
	m := sdp.LocalOffer()
	m.Formats = g711Formats(codec.PCMU, 101)[:1]
	answer := c.answer(t, c.session.Offer(m))
	if _, err := c.session.ReceiveAnswer(answer); err != nil {
		t.Fatalf("%v\n%s", err, answer)
	}
	c.leg.Apply(c.session, netip.Addr{})
}

// key returns the key that decrypts the browser's packets; no key before the handshake.
func (c *webCall) key() *srtp.MasterKey {
	c.leg.in.mu.Lock()
	defer c.leg.in.mu.Unlock()
	if c.leg.in.decryptor == nil {
		return &srtp.MasterKey{}
	}
	k := c.leg.in.decryptor.Key
	return &k
}

// talk checks that both sides hear each other.
func (c *webCall) talk(t testing.TB) {
	t.Helper()
	c.ear.wantTone(t, "the browser", 1000)
	c.phoneEar.wantTone(t, "the phone", 440)
}

// early is how many packets may arrive before our side completes the handshake. The browser sends as soon as its own
// side is complete.
const early = 3

func TestWebRTC_BrowserCalls(t *testing.T) {
	t.Parallel()
	for _, lite := range []bool{false, true} {
		t.Run(fmt.Sprintf("lite %v", lite), func(t *testing.T) {
			t.Parallel()
			eachLoop(t, func(t *testing.T, e *Engine) {
				undisturbed(t, func(t testing.TB) {
					c := newWebCall(t, e, lite)
					c.invite(t, false)
					c.talk(t)
					if st := c.leg.Stats(); st.Unauthenticated > early || st.Lost > early {
						t.Errorf("%+v", st)
					}
				})
			})
		})
	}
}

// No packet of the handshake is lost, because the browser would not repeat it.
func TestWebRTC_BrowserCalled(t *testing.T) {
	t.Parallel()
	for _, lite := range []bool{false, true} {
		t.Run(fmt.Sprintf("lite %v", lite), func(t *testing.T) {
			t.Parallel()
			eachLoop(t, func(t *testing.T, e *Engine) {
				c := newWebCall(t, e, lite)
				c.call(t)
				c.talk(t)
			})
		})
	}
}

func TestWebRTC_HoldResumeAndICERestart(t *testing.T) {
	t.Parallel()
	c := newWebCall(t, testEngine(t, Config{}, newLoop), false)
	c.invite(t, false)
	c.talk(t)
	keys := *c.key()
	held := strings.Replace(string(c.offer(t, false)), "a=sendrecv", "a=sendonly", 1)
	c.admit(t, []byte(held))
	c.leg.in.mu.Lock()
	before := c.leg.in.rx.packets
	c.leg.in.mu.Unlock()
	waitFor(t, "more packets from the browser", func() bool { return c.leg.Stats().Received > before+5 })
	c.invite(t, false)
	c.talk(t)
	c.invite(t, true) // ICE restarts, the keys stay
	c.talk(t)
	ufrag := c.session.Agreement().ICE.RemoteUfrag
	waitFor(t, "the new way selected", func() bool {
		c.leg.in.mu.Lock()
		defer c.leg.in.mu.Unlock()
		return c.leg.in.ice.selected != nil && c.leg.in.ice.params.RemoteUfrag == ufrag
	})
	c.talk(t)
	if *c.key() != keys {
		t.Error("the keys changed")
	}
}

// Media of a peer whose certificate differs from the signalled one is not accepted.
func TestDTLS_ForeignCertificateRefused(t *testing.T) {
	t.Parallel()
	c := newWebCall(t, testEngine(t, Config{}, newLoop), false)
	offer := string(c.offer(t, false))
	at := strings.Index(offer, "a=fingerprint:sha-256 ") + len("a=fingerprint:sha-256 ")
	offer = offer[:at] + sdp.FormatFingerprint(strings.Repeat("x", 32)) + offer[at+95:]
	failed := make(chan struct{})
	fail := sync.OnceFunc(func() { close(failed) })
	c.OnConnectionStateChange(func(s webrtc.PeerConnectionState) {
		if s == webrtc.PeerConnectionStateFailed || s == webrtc.PeerConnectionStateClosed {
			fail()
		}
	})
	c.admit(t, []byte(offer))
	select {
	case <-failed:
	case <-time.After(patience):
		t.Error("the handshake did not fail")
	}
	if st := c.leg.Stats(); st.Received != 0 || c.key().Valid() {
		t.Errorf("%d packets accepted", st.Received)
	}
}

func TestWebRTC_ForeignSourceIgnored(t *testing.T) {
	t.Parallel()
	c := newWebCall(t, testEngine(t, Config{}, newLoop), false)
	c.invite(t, false)
	c.talk(t)
	to, before := c.leg.Stats().Remote, c.leg.Stats().Ignored // late responses to checks are ignored too
	stranger := rawSocket(t, "127.0.0.66")
	var w stun.Writer
	agent := newICEAgent(c.leg, sdp.NewICEParameters())
	w.Begin(stun.Request, stun.TransactionID{1})
	copy(w.Add(stun.Username, 9), "none:none")
	w.Add(stun.UseCandidate, 0)
	for _, b := range [][]byte{
		rtpPacket(1, 1, 1, 0, make([]byte, 160)),
		w.End(agent.localMAC),                           // a check without the password
		{22, 254, 253, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0}, // DTLS
	} {
		_, _ = stranger.WriteToUDPAddrPort(b, c.leg.Local())
	}
	waitFor(t, "all three ignored", func() bool { return c.leg.Stats().Ignored >= before+3 })
	c.talk(t)
	if got := c.leg.Stats().Remote; got != to {
		t.Errorf("media goes to %v, not to %v", got, to)
	}
	_ = stranger.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // the test shows that no packet comes
	if n, err := stranger.Read(make([]byte, 100)); err == nil {
		t.Errorf("the stranger got %d bytes", n)
	}
}
