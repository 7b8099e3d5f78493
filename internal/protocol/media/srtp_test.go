package media

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	pion "github.com/pion/srtp/v3"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/rtp"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/media/srtp"
)

// securePhone is an independent SRTP implementation at the other end of a leg.
type securePhone struct {
	*net.UDPConn
	leg  *Stream
	send *pion.Context
	recv *pion.Context
}

// newSecurePhone returns a protected leg's phone and the keys of both directions.
func newSecurePhone(t testing.TB, e *Engine, s srtp.Suite) (phone securePhone, ours, theirs srtp.MasterKey) {
	t.Helper()
	ours, theirs = srtp.NewMasterKey(s), srtp.NewMasterKey(s)
	phone = securePhone{UDPConn: rawSocket(t, "127.0.0.1"), leg: openStream(t, e)}
	phone.send, phone.recv = srtpContext(t, theirs), srtpContext(t, ours)
	phone.leg.SetRemote(Remote{Addr: phone.addr(), Formats: g711Formats(codec.PCMU, 101)})
	phone.leg.applySecurity(&sdp.Agreement{Security: sdp.SDESRequired, In: theirs, Out: ours})
	return phone, ours, theirs
}

func srtpContext(t testing.TB, k srtp.MasterKey) *pion.Context {
	t.Helper()
	c, err := k.Context()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (p securePhone) addr() netip.AddrPort { return p.LocalAddr().(*net.UDPAddr).AddrPort() }

func (p securePhone) sealed(t testing.TB, seq uint16, ssrc uint32, payload []byte) []byte {
	t.Helper()
	b, err := p.send.EncryptRTP(nil, rtpPacket(seq, 160*uint32(seq), ssrc, 0, payload), nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// transmit sends to the leg from the phone's address.
func (p securePhone) transmit(t testing.TB, b []byte) {
	t.Helper()
	if _, err := p.WriteToUDPAddrPort(b, p.leg.Local()); err != nil {
		t.Fatal(err)
	}
}

// hear reads the next packet that the leg sends, decrypted.
func (p securePhone) hear(t testing.TB) []byte {
	t.Helper()
	b := make([]byte, maxPacket)
	_ = p.SetReadDeadline(time.Now().Add(patience))
	n, err := p.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.recv.DecryptRTP(nil, b[:n], nil)
	if err != nil {
		t.Fatalf("the phone cannot read what it was sent: %v", err)
	}
	return out
}

// plainPhone returns an unprotected leg and the socket that receives its packets.
func plainPhone(t testing.TB, e *Engine) (*net.UDPConn, *Stream) {
	t.Helper()
	c, leg := rawSocket(t, "127.0.0.1"), openStream(t, e)
	leg.SetRemote(Remote{Addr: c.LocalAddr().(*net.UDPAddr).AddrPort(), Formats: g711Formats(codec.PCMU, 101)})
	return c, leg
}

func TestSRTP_EverySuiteBothWays(t *testing.T) {
	t.Parallel()
	for _, s := range srtp.OfferedSuites {
		t.Run(s.String(), func(t *testing.T) {
			t.Parallel()
			eachLoop(t, func(t *testing.T, e *Engine) {
				phone, _, _ := newSecurePhone(t, e, s)
				plain, other := plainPhone(t, e)
				Bridge(phone.leg, other)
				voice := bytes.Repeat([]byte{0x37}, 160)
				for i := range 20 { // across the roll-over of the sequence number
					phone.transmit(t, phone.sealed(t, uint16(65526+i), 7, voice))
					if got := readPayload(t, plain); !bytes.Equal(got, voice) {
						t.Fatalf("packet %d: the plain side hears %x", i, got)
					}
				}
				reply := bytes.Repeat([]byte{0x51}, 160)
				for i := range 5 {
					_, _ = plain.WriteToUDPAddrPort(rtpPacket(uint16(i), uint32(160*i), 9, 0, reply), other.Local())
					if got := phone.hear(t); !bytes.Equal(got[rtp.HeaderLen:], reply) {
						t.Fatalf("packet %d: the phone hears %x", i, got)
					}
				}
			})
		})
	}
}

func readPayload(t testing.TB, c *net.UDPConn) []byte {
	t.Helper()
	b := make([]byte, maxPacket)
	_ = c.SetReadDeadline(time.Now().Add(patience))
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	_, from, to, _ := rtp.Parse(b[:n])
	return b[from:to]
}

func TestSRTP_OurRollOver(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	phone, _, _ := newSecurePhone(t, e, srtp.AES128SHA80)
	plain, other := plainPhone(t, e)
	Bridge(phone.leg, other)
	phone.leg.out.mu.Lock()
	phone.leg.out.seq = 65530
	phone.leg.out.mu.Unlock()
	for i := range 20 {
		_, _ = plain.WriteToUDPAddrPort(rtpPacket(uint16(i), uint32(160*i), 9, 0, []byte{byte(i)}), other.Local())
		if got := phone.hear(t); got[rtp.HeaderLen] != byte(i) {
			t.Fatalf("packet %d: %x", i, got)
		}
	}
}

func TestSRTP_UnauthenticatedRefused(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	phone, _, theirs := newSecurePhone(t, e, srtp.AES128SHA80)
	plain, other := plainPhone(t, e)
	Bridge(phone.leg, other)
	good := phone.sealed(t, 1, 7, []byte{1, 2, 3})
	foreign := securePhone{UDPConn: phone.UDPConn, leg: phone.leg, send: srtpContext(t, srtp.NewMasterKey(srtp.AES128SHA80))}
	bent := bytes.Clone(phone.sealed(t, 2, 7, []byte{1, 2, 3}))
	bent[14] ^= 1
	for _, b := range [][]byte{
		foreign.sealed(t, 1, 7, []byte{9}),
		rtpPacket(1, 1, 7, 0, []byte{9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9, 9}), // unencrypted
		bent,
		good[:13],
	} {
		phone.transmit(t, b)
	}
	phone.transmit(t, good)
	if got := readPayload(t, plain); !bytes.Equal(got, []byte{1, 2, 3}) {
		t.Errorf("the other leg got %x first", got)
	}
	phone.transmit(t, good) // a replay
	waitFor(t, "all counted", func() bool { return phone.leg.Stats().Unauthenticated == 5 })
	if st := phone.leg.Stats(); st.Received != 1 || other.Stats().Sent != 1 {
		t.Errorf("received %d, relayed %d, want 1 and 1", st.Received, other.Stats().Sent)
	}
	if theirs.Suite != srtp.AES128SHA80 {
		t.Fatal("wrong suite")
	}
}

// Before the key is known no packet is sent, in particular none unencrypted.
func TestSRTP_NothingSentWithoutKey(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	sink, leg := plainPhone(t, e)
	leg.applySecurity(&sdp.Agreement{Security: sdp.WebRTC})
	if err := leg.Send(t.Context(), make([]int16, 800)); err != nil {
		t.Fatal(err)
	}
	_, _ = sink.WriteToUDPAddrPort(rtpPacket(1, 1, 1, 0, make([]byte, 160)), leg.Local())
	waitFor(t, "the packet in the clear counted", func() bool { return leg.Stats().Unauthenticated == 1 })
	leg.Close()
	_ = sink.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // the test shows that no packet comes
	if n, err := sink.Read(make([]byte, 200)); err == nil {
		t.Errorf("%d bytes were sent", n)
	}
}

func TestSRTP_ForeignSourceIgnoredAfterWindow(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{Latch: time.Nanosecond}, newLoop)
	phone, _, _ := newSecurePhone(t, e, srtp.AES128SHA80)
	stranger := rawSocket(t, "127.0.0.66")
	_, _ = stranger.WriteToUDPAddrPort(phone.sealed(t, 1, 7, []byte{1}), phone.leg.Local())
	waitFor(t, "the stranger counted", func() bool { return phone.leg.Stats().Ignored == 1 })
}

// An attacker that sprays packets while the window is open does not take over the leg.
func TestSRTP_SprayDoesNotTakeOverLeg(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	phone, _, _ := newSecurePhone(t, e, srtp.AES128GCM)
	stranger := rawSocket(t, "127.0.0.66")
	_, _ = stranger.WriteToUDPAddrPort(rtpPacket(1, 1, 1, 0, make([]byte, 160)), phone.leg.Local())
	waitFor(t, "the stranger counted", func() bool { return phone.leg.Stats().Unauthenticated == 1 })
	if got := phone.leg.Stats().Remote; got != phone.addr() {
		t.Errorf("media goes to %v", got)
	}
}

func TestSRTP_PhoneBehindNATLearned(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	phone, _, _ := newSecurePhone(t, e, srtp.AES128SHA80)
	phone.leg.SetRemote(Remote{Addr: netip.MustParseAddrPort("192.168.99.99:4000"), Formats: g711Formats(codec.PCMU, 101)})
	phone.transmit(t, phone.sealed(t, 1, 7, []byte{1}))
	waitFor(t, "the source learned", func() bool { return phone.leg.Stats().Remote == phone.addr() })
}

func TestSRTP_RekeyInCall(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	phone, ours, theirs := newSecurePhone(t, e, srtp.AES128SHA80)
	plain, other := plainPhone(t, e)
	Bridge(phone.leg, other)
	say := func(p securePhone, seq uint16, word byte) {
		t.Helper()
		phone.transmit(t, p.sealed(t, seq, 7, []byte{word}))
		if got := readPayload(t, plain); got[0] != word {
			t.Fatalf("heard %x, want %x", got, word)
		}
	}
	say(phone, 65535, 1)
	say(phone, 0, 2) // the phone's roll-over counter is 1 now
	phone.leg.applySecurity(&sdp.Agreement{Security: sdp.SDESRequired, In: theirs, Out: ours})
	say(phone, 1, 3) // the same keys again change nothing
	next := srtp.NewMasterKey(srtp.AES128SHA80)
	phone.leg.applySecurity(&sdp.Agreement{Security: sdp.SDESRequired, In: next, Out: ours})
	say(phone, 2, 4) // in transit when the keys changed
	anew := phone
	anew.send = srtpContext(t, next)
	anew.send.SetROC(7, 1)
	say(anew, 3, 5) // continues its roll-over counter
	last := srtp.NewMasterKey(srtp.AES256GCM)
	phone.leg.applySecurity(&sdp.Agreement{Security: sdp.SDESRequired, In: last, Out: srtp.NewMasterKey(srtp.AES256GCM)})
	anew.send = srtpContext(t, last)
	say(anew, 4, 6) // restarts its roll-over counter
}

func TestSRTCP_ReportsEncrypted(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	phone, _, theirs := newSecurePhone(t, e, srtp.AES128SHA80)
	rtcp := rawSocket(t, "127.0.0.1")
	phone.leg.SetRemote(Remote{Addr: phone.addr(), RTCP: rtcp.LocalAddr().(*net.UDPAddr).AddrPort()})
	report := []byte{0x80, rtcpSR, 0, 6, 0, 0, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	sealed, err := phone.send.EncryptRTCP(nil, report, nil)
	if err != nil {
		t.Fatal(err)
	}
	above := netip.AddrPortFrom(phone.leg.Local().Addr(), phone.leg.Local().Port()+1)
	_, _ = rtcp.WriteToUDPAddrPort(report, above) // unencrypted
	_, _ = rtcp.WriteToUDPAddrPort(sealed, above)
	waitFor(t, "the report read", func() bool {
		phone.leg.in.mu.Lock()
		defer phone.leg.in.mu.Unlock()
		return phone.leg.in.lastSR == 0x03040506 && phone.leg.in.unauthenticated == 1
	})
	if err := phone.leg.Send(t.Context(), make([]int16, 160)); err != nil {
		t.Fatal(err)
	}
	phone.leg.Close()
	bye, err := phone.recv.DecryptRTCP(nil, readRTCP(t, rtcp), nil)
	if err != nil || bye[1] != rtcpSR || bye[len(bye)-7] != rtcpBYE {
		t.Errorf("want a sender report that ends in BYE: %x %v", bye, err)
	}
	if theirs.Suite != srtp.AES128SHA80 {
		t.Fatal("wrong suite")
	}
}

func TestSRTP_SSRCsPerKeyBounded(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	phone, _, _ := newSecurePhone(t, e, srtp.AES128SHA80)
	for i := range uint32(srtp.MaxSSRCs + 10) {
		phone.leg.receive(phone.sealed(t, 1, i, []byte{1}), phone.addr(), e.clock())
	}
	if st := phone.leg.Stats(); st.Received != srtp.MaxSSRCs || st.Unauthenticated != 10 {
		t.Errorf("%+v", st)
	}
}

func TestSRTP_RelayDoesNotAllocate(t *testing.T) {
	e := testEngine(t, Config{}, newLoop) // not parallel: AllocsPerRun counts for the whole process
	for _, s := range srtp.OfferedSuites {
		a, _, _ := newSecurePhone(t, e, s)
		b, _, _ := newSecurePhone(t, e, s)
		Bridge(a.leg, b.leg)
		real, sink := b.leg.rtp, &discardSocket{}
		b.leg.out.mu.Lock()
		b.leg.rtp = sink
		b.leg.out.mu.Unlock()
		var sealed [2001][]byte
		for i := range sealed {
			p := rtpPacket(uint16(i), uint32(160*i), 7, 0, make([]byte, 160))
			p[0] |= 0x10 // with the extension browsers send
			p = append(p[:rtp.HeaderLen], append([]byte{0xBE, 0xDE, 0, 1, 0x10, 0x55, 0, 0}, p[rtp.HeaderLen:]...)...)
			sealed[i], _ = a.send.EncryptRTP(nil, p, nil)
		}
		n, from, now := 0, a.addr(), e.clock()
		if got := testing.AllocsPerRun(2000, func() {
			a.leg.receive(sealed[n], from, now)
			n++
		}); got != 0 && !raceDetector {
			t.Errorf("%v: %v allocations per packet", s, got)
		}
		if sink.sent != 2001 {
			t.Errorf("%v: %d packets were relayed; %+v", s, sink.sent, a.leg.Stats())
		}
		b.leg.rtp = real
	}
}

func TestSRTP_MKI(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	phone, ours, theirs := newSecurePhone(t, e, srtp.AES128SHA80)
	if !theirs.ParseMKI("258:4") || binary.BigEndian.Uint32(theirs.MKI[:]) != 258 {
		t.Fatalf("%+v", theirs.MKI)
	}
	phone.leg.applySecurity(&sdp.Agreement{Security: sdp.SDESRequired, In: theirs, Out: ours})
	phone.send = srtpContext(t, theirs)
	phone.transmit(t, phone.sealed(t, 1, 7, make([]byte, 160)))
	waitFor(t, "the packet accepted", func() bool { return phone.leg.Stats().ReceivedBytes == 160 })
}
