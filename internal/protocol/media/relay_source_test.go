package media

import (
	"testing"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/rtp"
)

// Behind one address the source changes or its timestamp goes back. The other phone sees one timeline that never goes back.
// https://github.com/livekit/sip/pull/828, https://github.com/signalwire/freeswitch/issues/2361
func TestRelay_SourceChangesBehindOneAddress(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]rtp.Header{
		"new source, lower numbers": {SSRC: 8, Seq: 12676, TS: 500},
		"timestamp back, marker":    {SSRC: 7, Seq: 21299, TS: 160, Marker: true},
		"timestamp back, no marker": {SSRC: 7, Seq: 21299, TS: 160},
		"numbers back":              {SSRC: 7, Seq: 100, TS: 13440 + 5*160},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := testEngine(t, Config{}, newLoop)
			a, b, phone, sink := openStream(t, e), openStream(t, e), rawSocket(t, "127.0.0.1"), rawSocket(t, "127.0.0.1")
			a.SetRemote(Remote{Addr: addrOf(phone), Formats: g711Formats(codec.PCMU, 101)})
			b.SetRemote(Remote{Addr: addrOf(sink), Formats: g711Formats(codec.PCMU, 101)})
			Bridge(a, b)
			var last rtp.Header
			for i := range 10 {
				h, n := rtp.Header{SSRC: 7, Seq: 21294, TS: 13440}, i
				if i >= 5 {
					h, n = second, i-5
				}
				p := rtpPacket(h.Seq+uint16(n), h.TS+uint32(160*n), h.SSRC, 0, make([]byte, 160))
				if h.Marker && n == 0 {
					p[1] |= 0x80
				}
				if _, err := phone.WriteToUDPAddrPort(p, a.Local()); err != nil {
					t.Fatal(err)
				}
				got := readRTP(t, sink)
				if i > 0 && (got.SSRC != last.SSRC || got.Seq != last.Seq+1 || int32(got.TS-last.TS) < 1 || got.TS-last.TS > 8000) {
					t.Errorf("packet %d: %+v after %+v", i, got, last)
				}
				last = got
			}
		})
	}
}
