package media

import (
	"net"
	"net/netip"
	"testing"
	"time"
)

// Packets that reached a port before the call are not counted for the call.
func TestPrewarmed_EarlierPacketsDropped(t *testing.T) {
	t.Parallel()
	e, err := New(Config{Bind: loopback})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if len(e.prewarmed.all) != prewarmedCount {
		t.Fatalf("%d streams opened ahead", len(e.prewarmed.all))
	}
	other, err := e.Open()
	if err != nil {
		t.Fatal(err)
	}
	next := e.prewarmed.all[len(e.prewarmed.all)-1]
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(next.local))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Write(rtpPacket(1, 160, 1, 0, make([]byte, 160))); err != nil {
		t.Fatal(err)
	}
	waitReceived(t, other) // the loop has also read the earlier packet
	s, err := e.Open()
	if err != nil || s != next {
		t.Fatalf("another stream than the one opened ahead: %v", err)
	}
	if st := s.Stats(); st.Received+st.Ignored+st.Malformed != 0 {
		t.Errorf("what came before counts: %+v", st)
	}
	waitReceived(t, s)
}

// waitReceived sends the stream a packet and waits until it is received.
func waitReceived(t *testing.T, s *Stream) {
	t.Helper()
	c, err := net.DialUDP("udp", nil, net.UDPAddrFromAddrPort(s.Local()))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.SetRemote(Remote{Addr: c.LocalAddr().(*net.UDPAddr).AddrPort()})
	if _, err := c.Write(rtpPacket(7, 1600, 2, 0, make([]byte, 160))); err != nil {
		t.Fatal(err)
	}
	//nolint:forbidigo // polls a condition that publishes no event
	for until := time.Now().Add(5 * time.Second); s.Stats().Received == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("a packet of the call is not received")
		}
	}
}

// A closed engine has released its prewarmed streams.
func TestPrewarmed_ClosedWithEngine(t *testing.T) {
	t.Parallel()
	e, err := New(Config{Bind: loopback})
	if err != nil {
		t.Fatal(err)
	}
	var ports []netip.AddrPort
	for _, s := range e.prewarmed.all {
		ports = append(ports, s.local)
	}
	s, err := e.Open()
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	if len(e.prewarmed.all) != prewarmedCount {
		t.Errorf("%d spares after a call", len(e.prewarmed.all))
	}
	e.Close()
	if len(e.prewarmed.all) != 0 {
		t.Errorf("%d spares are left", len(e.prewarmed.all))
	}
	for _, at := range ports {
		c, err := net.ListenUDP("udp", net.UDPAddrFromAddrPort(at))
		if err != nil {
			t.Errorf("%v is taken: %v", at, err)
			continue
		}
		c.Close()
	}
}
