package sdp

import (
	"encoding/json"
	"strings"
	"testing"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/mediatest"
)

// restored transfers a session through JSON to another stream.
func restored(t *testing.T, s *Session) *Session {
	t.Helper()
	st, ok := s.Snapshot()
	if !ok {
		t.Fatal("no state")
	}
	b, err := json.Marshal(st)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(b), "inline") {
		t.Errorf("keys in %s", b)
	}
	var back SessionState
	if err := json.Unmarshal(b, &back); err != nil {
		t.Fatal(err)
	}
	n, err := RestoreSession(testEndpoint, back)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func TestRestoreSession_HigherVersion(t *testing.T) {
	t.Parallel()
	s := legWith(Plain)
	if _, ok := s.Snapshot(); ok {
		t.Error("state before the first exchange")
	}
	d, err := s.ReceiveOffer(mediatest.PhoneOffer("m=video 4002 RTP/AVP 34", "m=audio 4000 RTP/AVP 8 0 101", "a=rtpmap:101 telephone-event/8000"))
	if err != nil {
		t.Fatal(err)
	}
	m, _ := LocalAnswer(d)
	before, err := s.Answer(m)
	if err != nil {
		t.Fatal(err)
	}
	n := restored(t, s)
	if n.Codec() != codec.PCMA || n.LocalMedia().Formats[0] != s.LocalMedia().Formats[0] {
		t.Errorf("%v is sent", n.Codec())
	}
	after := n.Offer(n.LocalMedia())
	was, _ := ParseOffer(before)
	is, err := ParseOffer(after)
	if err != nil || is.Version <= was.Version || !strings.Contains(string(after), "m=video 0 ") {
		t.Errorf("version %d after %d, %v:\n%s", is.Version, was.Version, err, after)
	}
	if a, b := strings.Fields(string(before))[1], strings.Fields(string(after))[1]; a != b {
		t.Errorf("o= id %s after %s", b, a)
	}
	if _, err := n.ReceiveAnswer(mediatest.PhoneOffer("m=video 0 RTP/AVP 34", "m=audio 4000 RTP/AVP 8")); err != nil {
		t.Error(err)
	}
}

// Keys are lost with the process: the offer has new ones.
func TestRestoreSession_NewKeys(t *testing.T) {
	t.Parallel()
	for _, security := range []Security{SDESRequired, WebRTC} {
		ours, theirs := legWith(security), legWith(Plain)
		agree := func(offerer *Session) {
			t.Helper()
			d, err := theirs.ReceiveOffer(offerer.Offer(LocalOffer()))
			if err != nil {
				t.Fatal(err)
			}
			m, _ := LocalAnswer(d)
			body, err := theirs.Answer(m)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := offerer.ReceiveAnswer(body); err != nil {
				t.Fatal(err)
			}
		}
		agree(ours)
		n := restored(t, ours)
		agree(n)
		if !n.Secure() || n.security.agreed.Restored {
			t.Errorf("%v: secure %v, again %v", security, n.Secure(), n.security.agreed.Restored)
		}
	}
}

func TestRestoreSession_EmptyStateRefused(t *testing.T) {
	t.Parallel()
	if _, err := RestoreSession(testEndpoint, SessionState{}); err == nil {
		t.Error("restored from nothing")
	}
}
