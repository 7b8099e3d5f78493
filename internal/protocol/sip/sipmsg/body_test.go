package sipmsg

import (
	"net/netip"
	"strconv"
	"strings"
	"testing"
)

const testSDP = "v=0\r\no=a 1 1 IN IP4 192.0.2.1\r\n"

// bodyTestMessage returns a message with fields and a body, read as received.
func bodyTestMessage(t *testing.T, start, fields, body string) *Message {
	t.Helper()
	method := "INVITE"
	if !strings.HasPrefix(start, "SIP/") {
		method, _, _ = strings.Cut(start, " ")
	}
	raw := start + "\r\nVia: SIP/2.0/UDP 192.0.2.1;branch=z9hG4bK1\r\nFrom: <sip:a@x>;tag=1\r\nTo: <sip:b@x>\r\nCall-ID: 1\r\nCSeq: 1 " + method +
		"\r\nMax-Forwards: 70\r\nContact: <sip:a@x>\r\n" + fields + "Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body
	m := &Message{}
	if err := m.Parse(raw, netip.AddrPort{}); err != nil {
		t.Fatal(err)
	}
	if r := m.ReadMandatory(); r != nil {
		t.Fatal(r)
	}
	return m
}

// multipartBody returns parts, each with its header lines, separated by the boundary x.
func multipartBody(parts ...string) string {
	return "--x\r\n" + strings.Join(parts, "\r\n--x\r\n") + "\r\n--x--\r\n"
}

// https://github.com/signalwire/freeswitch/issues/1816
// https://github.com/signalwire/freeswitch/issues/1536
func TestSDP_PartOfMultipartBody(t *testing.T) {
	t.Parallel()
	const mixed = "Content-Type: multipart/mixed;boundary=x\r\n"
	const sdp = "Content-Type: application/sdp\r\n\r\n" + testSDP
	const isup = "Content-Type: application/isup; version=itu-t92+\r\nContent-Disposition: signal; handling=optional\r\n\r\n\x01\x00\xff"
	const unknown = "Content-Type: application/x-unknown\r\n"
	text := strings.TrimSuffix(testSDP, "\r\n") // the line end before a boundary belongs to it
	for name, c := range map[string]struct {
		fields, body string
		want         string
		status       int // of the refusal of a request
	}{
		"SDP alone":            {"Content-Type: application/sdp\r\n", testSDP, testSDP, 0},
		"SDP without a type":   {"", testSDP, testSDP, 0},
		"SDP with a charset":   {"c: Application/SDP ;charset=utf-8\r\n", testSDP, testSDP, 0},
		"no body":              {"", "", "", 0},
		"ISUP behind":          {mixed, multipartBody(sdp, isup), testSDP, 0},
		"ISUP before":          {mixed, multipartBody(isup, sdp), testSDP, 0},
		"quoted boundary":      {"Content-Type: Multipart/Mixed ; boundary=\"x\"\r\n", multipartBody(isup, sdp), testSDP, 0},
		"preamble and epilog":  {mixed, "hello\r\n" + multipartBody(sdp) + "bye\r\n", testSDP, 0},
		"no last boundary":     {mixed, strings.TrimSuffix(multipartBody(sdp), "\r\n--x--\r\n"), testSDP, 0},
		"session disposition":  {mixed, multipartBody("Content-Disposition: session; handling=required\r\n"+sdp, isup), testSDP, 0},
		"location, referenced": {mixed, multipartBody(sdp, "Content-Type: application/pidf+xml\r\nContent-ID: <a@b>\r\n\r\n<presence/>"), testSDP, 0},
		"location, bare":       {mixed, multipartBody("Content-Type: application/pidf+xml\r\n\r\n<presence/>", sdp), testSDP, 0},
		"by reference":         {mixed, multipartBody(sdp, unknown+"Content-Disposition: by-reference\r\n\r\n1"), testSDP, 0},
		"unknown, optional":    {mixed, multipartBody(unknown+"Content-Disposition: render;handling=OPTIONAL\r\n\r\n1", sdp), testSDP, 0},
		"unknown":              {mixed, multipartBody(unknown+"\r\n1", sdp), testSDP, 415},
		"unknown, required":    {mixed, multipartBody(sdp, unknown+"Content-Disposition: signal;handling=required\r\n\r\n1"), testSDP, 415},
		"ISUP, required":       {mixed, multipartBody(sdp, strings.Replace(isup, "optional", "required", 1)), testSDP, 415},
		"a part without type":  {mixed, multipartBody("\r\nhello", sdp), testSDP, 415},
		"a compressed part":    {mixed, multipartBody("Content-Encoding: gzip\r\n" + sdp), "", 415},
		"base64":               {mixed, multipartBody("Content-Type: application/sdp\r\nContent-Transfer-Encoding: base64\r\n\r\ndj0w\r\nDQo="), "v=0\r\n", 0},
		"damaged base64":       {mixed, multipartBody("Content-Type: application/sdp\r\nContent-Transfer-Encoding: base64\r\n\r\n!"), "", 400},
		"two descriptions":     {mixed, multipartBody(sdp, "Content-Type: application/sdp\r\n\r\nv=1"), testSDP, 0},
		"an early session":     {mixed, multipartBody("Content-Disposition: early-session;handling=optional\r\nContent-Type: application/sdp\r\n\r\nv=1", sdp), testSDP, 0},
		"nested":               {mixed, multipartBody(isup, "Content-Type: multipart/mixed;boundary=y\r\n\r\n--y\r\n"+sdp+"\r\n--y--"), testSDP, 0},
		"alternatives":         {"Content-Type: multipart/alternative;boundary=x\r\n", multipartBody("Content-Type: application/sdp\r\n\r\nv=1", unknown+"\r\n1", sdp), testSDP, 0},
		"related":              {"Content-Type: multipart/related;boundary=x\r\n", multipartBody(sdp, unknown+"\r\n1"), testSDP, 0},
		"no boundary":          {"Content-Type: multipart/mixed\r\n", multipartBody(sdp), "", 400},
		"no part":              {mixed, "hello", "", 400},
		"only ISUP":            {mixed, multipartBody(isup), "", 0},
		"another type":         {"Content-Type: text/plain\r\n", "hello", "", 415},
		"an optional body":     {"Content-Type: text/plain\r\nContent-Disposition: render;handling=optional\r\n", "hello", "", 0},
		"a compressed body":    {"Content-Type: application/sdp\r\nContent-Encoding: gzip\r\n", "\x1f\x8b", "", 415},
	} {
		want := c.want
		if want == testSDP && strings.Contains(strings.ToLower(c.fields), "multipart") {
			want = text
		}
		for _, start := range []string{"INVITE sip:b@x SIP/2.0", "UPDATE sip:b@x SIP/2.0", "PRACK sip:b@x SIP/2.0", "ACK sip:b@x SIP/2.0", "SIP/2.0 200 OK", "SIP/2.0 183 x"} {
			m := bodyTestMessage(t, start, c.fields, c.body)
			if got := m.SDP(); strings.TrimSuffix(got, "\r\n") != strings.TrimSuffix(want, "\r\n") {
				t.Errorf("%s in %s: %q, want %q", name, start, got, want)
			}
			status := 0
			if r := m.checkBody(); r != nil {
				status = r.Status
			}
			if refusable := m.Status == 0 && m.Method != "ACK"; refusable && status != c.status || !refusable && status != 0 {
				t.Errorf("%s in %s: refused with %d, want %d", name, start, status, c.status)
			}
		}
	}
}

// An offer with the caller's location, as we send it, can be read.
func TestSDP_OwnLocationBody(t *testing.T) {
	t.Parallel()
	contentType, body, _ := WithLocation([]byte(testSDP), []byte("<presence/>"), "")
	m := bodyTestMessage(t, "INVITE sip:b@x SIP/2.0", "Content-Type: "+contentType+"\r\n", string(body))
	if r := m.Validate("INVITE"); r != nil || m.SDP() != testSDP {
		t.Errorf("refused %+v, read %q", r, m.SDP())
	}
}

// Parts inside parts do not take more than a bounded time.
func TestSDP_DeepNesting(t *testing.T) {
	t.Parallel()
	body := "Content-Type: application/sdp\r\n\r\nv=0"
	for range 50 {
		body = "Content-Type: multipart/mixed;boundary=x\r\n\r\n" + multipartBody(body)
	}
	m := bodyTestMessage(t, "INVITE sip:b@x SIP/2.0", "Content-Type: multipart/mixed;boundary=x\r\n", multipartBody(body))
	if m.SDP() != "" || m.checkBody() == nil {
		t.Error("accepted")
	}
}
