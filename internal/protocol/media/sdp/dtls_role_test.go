package sdp

import (
	"errors"
	"strings"
	"testing"
)

// webRTCOffer returns an offer of a browser with a DTLS role, a direction and an address.
func webRTCOffer(role, direction, address string, lines ...string) []byte {
	return []byte(strings.Join(append([]string{"v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0",
		"m=audio 9 UDP/TLS/RTP/SAVPF 0", "c=IN IP4 " + address, "a=mid:0", "a=rtpmap:0 PCMU/8000", "a=ice-ufrag:F7gI",
		"a=ice-pwd:x9cml/YzichV2+XlhiMu8gabcd", "a=rtcp-mux", "a=fingerprint:sha-256 " + strings.Repeat("AB:", 31) + "AB", "a=setup:" + role,
		"a=" + direction}, lines...), "\r\n") + "\r\n")
}

func roleOf(body []byte) string {
	_, rest, _ := strings.Cut(string(body), "a=setup:")
	role, _, _ := strings.Cut(rest, "\r\n")
	return role
}

// The DTLS roles of a call stay as they are through offers of both sides, and no answer leaves them open:
// https://github.com/sipwise/rtpengine/issues/43, https://github.com/sipwise/rtpengine/issues/2156,
// https://github.com/sipsorcery-org/sipsorcery/issues/1463. Our own later offers have actpass, which browsers require:
// https://github.com/versatica/JsSIP/issues/311, https://github.com/versatica/JsSIP/issues/223.
func TestDTLSRole_StaysThroughReoffers(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"active", "passive"} { // the browser's role, by its answer to our offer
		s := legWith(WebRTC)
		if got := roleOf(s.Offer(LocalMedia{Formats: StaticG711})); got != "actpass" {
			t.Fatalf("first offer: %s", got)
		}
		if _, err := s.ReceiveAnswer(webRTCOffer(first, "sendrecv", "0.0.0.0")); err != nil {
			t.Fatal(err)
		}
		ours := s.security.agreed.DTLSActive
		for _, direction := range []string{"sendonly", "sendrecv"} { // the browser holds and resumes
			d, err := s.ReceiveOffer(webRTCOffer("actpass", direction, "0.0.0.0"))
			if err != nil {
				t.Fatal(err)
			}
			m, _ := LocalAnswer(d)
			body, err := s.Answer(m)
			want := map[bool]string{true: "active", false: "passive"}[ours]
			if err != nil || roleOf(body) != want || s.security.agreed.DTLSActive != ours {
				t.Errorf("browser %s, %s: answered %s, want %s; %v", first, direction, roleOf(body), want, err)
			}
		}
		if got := roleOf(s.Offer(LocalMedia{Formats: StaticG711})); got != "actpass" {
			t.Errorf("browser %s: our later offer has %s", first, got)
		}
		if _, err := s.ReceiveAnswer(webRTCOffer(first, "sendrecv", "0.0.0.0")); err != nil || s.security.agreed.DTLSActive != ours {
			t.Errorf("browser %s: the role changed by our offer, %v", first, err)
		}
	}
}

// https://github.com/flutter-webrtc/dart-sip-ua/issues/487: a browser's c=0.0.0.0 is no hold by itself.
// https://github.com/ossrs/srs/issues/4722: holdconn is no role (RFC 8842 §5.1); the answer names one.
// https://github.com/livekit/sip/pull/767: an offer without a common codec is 488, and what was agreed stays.
func TestDTLSRole_OffersOfBrowsers(t *testing.T) {
	t.Parallel()
	s := legWith(WebRTC)
	d, err := s.ReceiveOffer(webRTCOffer("actpass", "sendrecv", "0.0.0.0"))
	if err != nil || d.Held() {
		t.Fatalf("held %v, %v", d.Held(), err)
	}
	m, _ := LocalAnswer(d)
	before, err := s.Answer(m)
	if err != nil {
		t.Fatal(err)
	}
	other := strings.Replace(string(webRTCOffer("actpass", "sendrecv", "0.0.0.0")), "SAVPF 0", "SAVPF 18", 1)
	_, err = s.ReceiveOffer([]byte(other))
	if refused := new(Error); !errors.As(err, &refused) || refused.Status != 488 || string(s.LocalBody()) != string(before) {
		t.Errorf("without a common codec: %v", err)
	}
	odd := legWith(WebRTC)
	if d, err = odd.ReceiveOffer(webRTCOffer("holdconn", "sendrecv", "0.0.0.0")); err == nil {
		m, _ = LocalAnswer(d)
		body, _ := odd.Answer(m)
		if r := roleOf(body); r != "active" && r != "passive" {
			t.Errorf("holdconn is answered with %s", r)
		}
	}
}
