package pbx

import (
	"context"
	"encoding/binary"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/platform/event"
	"soniq/internal/protocol/media"
	"soniq/internal/protocol/media/sdp"
	"soniq/internal/telephony/pbx/inbox"
)

// recordingStreams records the published events.
type recordingStreams struct {
	orgs   map[string]bool
	events []event.CallQuality
}

func (f *recordingStreams) Subscribers(k event.Kind) map[string]bool {
	if k != "call.quality" {
		return nil
	}
	return f.orgs
}

func (f *recordingStreams) PublishEphemeral(org string, p event.StreamPayload) error {
	if f.orgs[org] {
		f.events = append(f.events, p.(event.CallQuality))
	}
	return nil
}

// rtpSource sends RTP to a leg's stream as a phone would, with the test's clock.
type rtpSource struct {
	t      *testing.T
	socket *net.UDPConn
	stream *media.Stream
	skip   *atomic.Int64
	sent   uint16
}

func newRTPSource(t *testing.T, e *media.Engine, skip *atomic.Int64) *rtpSource {
	t.Helper()
	s, err := e.Open()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	socket, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { socket.Close() })
	s.SetRemote(media.Remote{Addr: socket.LocalAddr().(*net.UDPAddr).AddrPort(), Formats: []sdp.Format{{PT: 0, Name: "PCMU", Rate: 8000}}})
	return &rtpSource{t: t, socket: socket, stream: s, skip: skip}
}

// speaks sends packets until the stream has a new measurement.
func (s *rtpSource) speaks() {
	s.t.Helper()
	before, _, _ := s.stream.LatestSample()
	at := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), s.stream.Local().Port())
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); {
		s.sent++
		s.skip.Add(int64(time.Second))
		p := make([]byte, 172)
		p[0] = 0x80
		binary.BigEndian.PutUint16(p[2:], s.sent)
		binary.BigEndian.PutUint32(p[4:], 8000*uint32(s.sent))
		if _, err := s.socket.WriteToUDPAddrPort(p, at); err != nil {
			s.t.Fatal(err)
		}
		for got := s.sent - 1; got < s.sent && time.Now().Before(end); {
			got = uint16(s.stream.Quality().Received.Packets)
		}
		if x, _, ok := s.stream.LatestSample(); ok && !x.At.Equal(before.At) {
			return
		}
	}
	s.t.Fatal("nothing was measured")
}

func TestPublishQuality_OnlyToSubscribedOrgs(t *testing.T) {
	t.Parallel()
	var skip atomic.Int64
	began := time.Now()
	e, err := media.New(media.Config{Bind: netip.MustParseAddr("127.0.0.1"), Now: func() time.Time {
		return began.Add(time.Duration(skip.Load()))
	}, Latch: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	c, legs := connectedCall("caller", "agent")
	streams := &recordingStreams{}
	s := c.sw
	s.cfg.Streams, s.cfg.Log, s.calls = streams, slog.New(slog.DiscardHandler), map[string]*liveCall{"call_1": c}
	c.id, c.new.Org, c.inbox, c.answered = "call_1", "org_1", inbox.New[message](), time.Now()
	c.publishOrg()
	caller, agent := newRTPSource(t, e, &skip), newRTPSource(t, e, &skip)
	legs[0].stream, legs[1].stream = caller.stream, agent.stream
	caller.speaks()

	round := func() (messages int) {
		for turn := range uint64(qualitySlots) {
			s.publishQuality(turn)
		}
		for {
			m, ok := c.inbox.Pop()
			if !ok {
				return messages
			}
			messages++
			m.run(context.Background())
		}
	}
	if n := round(); n != 0 {
		t.Errorf("a call nobody follows was asked %d times", n)
	}
	streams.orgs = map[string]bool{"org_2": true}
	if n := round(); n != 0 {
		t.Errorf("a call was asked %d times for somebody of another organisation", n)
	}
	streams.orgs = map[string]bool{"org_1": true}
	if n := round(); n != 1 {
		t.Errorf("a call was asked %d times in five seconds", n)
	}
	if x := streams.events; len(x) != 1 || x[0].CallID != "call_1" || x[0].LegID != legs[0].id || x[0].MOS < 3.5 || x[0].LossRate != 0 ||
		x[0].At.IsZero() {
		t.Fatalf("told %+v", x)
	}
	if round(); len(streams.events) != 1 {
		t.Errorf("the same measurement was told again: %+v", streams.events)
	}
	caller.speaks()
	agent.speaks()
	if round(); len(streams.events) != 3 || streams.events[1].LegID == streams.events[2].LegID ||
		!streams.events[1].At.After(streams.events[0].At.Time) {
		t.Errorf("of both legs it was told %+v", streams.events)
	}
	c.answered = time.Time{}
	caller.speaks()
	if round(); len(streams.events) != 3 {
		t.Errorf("a call that is not connected told %+v", streams.events[3:])
	}
}
