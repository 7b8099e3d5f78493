package rig

import (
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"
)

// Damage describes how a bad network impairs audio.
type Damage struct {
	Loss   float64       // share of the packets that are lost
	Jitter time.Duration // each packet is delayed by up to this, independently of the others: some overtake others
	Seed   uint64
}

// BadNetwork is a proxy between one telephone and the server that carries one call at a time. It passes signalling on
// and rewrites only the addresses in it. Audio therefore passes through the proxy too, which drops and delays
// packets.
type BadNetwork struct {
	T    testing.TB
	Port int // port at which the telephone reaches the server

	damage        Damage
	server        *net.UDPAddr
	toPhone, toUs *net.UDPConn // signalling: the phone's side, the server's side
	beyond        int          // port at which the server reaches the telephone
	up, down      *way         // from the telephone, to the telephone
	running       sync.WaitGroup
	underway      sync.WaitGroup // packets

	mu    sync.Mutex // guards phone
	phone *net.UDPAddr
}

// Toll counts the packets of one direction. Paused is the time in which the sender sent nothing, in pauses of over 100 ms: the
// sender, or the machine, was late.
type Toll struct {
	Passed, Lost int
	Paused       time.Duration
}

// BadNetwork starts a bad network between the server and a telephone that names it in PhoneOptions.
func (s *Server) BadNetwork(d Damage) *BadNetwork {
	s.T.Helper()
	server, err := net.ResolveUDPAddr("udp4", s.SIP)
	if err != nil {
		s.T.Fatal(err)
	}
	n := &BadNetwork{T: s.T, damage: d, server: server}
	n.toPhone, n.Port = n.socket()
	n.toUs, n.beyond = n.socket()
	n.up, n.down = n.way(1), n.way(2)
	n.up.out, n.up.outReports, n.down.out, n.down.outReports = n.down.in, n.down.inReports, n.up.in, n.up.inReports
	for _, f := range []func(){n.fromPhone, n.fromServer, n.up.audio, n.up.reports, n.down.audio, n.down.reports} {
		n.running.Go(f)
	}
	s.T.Cleanup(n.stop)
	return n
}

// Address returns the address at which the telephone reaches the server.
func (n *BadNetwork) Address() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(n.Port)) }

func (n *BadNetwork) socket() (*net.UDPConn, int) {
	n.T.Helper()
	port := FreePort(n.T)
	return n.listen(port), port
}

func (n *BadNetwork) listen(port int) *net.UDPConn {
	n.T.Helper()
	c, err := net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		n.T.Fatal(err)
	}
	return c
}

// way opens the ports of one direction.
func (n *BadNetwork) way(dice uint64) *way {
	w := &way{network: n, random: rand.New(rand.NewPCG(n.damage.Seed, dice))}
	w.in, w.port = n.socket()
	w.inReports = n.listen(w.port + 1)
	return w
}

func (n *BadNetwork) fromPhone() {
	for b := make([]byte, 64<<10); ; {
		size, source, err := n.toPhone.ReadFromUDP(b)
		if err != nil {
			return
		}
		n.mu.Lock()
		n.phone = source
		n.mu.Unlock()
		_, _ = n.toUs.WriteToUDP(readdressed(b[:size], n.beyond, n.down), n.server)
	}
}

func (n *BadNetwork) fromServer() {
	for b := make([]byte, 64<<10); ; {
		size, _, err := n.toUs.ReadFromUDP(b)
		if err != nil {
			return
		}
		n.mu.Lock()
		phone := n.phone
		n.mu.Unlock()
		if phone != nil {
			_, _ = n.toPhone.WriteToUDP(readdressed(b[:size], n.Port, n.up), phone)
		}
	}
}

// Tolls returns the packet counts of the audio so far: up is from the telephone, down is to it.
func (n *BadNetwork) Tolls() (up, down Toll) { return n.up.count(), n.down.count() }

func (n *BadNetwork) stop() {
	for _, c := range []*net.UDPConn{n.toPhone, n.toUs, n.up.in, n.up.inReports, n.down.in, n.down.inReports} {
		_ = c.Close()
	}
	n.running.Wait()
	n.underway.Wait()
}

// way is one direction of a call's audio. Packets that arrive at one pair of ports leave from the pair of the other
// direction, as behind a symmetric-RTP router.
type way struct {
	network         *BadNetwork
	in, inReports   *net.UDPConn
	out, outReports *net.UDPConn
	port            int
	random          *rand.Rand

	mu    sync.Mutex // guards the fields below
	to    netip.AddrPort
	toll  Toll
	last  time.Time // when the last packet arrived
	kept  [][]byte  // the first packets that passed
	block bool      // all packets are lost
}

// maxKept bounds the packets that a way keeps for Replay.
const maxKept = 1000

// Replay sends packets of the telephone's audio again, from the first to before the last of a range, at their pace. Its own
// are lost meanwhile.
func (n *BadNetwork) Replay(first, last int) {
	n.T.Helper()
	n.up.setBlock(true)
	defer n.up.setBlock(false)
	n.up.mu.Lock()
	to, packets := n.up.to, n.up.kept
	n.up.mu.Unlock()
	if last > len(packets) {
		n.T.Fatalf("%d packets were captured, %d wanted", len(packets), last)
	}
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for _, b := range packets[first:last] {
		<-tick.C
		_, _ = n.up.out.WriteToUDPAddrPort(b, to)
	}
}

// Hold loses the audio of the telephone until release is called.
func (n *BadNetwork) Hold() (release func()) {
	n.up.setBlock(true)
	return func() { n.up.setBlock(false) }
}

func (w *way) setBlock(on bool) {
	w.mu.Lock()
	w.block = on
	w.mu.Unlock()
}

func (w *way) aim(to netip.AddrPort) {
	w.mu.Lock()
	w.to = to
	w.mu.Unlock()
}

func (w *way) count() Toll {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.toll
}

// audio drops and delays packets. The random numbers are drawn in order of arrival.
func (w *way) audio() {
	b := make([]byte, 2048)
	for {
		size, _, err := w.in.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		lost := w.random.Float64() < w.network.damage.Loss
		late := time.Duration(w.random.Float64() * float64(w.network.damage.Jitter))
		packet := append([]byte(nil), b[:size]...)
		to, lost := w.rolled(packet, lost)
		if lost || !to.IsValid() {
			continue
		}
		w.network.underway.Add(1)
		time.AfterFunc(late, func() {
			defer w.network.underway.Done()
			_, _ = w.out.WriteToUDPAddrPort(packet, to)
		})
	}
}

// rolled counts a packet and returns its destination, and whether it is lost.
func (w *way) rolled(packet []byte, lost bool) (netip.AddrPort, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := time.Now()
	if pause := now.Sub(w.last); !w.last.IsZero() && pause > 100*time.Millisecond {
		w.toll.Paused += pause
	}
	w.last = now
	if lost = lost || w.block; lost {
		w.toll.Lost++
		return w.to, true
	}
	w.toll.Passed++
	if len(w.kept) < maxKept {
		w.kept = append(w.kept, packet)
	}
	return w.to, false
}

// reports passes RTCP on.
func (w *way) reports() {
	b := make([]byte, 2048)
	for {
		size, _, err := w.inReports.ReadFromUDPAddrPort(b)
		if err != nil {
			return
		}
		w.mu.Lock()
		to := w.to
		w.mu.Unlock()
		if to.IsValid() {
			_, _ = w.outReports.WriteToUDPAddrPort(b[:size], netip.AddrPortFrom(to.Addr(), to.Port()+1))
		}
	}
}
