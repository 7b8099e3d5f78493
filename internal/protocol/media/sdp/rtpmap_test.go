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
