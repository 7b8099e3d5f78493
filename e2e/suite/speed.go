package main

import (
	"crypto/sha256"
	"net"
	"net/netip"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

// What each processor does to measure the machine: tests compute, send packets and start processes. A virtual machine may be fast in one
// and slow in the others.
const (
	speedBlocks    = 192  // blocks of a megabyte to hash
	speedPackets   = 5000 // packets to send and receive
	speedProcesses = 20   // processes to start
	speedTime      = 300 * time.Millisecond
)

// slowness returns how much longer computing, sending packets and starting processes takes here than speedTime, as a factor of at least 1.
// All processors work at once and the last one counts, so a processor that another program uses makes the machine slow.
func slowness() float64 {
	took := atOnce(hashBlocks) + atOnce(exchangePackets) + atOnce(startProcesses)
	return max(1, float64(took)/float64(speedTime))
}

// atOnce returns the time until work is done on every processor.
func atOnce(work func()) time.Duration {
	began := time.Now()
	var all sync.WaitGroup
	for range runtime.NumCPU() {
		all.Go(work)
	}
	all.Wait()
	return time.Since(began)
}

func hashBlocks() {
	block := make([]byte, 1<<20)
	for range speedBlocks {
		sum := sha256.Sum256(block)
		copy(block, sum[:])
	}
}

// exchangePackets sends packets on loopback to a goroutine that sends them back. If that fails, the machine counts as fast.
func exchangePackets() {
	near, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		return
	}
	defer near.Close()
	far, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(netip.MustParseAddrPort("127.0.0.1:0")))
	if err != nil {
		return
	}
	defer far.Close()
	go returnPackets(far)
	to, packet := far.LocalAddr().(*net.UDPAddr).AddrPort(), make([]byte, 172)
	for range speedPackets {
		if _, err := near.WriteToUDPAddrPort(packet, to); err != nil {
			return
		}
		if _, _, err := near.ReadFromUDPAddrPort(packet); err != nil {
			return
		}
	}
}

func returnPackets(c *net.UDPConn) {
	packet := make([]byte, 172)
	for {
		n, from, err := c.ReadFromUDPAddrPort(packet)
		if err != nil {
			return
		}
		if _, err := c.WriteToUDPAddrPort(packet[:n], from); err != nil {
			return
		}
	}
}

func startProcesses() {
	for range speedProcesses {
		_ = exec.Command("true").Run()
	}
}
