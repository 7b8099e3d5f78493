package transport

import (
	"net"
	"runtime"
	"testing"
	"time"
)

func TestPendingDatagrams_AsksTheSocket(t *testing.T) {
	t.Parallel()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	from, err := net.DialUDP("udp4", nil, conn.LocalAddr().(*net.UDPAddr))
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	for range 3 {
		if _, err := from.Write([]byte("message")); err != nil {
			t.Fatal(err)
		}
	}
	rest, buf := newPendingDatagrams(conn), make([]byte, 100)
	waited := 2 * maxImmediateRead // irrelevant if the system can be asked
	for left := 2; left >= 0; left-- {
		if _, _, err := conn.ReadFromUDPAddrPort(buf); err != nil {
			t.Fatal(err)
		}
		if got := rest.more(waited); runtime.GOOS == "linux" && got != (left > 0) {
			t.Errorf("%d left: more %t", left, got)
		}
	}
	if _, ok := rest.nextSize(); ok != (runtime.GOOS == "linux") {
		t.Errorf("asked: %t", ok)
	}
}

func TestPendingDatagrams_EstimatedFromReadTime(t *testing.T) {
	t.Parallel()
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		t.Fatal(err)
	}
	rest := newPendingDatagrams(conn)
	conn.Close()
	for read, more := range map[time.Duration]bool{maxImmediateRead: true, maxImmediateRead + 1: false} {
		if rest.more(read) != more {
			t.Errorf("a read of %v: more %t", read, !more)
		}
	}
}
