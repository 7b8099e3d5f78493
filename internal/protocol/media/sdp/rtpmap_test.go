package sdp

import (
	"testing"

	"soniq/internal/protocol/media/mediatest"
)

// TestParseOffer_RtpmapOfStaticTypes covers offers that give static payload types another encoding (RFC 3551 §3: a
// binding by rtpmap has precedence).
func TestParseOffer_RtpmapOfStaticTypes(t *testing.T) {
	d, err := ParseOffer(mediatest.PhoneOffer("m=audio 4000 RTP/AVP 12 13 16 99", "a=rtpmap:12 G722/8000", "a=rtpmap:13 PCMU/8000",
		"a=rtpmap:16 PCMA/8000", "a=rtpmap:99 telephone-event/8000"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := LocalAnswer(d)
	if err != nil || len(m.Formats) != 2 || m.Formats[0] != (Format{PT: 12, Name: "G722", Rate: 8000}) {
		t.Errorf("answer %+v, err %v", m.Formats, err)
	}
}

// TestParseOffer_RtpmapFaults covers rtpmap lines that phones and carriers get wrong:
// https://github.com/emiago/diago/issues/158 (the clock of G.722), https://github.com/clux/sdp-transform/issues/30 (no clock),
// https://github.com/pjsip/pjproject/issues/2675 (one payload type with two clocks).
func TestParseOffer_RtpmapFaults(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lines []string
		want  string
	}{
		{[]string{"m=audio 4000 RTP/AVP 9", "a=rtpmap:9 G722/16000"}, "G722/009"},
		{[]string{"m=audio 4000 RTP/AVP 9"}, "G722/009"},
		{[]string{"m=audio 4000 RTP/AVP 96 0 101", "a=rtpmap:96 AppleLossless", "a=rtpmap:101 telephone-event"}, "PCMU/000"},
		{[]string{"m=audio 4000 RTP/AVP 0", "a=rtpmap:0 PCMU"}, "PCMU/000"},
		{[]string{"m=audio 4000 RTP/AVP 0", "a=rtpmap:999 H264/90000", "a=rtpmap:8PCMA/8000"}, "PCMU/000"},
		{[]string{"m=audio 7882 RTP/AVP 8 101 101", "a=rtpmap:8 PCMA/8000", "a=rtpmap:101 telephone-event/16000",
			"a=rtpmap:101 telephone-event/8000"}, "PCMA/008 telephone-event/101"},
		{[]string{"m=audio 7882 RTP/AVP 8 101 101", "a=rtpmap:101 telephone-event/8000", "a=rtpmap:101 telephone-event/16000"},
			"PCMA/008 telephone-event/101"},
	} {
		d, err := ParseOffer(mediatest.PhoneOffer(c.lines...))
		if err != nil {
			t.Errorf("%v: %v", c.lines, err)
			continue
		}
		m, err := LocalAnswer(d)
		if err != nil || formatNames(m.Formats) != c.want {
			t.Errorf("%v: answered %q, %v; want %q", c.lines, formatNames(m.Formats), err, c.want)
		}
	}
}

func TestParseOffer_SpaceBehindAttributes(t *testing.T) {
	t.Parallel()
	d, err := ParseOffer(mediatest.PhoneOffer("m=audio 4000 RTP/AVP 0", "a=sendonly "))
	if err != nil || !d.Held() {
		t.Errorf("held %v, %v", d.Held(), err)
	}
}
