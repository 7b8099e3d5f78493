package sdp

import (
	"strings"
	"testing"

	"soniq/internal/protocol/media/mediatest"
)

// TestParseOffer_LinesOfReports proves that SDP is read with LF as its line end, with c= only behind m=, with empty lines, and with
// attributes of any name. Each body is read with CRLF and with LF, and with empty lines at its end.
// https://github.com/DoubangoTelecom/webrtc2sip/issues/147
// https://github.com/BelledonneCommunications/linphone-desktop/issues/7
// https://github.com/sipcapture/captagent/issues/4
// https://github.com/pjsip/pjproject/issues/666
// https://github.com/pjsip/pjproject/issues/926
// https://github.com/RestComm/media-core/issues/435
func TestParseOffer_LinesOfReports(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		lines  []string
		addr   string
		answer string // the m= line of the audio and its direction
	}{
		"c= behind m=": {[]string{"v=0", "o=Sippy 268090472 0 IN IP4 208.65.240.142", "s=-", "t=0 0", "m=audio 38040 RTP/AVP 0",
			"c=IN IP4 208.65.240.142"}, "208.65.240.142:38040", "m=audio 20000 RTP/AVP 0 a=sendrecv"},
		"c= behind the attributes of m=": {[]string{"v=0", "o=a 1 1 IN IP4 192.0.2.1", "s=-", "t=0 0", "m=audio 4000 RTP/AVP 8", "a=sendrecv",
			"a=rtpmap:8 PCMA/8000", "c=IN IP4 192.0.2.2"}, "192.0.2.2:4000", "m=audio 20000 RTP/AVP 8 a=sendrecv"},
		"one c= for each m=": {[]string{"v=0", "o=a 1 1 IN IP4 192.0.2.1", "s=-", "c=IN IP4 192.0.2.1", "t=0 0", "m=video 5000 RTP/AVP 96",
			"c=IN IP4 192.0.2.3", "m=audio 4000 RTP/AVP 0", "c=IN IP4 192.0.2.2"}, "192.0.2.2:4000", "m=audio 20000 RTP/AVP 0 a=sendrecv"},
		"b= behind the attributes": {[]string{"v=0", "o=FreeSWITCH 1468325773 1468325775 IN IP4 104.197.230.189", "s=FreeSWITCH",
			"c=IN IP4 104.197.230.189", "t=0 0", "m=audio 11366 RTP/AVP 9 101", "a=rtpmap:9 G722/8000", "a=rtpmap:101 telephone-event/8000",
			"a=fmtp:101 0-16", "a=ptime:20", "a=recvonly", "a=rtcp:11367", "m=video 11406 RTP/AVP 102", "a=rtpmap:102 H264/90000",
			"a=fmtp:102 profile-level-id=42801F;packetization-mode=1", "b=AS:1024", "a=rtcp-fb:102 ccm fir", "a=rtcp-fb:102 nack pli",
			"a=recvonly", "a=rtcp:11407"}, "104.197.230.189:11366", "m=audio 20000 RTP/AVP 9 101 a=sendonly"},
		"odd attributes": {[]string{"v=0", "o=a 1 1 IN IP4 192.0.2.1", "s=-", "i=", "c=IN IP4 192.0.2.1", "b=TIAS:64000", "t=0 0",
			"a=+g.poc.talkburst", "m=audio 4000 RTP/AVP 0", "a=+g.poc.talkburst", "a=ssrc:1308456296", "a=", "a=:", "a=X-nat:0 ",
			"a=silenceSupp:off - - - -"}, "192.0.2.1:4000", "m=audio 20000 RTP/AVP 0 a=sendrecv"},
		"an empty line in the middle": {[]string{"v=0", "o=a 1 1 IN IP4 192.0.2.1", "s=-", "c=IN IP4 192.0.2.1", "t=0 0",
			"m=audio 4000 RTP/AVP 8", "", "a=sendonly"}, "192.0.2.1:4000", "m=audio 20000 RTP/AVP 8 a=recvonly"},
	} {
		body := string(mediatest.SDPBody(c.lines...))
		for _, body := range []string{body, strings.ReplaceAll(body, "\r\n", "\n"), strings.TrimSpace(body), body + "\r\n\r\n", body + "\n\n\r\n"} {
			s := NewSession(legAddr)
			d, err := s.ReceiveOffer([]byte(body))
			if err != nil || d.Addr.String() != c.addr {
				t.Errorf("%s: %v, %v\n%q", name, d.Addr, err, body)
				continue
			}
			m, _ := LocalAnswer(d)
			answer, err := s.Answer(m)
			got := "\r\n" + string(answer)
			for line := range strings.SplitSeq(strings.Replace(c.answer, " a=", "\r\na=", 1), "\r\n") {
				if err != nil || !strings.Contains(got, "\r\n"+line+"\r\n") {
					t.Errorf("%s: answered without %s, %v:\n%s", name, line, err, got)
				}
			}
		}
	}
}
