package mediatest

import "strings"

// SDPBody returns an SDP body with these lines.
func SDPBody(lines ...string) []byte { return []byte(strings.Join(lines, "\r\n") + "\r\n") }

// PhoneOffer returns the body of a telephone with these lines after those of the session.
func PhoneOffer(lines ...string) []byte {
	return SDPBody(append([]string{"v=0", "o=alice 1 1 IN IP4 192.0.2.1", "s=-", "c=IN IP4 192.0.2.1", "t=0 0"}, lines...)...)
}

// BrowserAnswer returns the answer of a browser to an offer with DTLS and ICE.
func BrowserAnswer() []byte {
	return PhoneOffer("m=audio 9 UDP/TLS/RTP/SAVPF 0", "a=mid:0", "a=rtcp-mux", "a=setup:active",
		"a=ice-ufrag:them", "a=ice-pwd:theirPasswordIsLongEnough", "a=fingerprint:sha-256 "+strings.Repeat(":78", 32)[1:],
		"a=candidate:1 1 udp 1 127.0.0.1 9 typ host")
}
