package media

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
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

// sealedLog records the encrypted packets of a leg. It fails the test if an index is used for two contents, or if a
// receiver with replay protection refuses a packet.
type sealedLog struct {
	t       testing.TB
	recv    *pion.Context
	highest map[uint32]uint64
	content map[sealedIndex]string
	last    rtp.Header
	sent    int
}

type sealedIndex struct {
	ssrc  uint32
	index uint64
}

func newSealedLog(t testing.TB, k srtp.MasterKey) *sealedLog {
	t.Helper()
	recv, err := k.Context(pion.SRTPReplayProtection(lateWindow))
	if err != nil {
		t.Fatal(err)
	}
	return &sealedLog{t: t, recv: recv, highest: map[uint32]uint64{}, content: map[sealedIndex]string{}}
}

func (l *sealedLog) send(b []byte, _ netip.AddrPort) bool {
	h, _, _, _ := rtp.Parse(b)
	at := sealedIndex{h.SSRC, uint64(h.Seq)}
	if top, ok := l.highest[h.SSRC]; ok {
		at.index = uint64(int64(top) + int64(int16(h.Seq-uint16(top))))
	}
	l.highest[h.SSRC] = max(l.highest[h.SSRC], at.index)
	if was, ok := l.content[at]; ok && was != string(b) {
		l.t.Fatalf("packet %d: index %d of %x is used twice", l.sent, at.index, at.ssrc)
	}
	l.content[at] = string(b)
	if _, err := l.recv.DecryptRTP(nil, b, nil); err != nil {
		l.t.Fatalf("packet %d, index %d of %x: the phone cannot read it: %v", l.sent, at.index, at.ssrc, err)
	}
	l.last = h
	l.sent++
	return true
}

func (l *sealedLog) close() {}

// logSealed replaces the socket of a protected leg by a log, for the time of the test.
func logSealed(t testing.TB, leg *Stream, k srtp.MasterKey) *sealedLog {
	t.Helper()
	l := newSealedLog(t, k)
	leg.out.mu.Lock()
	defer leg.out.mu.Unlock()
	real := leg.rtp
	leg.rtp = l
	t.Cleanup(func() {
		leg.out.mu.Lock()
		defer leg.out.mu.Unlock()
		leg.rtp = real
	})
	return l
}

// https://github.com/cisco/libsrtp/issues/600
// https://github.com/sipwise/rtpengine/issues/1483
func TestSRTP_SourceRestartsItsNumbers(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	for _, back := range []int{1, 2, 20, 63, 64, 200, 1000, 32767, 32768, 40000} {
		for _, sameTime := range []bool{false, true} {
			phone, ours, _ := newSecurePhone(t, e, srtp.AES128SHA80)
			from := openStream(t, e)
			log := logSealed(t, phone.leg, ours)
			say := func(seq uint16, ts uint32, word byte) {
				phone.leg.relay(from, rtp.Header{Seq: seq, TS: ts, SSRC: 7}, rtp.Kind(codec.PCMU), append(make([]byte, rtp.HeaderLen), word), rtp.HeaderLen, rtp.HeaderLen+1, e.clock())
			}
			for i := range 300 {
				say(uint16(65400+i), uint32(160*i), 1)
			}
			before, ts := log.last, uint32(0x40000000)
			if sameTime {
				ts = uint32(160 * (300 - back))
			}
			lost := 0
			for i := range 300 {
				n := log.sent
				say(uint16(65400+300-back+i), ts+uint32(160*i), 2)
				if log.sent == n {
					lost++
				} else if lost == i && (!log.last.Marker || log.last.Seq != before.Seq+1) && back > 3 {
					t.Fatalf("back %d: the first packet is %+v after %+v", back, log.last, before)
				}
			}
			if lost > 3 || lost > 0 && !sameTime {
				t.Errorf("back %d, same time %v: %d packets are missing", back, sameTime, lost)
			}
		}
	}
}

// https://github.com/cisco/libsrtp/issues/424
func TestSRTP_LateAndRepeatedPackets(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	phone, ours, _ := newSecurePhone(t, e, srtp.AES128SHA80)
	from := openStream(t, e)
	log := logSealed(t, phone.leg, ours)
	var got []uint16
	var first uint16
	for i, seq := range []uint16{65533, 65534, 0, 65535, 1, 1, 0, 2, 2, 3, 3, 9, 4, 8, 7} {
		n := log.sent
		phone.leg.relay(from, rtp.Header{Seq: seq, TS: 160 * uint32(int16(seq)+10), SSRC: 7}, rtp.Kind(codec.PCMU),
			append(make([]byte, rtp.HeaderLen), byte(seq)), rtp.HeaderLen, rtp.HeaderLen+1, e.clock())
		if i == 0 {
			first = log.last.Seq
		}
		if log.sent > n {
			got = append(got, log.last.Seq-first+65533)
		}
	}
	if want := []uint16{65533, 65534, 0, 65535, 1, 2, 3, 9, 4, 8, 7}; !slices.Equal(got, want) {
		t.Errorf("sent %v, want %v: late packets keep their numbers, repetitions are not sent", got, want)
	}
}

// No SRTP index is used twice, whatever the sources do with their numbers.
// https://github.com/cisco/libsrtp/issues/600
func TestSRTP_NoIndexTwice(t *testing.T) {
	t.Parallel()
	e := testEngine(t, Config{}, newLoop)
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		phone, ours, theirs := newSecurePhone(t, e, srtp.OfferedSuites[seed%uint64(len(srtp.OfferedSuites))])
		log := logSealed(t, phone.leg, ours)
		sources := []*randomSource{{stream: openStream(t, e)}, {stream: openStream(t, e)}}
		now, from := e.clock(), sources[0]
		for n := range 3000 {
			now += int64(r.IntN(40)) * 1e6
			if r.IntN(200) == 0 {
				from = sources[r.IntN(len(sources))]
			}
			switch r.IntN(300) {
			case 0: // plain RTP for a while, then the same key
				phone.leg.applySecurity(&sdp.Agreement{Security: sdp.SDESRequired, In: theirs, Out: ours})
				phone.leg.applySecurity(&sdp.Agreement{})
				phone.leg.applySecurity(&sdp.Agreement{Security: sdp.SDESRequired, In: theirs, Out: ours})
			case 1, 2, 3:
				phone.leg.sendLocal(rtp.Header{SSRC: 1, TS: uint32(160 * n)}, rtp.Kind(codec.PCMU), append(make([]byte, rtp.HeaderLen), byte(n)), now, fromPlayer)
			default:
				h, k, payload := from.next(r)
				phone.leg.relay(from.stream, h, k, append(make([]byte, rtp.HeaderLen), payload...), rtp.HeaderLen, rtp.HeaderLen+len(payload), now)
			}
		}
		if log.sent < 2000 {
			t.Errorf("seed %d: only %d packets were sent", seed, log.sent)
		}
	}
}

// randomSource is a source of packets that restarts, jumps, repeats and delays them.
type randomSource struct {
	stream *Stream
	h      rtp.Header
	digit  int // packets left of a digit
}

func (s *randomSource) next(r *rand.Rand) (h rtp.Header, k rtp.Kind, payload []byte) {
	s.h.Seq++
	if s.digit == 0 {
		s.h.TS += 160
	}
	switch r.IntN(60) {
	case 0:
		s.h.Seq += uint16(r.Uint32()) // any jump
	case 1:
		s.h.Seq -= uint16(r.IntN(100)) // a small jump back
	case 2:
		s.h.SSRC = r.Uint32N(3)
	case 3:
		s.h.TS = r.Uint32()
	case 4:
		s.digit = 8
	}
	h = s.h
	if back := uint32(r.IntN(400)); back < 40 { // late, or a repetition
		h.Seq -= uint16(back)
		h.TS -= 160 * back
	}
	k, payload = rtp.Kind(codec.PCMU), []byte{byte(r.Uint32()), byte(r.Uint32()), byte(r.Uint32()), 0, 0}
	switch {
	case s.digit > 0:
		s.digit--
		k = rtp.KindEvent
		if r.IntN(2) == 0 {
			k = rtp.KindEventOpus // the leg takes none: it is converted
		}
	case r.IntN(10) == 0:
		k = rtp.Kind(codec.PCMA)
	}
	return h, k, payload
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
