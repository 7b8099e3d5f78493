package sip

import (
	"strings"
	"testing"
	"time"
)

// TestInvite_SilentTargetIsGivenUp tells a target without any response from one that only said 100.
func TestInvite_SilentTargetIsGivenUp(t *testing.T) {
	t.Parallel()
	for _, trying := range []bool{false, true} {
		s := newTestShard(t)
		var got []Event
		_, err := s.srv.Invite(t.Context(), Outgoing{URI: "sip:bob@192.0.2.1", SDP: []byte("v=0\r\n"), ResponseTimeout: 3 * time.Second},
			func(e Event) { got = append(got, e) })
		if err != nil {
			t.Fatal(err)
		}
		s.work()
		if invite := s.drainSent()[0]; trying {
			s.receiveResponse(invite, 100, "", "", "")
		}
		s.advance(4 * time.Second)
		if trying {
			if len(got) != 0 {
				t.Errorf("after a 100: %+v", got)
			}
			continue
		}
		if len(got) != 1 {
			t.Fatalf("events: %+v", got)
		}
		if f, ok := got[0].(Failed); !ok || f.Status != 408 || !f.Silent {
			t.Errorf("without a response: %+v", got[0])
		}
	}
}

func TestInfo_WithoutBodyIsAnsweredLocally(t *testing.T) {
	t.Parallel()
	s := newTestShard(t)
	_, tag, got := s.answeredInbound(t, "")
	before := len(*got)
	s.drainSent()
	s.receiveRequest("INFO", "n1", tag, 2, "", "")
	s.work()
	if sent := s.drainSent(); len(sent) != 1 || !strings.HasPrefix(sent[0], "SIP/2.0 200") || len(*got) != before {
		t.Errorf("sent %q, events %+v", sent, (*got)[before:])
	}
}

// TestReinvite_BeforeTheACK covers a re-INVITE between our 2xx and its ACK (RFC 5407 §3.1.4).
func TestReinvite_BeforeTheACK(t *testing.T) {
	t.Parallel()
	s := newTestShard(t)
	s.receiveRequest("INVITE", "i1", "", 1, "", "v=0\r\n")
	in := <-s.calls
	in.Listen(func(Event) {})
	in.Answer([]byte("v=0\r\n"))
	s.work()
	tag := s.localTag()
	s.drainSent()
	s.receiveRequest("INVITE", "i2", tag, 2, "", "v=0\r\n")
	s.work()
	if sent := s.drainSent(); len(sent) != 1 || !strings.HasPrefix(sent[0], "SIP/2.0 491") {
		t.Errorf("sent %q", sent)
	}
}

func TestReinvite_RefusalHasAWarning(t *testing.T) {
	t.Parallel()
	s := newTestShard(t)
	_, tag, got := s.answeredInbound(t, "")
	s.drainSent()
	s.receiveRequest("INVITE", "i2", tag, 2, "", "v=0\r\n")
	s.work()
	offer, ok := (*got)[len(*got)-1].(Reinvite)
	if !ok {
		t.Fatalf("events %+v", *got)
	}
	offer.Respond(488, nil, "a line is missing")
	s.work()
	sent := s.drainSent()
	if last := sent[len(sent)-1]; !strings.HasPrefix(last, "SIP/2.0 488") || !strings.Contains(headerOfMessage(last, "Warning"), "a line is missing") {
		t.Errorf("sent %q", last)
	}
}

func TestLateOffer_ACKWithoutAnswerIsReported(t *testing.T) {
	t.Parallel()
	s := newTestShard(t)
	s.receiveRequest("INVITE", "i1", "", 1, "", "")
	in := <-s.calls
	var got []Event
	in.Listen(func(e Event) { got = append(got, e) })
	in.Answer([]byte("v=0\r\n"))
	s.work()
	s.receiveRequest("ACK", "a1", s.localTag(), 1, "", "")
	s.work()
	if len(got) != 1 || !got[0].(Acked).Unanswered {
		t.Errorf("events %+v", got)
	}
}
