package rtp

import "testing"

// eventPacket is one packet of an RFC 4733 event.
type eventPacket struct {
	ts, duration int
	marker, end  bool
	code         byte
	ssrc         uint32
}

// https://github.com/unispeech/asterisk-unimrcp/issues/44
func TestHeldKey_SegmentsAreOneKey(t *testing.T) {
	t.Parallel()
	const long = LongestSegment
	for name, c := range map[string]struct {
		packets []eventPacket
		keys    int
		before  uint32 // of the last key
	}{
		"one segment": {[]eventPacket{{ts: 1000, duration: 160, marker: true}, {ts: 1000, duration: 320},
			{ts: 1000, duration: 400, end: true}}, 1, 0},
		"two segments": {[]eventPacket{{ts: 1000, duration: 160, marker: true}, {ts: 1000, duration: long},
			{ts: 1000 + long, duration: 160}, {ts: 1000 + long, duration: 320, end: true},
			{ts: 1000 + long, duration: 320, end: true}}, 1, long},
		"three segments": {[]eventPacket{{ts: 1000, duration: long, marker: true}, {ts: 1000 + long, duration: long},
			{ts: 1000 + 2*long, duration: 1}}, 1, 2 * long},
		"over the end of the timeline": {[]eventPacket{{ts: 0xFFFFFF00, duration: long}, {ts: 0xFFFFFF00 + long, duration: 1}}, 1, long},
		"the full packet was lost":     {[]eventPacket{{ts: 1000, duration: long - 200}, {ts: 1000 + long, duration: 160}}, 1, long},
		"segments of a shorter limit":  {[]eventPacket{{ts: 1000, duration: 65440}, {ts: 66440, duration: 160}}, 1, 65440},
		"the full packet was overtaken": {[]eventPacket{{ts: 1000, duration: long}, {ts: 1000, duration: long - 100},
			{ts: 1000 + long + 7, duration: 160}}, 1, long + 7},
		"the same key again":      {[]eventPacket{{ts: 1000, duration: 800, end: true}, {ts: 3000, duration: 160, marker: true}}, 2, 0},
		"again, marker lost":      {[]eventPacket{{ts: 1000, duration: 800, end: true}, {ts: 3000, duration: 160}}, 2, 0},
		"again, end lost":         {[]eventPacket{{ts: 1000, duration: 800}, {ts: 3000, duration: 160}}, 2, 0},
		"again at once":           {[]eventPacket{{ts: 1000, duration: 800}, {ts: 1800, duration: 160}}, 2, 0},
		"again after a long one":  {[]eventPacket{{ts: 1000, duration: long}, {ts: 1000 + long, duration: 160, marker: true}}, 2, 0},
		"again after a full end":  {[]eventPacket{{ts: 1000, duration: long, end: true}, {ts: 1000 + long, duration: 160}}, 2, 0},
		"another key":             {[]eventPacket{{ts: 1000, duration: long}, {ts: 1000 + long, duration: 160, code: 1}}, 2, 0},
		"another source":          {[]eventPacket{{ts: 1000, duration: long}, {ts: 1000 + long, duration: 160, ssrc: 9}}, 2, 0},
		"a key at timestamp zero": {[]eventPacket{{ts: 0, duration: 160}, {ts: 0, duration: 320}}, 1, 0},
	} {
		var k HeldKey
		keys := 0
		for _, p := range c.packets {
			flags := byte(10)
			if p.end {
				flags |= 0x80
			}
			payload := []byte{p.code, flags, byte(p.duration >> 8), byte(p.duration)}
			if k.Follow(Header{Marker: p.marker, TS: uint32(p.ts), SSRC: p.ssrc}, payload) {
				keys++
			}
		}
		if keys != c.keys || k.Before != c.before {
			t.Errorf("%s: %d keys, %d before the last segment; want %d, %d", name, keys, k.Before, c.keys, c.before)
		}
	}
}
