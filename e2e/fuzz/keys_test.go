package fuzz

import (
	"encoding/binary"
	"net"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/internal/protocol/sip"
)

// TestDTMF_Flood: a telephone sends thousands of DTMF events. The server reports no more digits than a keypad can
// produce in the time. All events still pass to the peer, and later digits are reported again.
func TestDTMF_Flood(t *testing.T) {
	t.Parallel()
	f := newStand(t)
	bob := f.AddUser("Bob")
	w := f.way(bob)
	near, far := f.ear(net.IPv4(127, 0, 0, 1)), f.ear(net.IPv4(127, 0, 0, 1))
	const events = "a=rtpmap:101 telephone-event/8000"
	farSDP := far.sdp("RTP/AVP", "0 101", events)
	f.phone(bob, func(in *sip.Inbound) []byte { far.faces(in.Offer); return farSDP })
	carrier := f.open(w.address(), func(*sip.Inbound) []byte { return farSDP })
	c, err := carrier.dial("+12135550100", w.user, near.sdp("RTP/AVP", "0 101", events))
	if err != nil {
		t.Fatal(err)
	}
	if answer, err := c.decided(); err != nil || !near.faces(answer) {
		t.Fatalf("the call is answered %q %v", answer, err)
	}
	p := &party{stand: f, kind: "relayed", near: near, far: far}
	p.talks(c)
	heard, begun := far.heard.Load(), time.Now()
	const flood = 2000
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for n := range flood {
		near.presses(byte(n%10), n)
		if n%4 == 3 {
			<-tick.C
		}
	}
	// the kernel may drop some
	rig.Until(t, "keys at the far side", time.Minute, func() bool { return far.heard.Load()-heard > 4*flood/10 })
	rig.Until(t, "as many keys told of as may come at once", time.Minute, func() bool { return p.told() >= 25 })
	told, most := p.told(), 26+int(time.Since(begun)/(40*time.Millisecond))
	if told > most {
		t.Errorf("%d of %d keys were told of; at most %d could have been pressed", told, flood, most)
	}
	n := flood
	rig.Until(t, "more keys told of, now that they come one by one", time.Minute, func() bool {
		n++
		near.presses(11, n)
		return p.told() > most
	})
	if err := c.hangUp(); err != nil {
		t.Error(err)
	}
	rig.Until(t, "the end of the call", time.Minute, func() bool { return f.metric("soniq_calls_active") == 0 })
}

// presses sends a digit completely: its end event, as packet n of its call.
func (e *ear) presses(code byte, n int) {
	b := rtp(101, 0x80, []byte{code, 0x8a, 3, 32})
	binary.BigEndian.PutUint16(b[2:], uint16(1000+n))
	binary.BigEndian.PutUint32(b[4:], uint32(1000+n)*800)
	e.send(b)
}

// told returns the number of digits reported so far for the call in progress.
func (p *party) told() int {
	p.T.Helper()
	var live struct{ Data []struct{ ID string } }
	p.Want(200, "GET", "/calls/live", nil, &live)
	if len(live.Data) != 1 {
		p.T.Fatalf("%d calls are in progress", len(live.Data))
	}
	told := 0
	for path := "/calls/" + live.Data[0].ID + "/events?limit=200"; ; {
		var page struct {
			Data       []struct{ Kind string }
			NextCursor *string `json:"next_cursor"`
		}
		p.Want(200, "GET", path, nil, &page)
		for _, step := range page.Data {
			if step.Kind == "dtmf.received" {
				told++
			}
		}
		if page.NextCursor == nil {
			return told
		}
		path = "/calls/" + live.Data[0].ID + "/events?limit=200&cursor=" + *page.NextCursor
	}
}
