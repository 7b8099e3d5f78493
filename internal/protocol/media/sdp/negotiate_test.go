package sdp

import (
	"strings"
	"testing"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/mediatest"
)

// described parses the offer of a phone with the given payload types: "8 0 101".
func described(t *testing.T, formats string) Description {
	t.Helper()
	d, err := ParseOffer(mediatest.PhoneOffer("m=audio 4000 RTP/AVP "+formats, "a=rtpmap:96 opus/48000/2", "a=fmtp:96 useinbandfec=1;stereo=1\x00",
		"a=rtpmap:97 telephone-event/48000", "a=rtpmap:101 telephone-event/8000", "a=fmtp:101 0-15"))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRelayedOffer_OtherLegsFormatsFirst(t *testing.T) {
	t.Parallel()
	got := formatNames(RelayedOffer(described(t, "8 101")).Formats)
	if !strings.HasPrefix(got, "PCMA/008") || !strings.Contains(got, "PCMU/000") || !strings.Contains(got, "telephone-event/101") {
		t.Errorf("beside PCMA: %s", got)
	}
	got = formatNames(RelayedOffer(described(t, "18 0 8")).Formats)
	if !strings.HasPrefix(got, "PCMU/000 PCMA/008") || strings.Contains(got, "G729") || !strings.Contains(got, "telephone-event") {
		t.Errorf("beside G.729, PCMU, PCMA: %s", got)
	}
}

func TestRelayedAnswer_FormatsOtherLegAccepted(t *testing.T) {
	t.Parallel()
	m, err := RelayedAnswer(described(t, "0 8 101"), described(t, "8"))
	if got := formatNames(m.Formats); err != nil || got != "PCMA/008 telephone-event/101" || m.Formats[1].Param != "0-15" {
		t.Errorf("%+v %v: the other leg has no events, and hears digits as tones", m.Formats, err)
	}
	m, err = RelayedAnswer(described(t, "0 101"), described(t, "8 101"))
	if got := formatNames(m.Formats); err != nil || got != "PCMU/000 telephone-event/101" {
		t.Errorf("nothing in common: %s %v", got, err)
	}
}

// TestAnswers_OpusWithNarrowbandEvents proves that telephone-event/8000 is used beside Opus if there are no events with the clock of Opus.
// https://github.com/asterisk/asterisk/pull/779
// https://github.com/pjsip/pjproject/issues/2088
func TestAnswers_OpusWithNarrowbandEvents(t *testing.T) {
	t.Parallel()
	const both = "OPUS/096 telephone-event/101"
	offer := described(t, "96 101")
	for _, other := range []string{"96 101", "96 97", "96 97 101", "96"} {
		m, err := RelayedAnswer(offer, described(t, other))
		if got := formatNames(m.Formats); err != nil || got != both {
			t.Errorf("the other leg accepted %s: answered %q, %v", other, got, err)
		}
	}
	got := formatNames(RelayedOffer(offer).Formats)
	if !strings.Contains(got, "OPUS/096") || !strings.Contains(got, "telephone-event/101") {
		t.Errorf("offered to the other leg: %s", got)
	}
	s := NewSession(legAddr)
	s.Offer(LocalMedia{Formats: SupportedFormats})
	if _, err := s.ReceiveAnswer(mediatest.PhoneOffer("m=audio 4000 RTP/AVP 111 101", "a=rtpmap:111 opus/48000/2",
		"a=rtpmap:101 telephone-event/8000")); err != nil {
		t.Fatal(err)
	}
	if got := formatNames(s.SendFormats()); got != "OPUS/111 telephone-event/101" || s.Codec() != codec.Opus {
		t.Errorf("sent after such an answer: %s", got)
	}
	if codec.Opus.CanEncode() {
		if m, err := LocalAnswer(offer); err != nil || formatNames(m.Formats) != both {
			t.Errorf("our own answer: %+v, %v", m.Formats, err)
		}
	}
}

// The formats sent are those of the answer, with the other side's payload types.
func TestSession_SendFormatsOfAnswer(t *testing.T) {
	t.Parallel()
	s := NewSession(legAddr)
	d, err := s.ReceiveOffer(mediatest.PhoneOffer("m=audio 4000 RTP/AVP 0 8"))
	if err != nil {
		t.Fatal(err)
	}
	m, err := RelayedAnswer(d, described(t, "8"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Answer(m); err != nil || s.Codec() != codec.PCMA || s.Secure() {
		t.Errorf("the answer names PCMA; %v is sent, %v", s.Codec(), err)
	}
	s.Offer(LocalMedia{Formats: []Format{{PT: 0, Name: "PCMU", Rate: 8000}, {PT: 100, Name: TelephoneEvent, Rate: 8000}}})
	if _, err := s.ReceiveAnswer(mediatest.PhoneOffer("m=audio 4000 RTP/AVP 8 0 99", "a=rtpmap:99 telephone-event/8000")); err != nil {
		t.Fatal(err)
	}
	if got := formatNames(s.SendFormats()); got != "PCMU/000 telephone-event/099" || s.Codec() != codec.PCMU {
		t.Errorf("sent: %s", got)
	}
}

func TestSafeParam_UnsafeDropped(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, in, want string }{
		{"OPUS", "useinbandfec=1; stereo=0", "useinbandfec=1; stereo=0"}, {"OPUS", "a=b\rm=audio", ""}, {"G722", "x", ""},
		{TelephoneEvent, "0-15,66", "0-15,66"}, {TelephoneEvent, "all", "0-15"},
	} {
		rate := map[string]int{"OPUS": 48000}[c.name]
		if got := safeParam(Format{Name: c.name, Rate: max(rate, 8000), Param: c.in}); got != c.want {
			t.Errorf("%s %q: %q, want %q", c.name, c.in, got, c.want)
		}
	}
}

func TestLocalOffer_OpusOnlyWithLibrary(t *testing.T) {
	t.Parallel()
	first, _ := LocalOffer().Formats[0].Codec()
	if want := map[bool]codec.Codec{true: codec.Opus, false: codec.G722}[codec.Opus.CanEncode()]; first != want {
		t.Errorf("our offer begins with %v", first)
	}
}
