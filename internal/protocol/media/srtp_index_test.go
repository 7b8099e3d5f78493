package media

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"

	pion "github.com/pion/srtp/v3"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/rtp"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/protocol/media/srtp"
)

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
				phone.leg.relay(from, rtp.Header{Seq: seq, TS: ts, SSRC: 7}, rtp.Kind(codec.PCMU),
					append(make([]byte, rtp.HeaderLen), word), rtp.HeaderLen, rtp.HeaderLen+1, e.clock())
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
				phone.leg.sendLocal(rtp.Header{SSRC: 1, TS: uint32(160 * n)}, rtp.Kind(codec.PCMU),
					append(make([]byte, rtp.HeaderLen), byte(n)), now, fromPlayer)
			default:
				h, k, payload := from.next(r)
				phone.leg.relay(from.stream, h, k, append(make([]byte, rtp.HeaderLen), payload...), rtp.HeaderLen,
					rtp.HeaderLen+len(payload), now)
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
