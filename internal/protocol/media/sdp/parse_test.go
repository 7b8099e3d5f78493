package sdp

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/mediatest"
)

var legAddr = netip.MustParseAddrPort("198.51.100.7:20000")

func formatNames(fs []Format) (out string) {
	for _, f := range fs {
		out += " " + f.Name + "/" + string(rune('0'+f.PT/100)) + string(rune('0'+f.PT/10%10)) + string(rune('0'+f.PT%10))
	}
	return strings.TrimSpace(out)
}

func TestParseOffer_BadBodyStatus(t *testing.T) {
	t.Parallel()
	const audio = "m=audio 4000 RTP/AVP 0"
	for name, c := range map[string]struct {
		body   []byte
		status int
	}{
		"empty":            {nil, 400},
		"text":             {[]byte("hello"), 400},
		"no version":       {mediatest.SDPBody("o=a 1 1 IN IP4 192.0.2.1", "c=IN IP4 192.0.2.1", audio), 400},
		"no origin":        {mediatest.SDPBody("v=0", "c=IN IP4 192.0.2.1", audio), 400},
		"no connection":    {mediatest.SDPBody("v=0", "o=a 1 1 IN IP4 192.0.2.1", audio), 400},
		"bad connection":   {mediatest.SDPBody("v=0", "o=a 1 1 IN IP4 192.0.2.1", "c=IN IP5 x", audio), 400},
		"port too big":     {mediatest.PhoneOffer("m=audio 70000 RTP/AVP 0"), 400},
		"too long":         {append(mediatest.PhoneOffer(audio), make([]byte, maxBody)...), 400},
		"many lines":       {mediatest.PhoneOffer(strings.Split(strings.Repeat(audio+"\n", 17), "\n")[:17]...), 400},
		"injected format":  {mediatest.PhoneOffer("m=audio 4000 RTP/AVP 0\ra=x"), 400},
		"only G.729":       {mediatest.PhoneOffer("m=audio 4000 RTP/AVP 18"), 488},
		"slow opus":        {mediatest.PhoneOffer("m=audio 4000 RTP/AVP 111", "a=rtpmap:111 opus/8000/2"), 488},
		"only events":      {mediatest.PhoneOffer("m=audio 4000 RTP/AVP 101", "a=rtpmap:101 telephone-event/8000"), 488},
		"wideband PCMU":    {mediatest.PhoneOffer("m=audio 4000 RTP/AVP 96", "a=rtpmap:96 PCMU/16000"), 488},
		"only video":       {mediatest.PhoneOffer("m=video 4000 RTP/AVP 34"), 488},
		"secure only":      {mediatest.PhoneOffer("m=audio 4000 RTP/SAVP 0"), 488},
		"audio disabled":   {mediatest.PhoneOffer("m=audio 0 RTP/AVP 0"), 488},
		"multicast":        {mediatest.SDPBody("v=0", "o=a 1 1 IN IP4 192.0.2.1", "c=IN IP4 239.1.1.1/127", audio), 488},
		"no media at all":  {mediatest.PhoneOffer(), 488},
		"two version line": {mediatest.PhoneOffer("v=0", audio), 400},
	} {
		_, err := ParseOffer(c.body)
		var se *Error
		if !errors.As(err, &se) || se.Status != c.status {
			t.Errorf("%s: got %v, want %d", name, err, c.status)
		}
	}
}

// Own trial beside https://github.com/pjsip/pjproject/issues/480: a fault in a section that is refused refuses only that.
func TestParseOffer_FaultsOfRefusedSections(t *testing.T) {
	t.Parallel()
	const audio = "m=audio 4000 RTP/AVP 0"
	for name, c := range map[string]struct {
		lines   []string
		refused string // its line in the answer
	}{
		"a bad rtpmap":      {[]string{"m=video 5000 RTP/AVP 96", "a=rtpmap:96"}, "m=video 0 RTP/AVP 96"},
		"a bad rtpmap, off": {[]string{"m=video 0 RTP/AVP 96", "a=rtpmap:999 H264/90000"}, "m=video 0 RTP/AVP 96"},
		"a bad connection":  {[]string{"m=video 5000 RTP/AVP 96", "c=IN IP5 x"}, "m=video 0 RTP/AVP 96"},
		"multicast":         {[]string{"m=video 5000 RTP/AVP 96", "c=IN IP4 239.1.1.1/127"}, "m=video 0 RTP/AVP 96"},
		"no attribute":      {[]string{"m=image 5000 udptl t38", "hello"}, "m=image 0 udptl t38"},
		"a second origin":   {[]string{"m=video 5000 RTP/AVP 96", "o=x"}, "m=video 0 RTP/AVP 96"},
		"a bad port":        {[]string{"m=video 70000 RTP/AVP 96"}, "m=video 0 RTP/AVP 0"},
		"no port":           {[]string{"m=video"}, "m=video 0 RTP/AVP 0"},
		"no protocol":       {[]string{"m=video 0"}, "m=video 0 RTP/AVP 0"},
		"no formats":        {[]string{"m=message 2855 TCP/MSRP"}, "m=message 0 TCP/MSRP 0"},
		"a bad format":      {[]string{"m=video 0 RTP/AVP (96"}, "m=video 0 RTP/AVP (96"},
		"a bad protocol":    {[]string{"m=video 0 RTP@AVP 96"}, "m=video 0 RTP@AVP 96"},
		"many formats":      {[]string{"m=video 5000 RTP/AVP" + strings.Repeat(" 96", maxFormats+1)}, "m=video 0 RTP/AVP 0"},
		// https://github.com/sipwise/rtpengine/issues/2122
		"a format out of range": {[]string{"m=video 0 RTP/AVP 255", "c=IN IP4 192.0.2.1"}, "m=video 0 RTP/AVP 255"},
		"audio off":             {[]string{"m=audio 0 RTP/AVP 8", "a=rtpmap:x", "c=x"}, "m=audio 0 RTP/AVP 8"},
		"audio with a fault":    {[]string{"m=audio 6000 RTP/AVP 96", "a=rtpmap:96"}, "m=audio 0 RTP/AVP 96"},
		"audio we cannot use":   {[]string{"m=audio 6000 RTP/SAVP 0", "a=rtpmap:x", "c=IN IP4"}, "m=audio 0 RTP/SAVP 0"},
	} {
		for _, order := range [][]string{append([]string{audio}, c.lines...), append(c.lines[:len(c.lines):len(c.lines)], audio)} {
			s := NewSession(legAddr)
			d, err := s.ReceiveOffer(mediatest.PhoneOffer(order...))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			m, _ := LocalAnswer(d)
			answer, err := s.Answer(m)
			if got := "\r\n" + string(answer); err != nil || d.Addr.Port() != 4000 || !strings.Contains(got, "\r\n"+c.refused+"\r\n") ||
				!strings.Contains(got, "\r\nm=audio 20000 RTP/AVP 0\r\n") || strings.Count(got, "\r\nm=") != 2 {
				t.Errorf("%s: %v, answered\n%s", name, err, got)
			}
		}
	}
	// A faulty connection of the session matters only if the audio has none of its own.
	top := []string{"v=0", "o=a 1 1 IN IP4 192.0.2.1", "s=-", "c=IN IP4 239.1.1.1/127", "t=0 0", audio}
	if _, err := ParseOffer(mediatest.SDPBody(append(top, "c=IN IP4 192.0.2.1")...)); err != nil {
		t.Errorf("the audio has its own address: %v", err)
	}
	if _, err := ParseOffer(mediatest.SDPBody(top...)); err == nil {
		t.Error("multicast audio is accepted")
	}
}

func TestParseOffer_Fields(t *testing.T) {
	t.Parallel()
	d, err := ParseOffer(mediatest.SDPBody("v=0", "o=- 20518 99999999999999999999999 IN IP6 2001:db8::1", "s=", "c=IN IP6 2001:db8::1", "t=0 0",
		"a=recvonly", "m=video 5000 RTP/AVP 96", "m=audio 4000 RTP/AVP 8 0 18 9 97 110", "c=IN IP6 2001:db8::2",
		"a=rtpmap:97 Telephone-Event/8000", "a=fmtp:97 0-16,66", "a=rtpmap:110 telephone-event/48000", "a=ptime:30.0", "a=sendonly",
		"a=rtcp:4009 IN IP6 2001:db8::3"))
	if err != nil {
		t.Fatal(err)
	}
	if d.Addr.String() != "[2001:db8::2]:4000" || d.RTCP.String() != "[2001:db8::3]:4009" {
		t.Errorf("addresses %v %v", d.Addr, d.RTCP)
	}
	if d.Direction != SendOnly || !d.Held() || d.Ptime != 30 {
		t.Errorf("%v, ptime %d", d.Direction, d.Ptime)
	}
	toOther := RelayedOffer(d).Formats
	if got, want := formatNames(toOther), "PCMA/008 PCMU/000 G722/009 "; !strings.HasPrefix(got, want) {
		t.Errorf("offer to the other leg %q, want %q", got, want)
	}
	if e, ok := findFormat(toOther, Format{Name: TelephoneEvent, Rate: 8000}); !ok || e.PT != 97 || e.Param != "0-16,66" {
		t.Errorf("events %+v", e)
	}
}

func TestParseOffer_BareNewlinesAndHostNames(t *testing.T) {
	t.Parallel()
	d, err := ParseOffer([]byte("v=0\no=a 1 1 IN IP4 phone.example\ns=-\nc=IN IP4 phone.example\nt=0 0\nm=audio 4000 RTP/AVP 0"))
	if err != nil || d.Addr.Addr().IsValid() || d.Addr.Port() != 4000 {
		t.Errorf("%v %v", d.Addr, err)
	}
}

func TestSession_HoldDirections(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		offer, conn, answer string
		held                bool
	}{
		{"sendrecv", "192.0.2.1", "sendrecv", false},
		{"sendonly", "192.0.2.1", "recvonly", true},
		{"recvonly", "192.0.2.1", "sendonly", false},
		{"inactive", "192.0.2.1", "inactive", true},
		{"sendrecv", "0.0.0.0", "recvonly", true},
		{"recvonly", "0.0.0.0", "inactive", true},
	} {
		s := NewSession(legAddr)
		d, err := s.ReceiveOffer(mediatest.SDPBody("v=0", "o=a 1 1 IN IP4 192.0.2.1", "s=-", "c=IN IP4 "+c.conn, "t=0 0", "m=audio 4000 RTP/AVP 0", "a="+c.offer))
		if err != nil {
			t.Fatal(err)
		}
		m, _ := LocalAnswer(d)
		m.Direction = SendRecv // Answer must narrow it
		body, err := s.Answer(m)
		if err != nil || !strings.Contains(string(body), "a="+c.answer+"\r\n") {
			t.Errorf("%s from %s: want %s in\n%s", c.offer, c.conn, c.answer, body)
		}
		if d.Held() != c.held {
			t.Errorf("%s from %s: held %v", c.offer, c.conn, d.Held())
		}
	}
}

// A complete exchange through both legs: the callee answers with other payload types and a subset. The caller gets
// its own types back and its video refused.
func TestSession_RelayedOfferAndAnswer(t *testing.T) {
	t.Parallel()
	a, b := NewSession(legAddr), NewSession(netip.MustParseAddrPort("198.51.100.7:20002"))
	offer, err := a.ReceiveOffer(mediatest.PhoneOffer("m=audio 4000 RTP/AVP 111 8 0 101", "a=rtpmap:111 opus/48000/2",
		"a=rtpmap:101 telephone-event/8000", "a=fmtp:101 0-15", "a=ptime:20", "m=video 4002 RTP/AVP 34"))
	if err != nil {
		t.Fatal(err)
	}
	toB := string(b.Offer(RelayedOffer(offer)))
	if !strings.Contains(toB, " 8 0 9 ") || !strings.Contains(toB, "a=fmtp:101 0-15\r\n") || strings.Contains(toB, "video") {
		t.Errorf("offer to B:\n%s", toB)
	}
	answer, err := b.ReceiveAnswer(mediatest.PhoneOffer("m=audio 6000 RTP/AVP 0 96", "a=rtpmap:96 telephone-event/8000", "a=fmtp:96 0-11"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := RelayedAnswer(offer, answer)
	if err != nil {
		t.Fatal(err)
	}
	toA, err := a.Answer(m)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"m=audio 20000 RTP/AVP 0 101\r\n", "a=fmtp:101 0-11\r\n", "m=video 0 RTP/AVP 34\r\n", "a=sendrecv\r\n"} {
		if !strings.Contains(string(toA), want) {
			t.Errorf("answer to A lacks %q:\n%s", want, toA)
		}
	}
}

func TestSession_NoCommonCodecIs488(t *testing.T) {
	t.Parallel()
	s := NewSession(legAddr)
	s.Offer(LocalMedia{Formats: LocalOffer().Formats[:1]})
	var se *Error
	if _, err := s.ReceiveAnswer(mediatest.PhoneOffer("m=audio 4000 RTP/AVP 8")); !errors.As(err, &se) || se.Status != 488 {
		t.Errorf("answer outside the offer: %v", err)
	}
}

func TestSession_VersionRisesWithContent(t *testing.T) {
	t.Parallel()
	s := NewSession(legAddr)
	version := func(b []byte) uint64 { d, _ := ParseOffer(b); return d.Version }
	first := s.Offer(LocalOffer())
	if again := s.Offer(LocalOffer()); string(again) != string(first) {
		t.Error("the same offer changed")
	}
	hold := LocalOffer()
	hold.Direction = SendOnly
	if got, want := version(s.Offer(hold)), version(first)+1; got != want {
		t.Errorf("version %d, want %d", got, want)
	}
}

func TestSession_IsRefresh(t *testing.T) {
	t.Parallel()
	s := NewSession(legAddr)
	body := mediatest.PhoneOffer("m=audio 4000 RTP/AVP 0", "a=sendrecv")
	d, _ := s.ReceiveOffer(body)
	m, _ := LocalAnswer(d)
	first, _ := s.Answer(m)
	if !s.IsRefresh(body) {
		t.Error("the same body is a refresh")
	}
	if s.IsRefresh(mediatest.PhoneOffer("m=audio 4000 RTP/AVP 0", "a=sendonly")) || s.IsRefresh(mediatest.PhoneOffer("m=audio 4002 RTP/AVP 0")) {
		t.Error("hold and a moved port are not refreshes")
	}
	if string(s.LocalBody()) != string(first) {
		t.Error("Local is not the last answer")
	}
}

func TestSession_SecondForkAnswerReplacesFirst(t *testing.T) {
	t.Parallel()
	s := NewSession(legAddr)
	s.Offer(LocalOffer())
	for _, port := range []string{"4000", "4002"} {
		if _, err := s.ReceiveAnswer(mediatest.PhoneOffer("m=audio " + port + " RTP/AVP 0")); err != nil {
			t.Fatal(err)
		}
	}
	if d, _ := s.Remote(); d.Addr.Port() != 4002 {
		t.Errorf("media goes to %v", d.Addr)
	}
	d, _ := s.ReceiveOffer(mediatest.PhoneOffer("m=audio 4000 RTP/AVP 0"))
	m, _ := LocalAnswer(d)
	if _, err := s.Answer(m); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReceiveAnswer(mediatest.PhoneOffer("m=audio 4004 RTP/AVP 0")); err == nil {
		t.Error("an answer to an offer of the past was taken")
	}
}

func TestSession_ReofferKeepsRefusedLines(t *testing.T) {
	t.Parallel()
	s := NewSession(legAddr)
	d, _ := s.ReceiveOffer(mediatest.PhoneOffer("m=video 4002 RTP/AVP 34", "m=audio 4000 RTP/AVP 0"))
	m, _ := LocalAnswer(d)
	if _, err := s.Answer(m); err != nil {
		t.Fatal(err)
	}
	if got := string(s.Offer(m)); strings.Index(got, "m=video 0 ") > strings.Index(got, "m=audio 20000") || !strings.Contains(got, "m=video 0 ") {
		t.Errorf("re-offer:\n%s", got)
	}
	if _, err := s.ReceiveOffer(mediatest.PhoneOffer("m=audio 4000 RTP/AVP 0")); err == nil {
		t.Error("a removed media line was accepted")
	}
}

func TestSession_LateOffer(t *testing.T) {
	t.Parallel()
	b := NewSession(netip.MustParseAddrPort("[2001:db8::9]:20002"))
	if got := string(b.Offer(LocalOffer())); !strings.Contains(got, "c=IN IP6 2001:db8::9\r\n") {
		t.Errorf("IPv6 offer:\n%s", got)
	}
	answer, err := b.ReceiveAnswer(mediatest.PhoneOffer("m=audio 6000 RTP/AVP 8 101", "a=rtpmap:101 telephone-event/8000"))
	if err != nil {
		t.Fatal(err)
	}
	a := NewSession(legAddr)
	if got := string(a.Offer(RelayedOffer(answer))); !strings.Contains(got, "RTP/AVP 8 ") {
		t.Errorf("late offer to A:\n%s", got)
	}
	if _, err := a.ReceiveAnswer(mediatest.PhoneOffer("m=audio 4000 RTP/AVP 8", "a=recvonly")); err != nil {
		t.Fatal(err)
	}
	if got := a.LocalMedia().Direction; got != SendOnly {
		t.Errorf("in force: %v", got)
	}
}

// Every offer that can be parsed can be answered, and our own parser accepts the answer.
func FuzzSDP(f *testing.F) {
	f.Add(mediatest.PhoneOffer("m=audio 4000 RTP/AVP 8 0 101", "a=rtpmap:101 telephone-event/8000", "a=fmtp:101 0-15", "m=video 0 RTP/AVP 34"))
	f.Add(mediatest.SDPBody("v=0", "o=a 1 1 IN IP6 ::1", "c=IN IP6 ::1", "m=audio 4000/2 RTP/AVPF 97", "a=rtpmap:97 pcma/8000", "a=rtcp:1 IN IP4 x", "a=ptime:20"))
	f.Fuzz(func(t *testing.T, body []byte) {
		s := NewSession(legAddr)
		d, err := s.ReceiveOffer(body)
		if err != nil {
			return
		}
		m, err := LocalAnswer(d)
		if err != nil {
			if c, _ := d.Codec(); c == codec.Opus && !c.CanEncode() {
				return
			}
			t.Fatalf("parsed but not answerable: %v", err)
		}
		out, err := s.Answer(m)
		if err != nil {
			t.Fatal(err)
		}
		if back, err := ParseAnswer(out); err != nil || len(back.lines) != len(d.lines) {
			t.Fatalf("own answer: %v\n%s", err, out)
		}
		NewSession(legAddr).Offer(RelayedOffer(d))
		s.Offer(RelayedOffer(d))
		s.IsRefresh(body)
	})
}

func BenchmarkParseSDP(b *testing.B) {
	body := mediatest.PhoneOffer("m=audio 4000 RTP/AVP 8 0 101", "a=rtpmap:101 telephone-event/8000", "a=fmtp:101 0-15", "a=ptime:20")
	b.ReportAllocs()
	for b.Loop() {
		_, _ = ParseOffer(body)
	}
}

// FuzzOffer answers arbitrary offers. Our answer and our next offer must be parseable.
func FuzzOffer(f *testing.F) {
	f.Add(mediatest.BrowserAnswer())
	f.Add(mediatest.PhoneOffer("m=audio 4000 RTP/SAVP 0", "a=crypto:1 AES_CM_128_HMAC_SHA1_80 "+rfcKey+"|2^20|1:4"))
	f.Add(mediatest.PhoneOffer("a=group:BUNDLE a", "m=video 0 RTP/AVP 96", "a=mid:v", "m=audio 4000 RTP/AVP 8 0 101", "a=mid:a", "a=rtcp:9 IN IP6 ::1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := legWith(Plain)
		d, err := n.ReceiveOffer(b)
		if err != nil {
			return
		}
		m, err := LocalAnswer(d)
		if err != nil {
			return
		}
		body, err := n.Answer(m)
		if err != nil {
			return
		}
		for _, said := range [][]byte{body, n.Offer(m)} {
			if back, err := ParseOffer(said); err != nil && d.Direction != Inactive {
				t.Errorf("%v\noffer:\n%s\nours:\n%s", err, b, said)
			} else if err == nil && back.security != d.security {
				t.Errorf("security %v became %v\n%s", d.security, back.security, said)
			}
		}
	})
}
