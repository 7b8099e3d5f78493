//go:build unix

package media

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/record"
	"soniq/internal/protocol/media/rtp"
)

// The load comes from a second process, this test binary with generatorEnv set. getrusage of this process therefore
// measures the relay alone.
const generatorEnv = "SONIQ_MEDIA_GENERATOR"

func TestMain(m *testing.M) {
	if os.Getenv(generatorEnv) != "" {
		if err := generate(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// generatorJob is sent to the generator, generatorResult comes back; each is one line of JSON.
type generatorJob struct {
	To      []netip.AddrPort
	Seconds float64
}

type generatorResult struct {
	Phones                       []netip.AddrPort // first line, before the job
	Sent, Received               int
	P50Micros, P99Micros, CPUSec float64
}

// generate runs in the second process: phones that send 50 packets a second each and measure the delay of the packets
// they receive.
func generate() error {
	var calls int
	if _, err := fmt.Sscan(os.Getenv(generatorEnv), &calls); err != nil {
		return err
	}
	began := time.Now()
	l, err := newLoop(func() int64 { return int64(time.Since(began)) })
	if err != nil {
		return err
	}
	phones := make([]*loadPhone, 2*calls)
	out := generatorResult{}
	ports, _ := newPortSet(0, 0)
	for i := range phones {
		p := &loadPhone{}
		port, err := ports.bind(func(port uint16) (err error) {
			p.socket, err = l.listen(netip.AddrPortFrom(loopback, port), p)
			return err
		})
		if err != nil {
			return err
		}
		phones[i] = p
		out.Phones = append(out.Phones, netip.AddrPortFrom(loopback, port))
	}
	enc := json.NewEncoder(os.Stdout)
	if err := enc.Encode(out); err != nil {
		return err
	}
	var job generatorJob
	if err := json.NewDecoder(os.Stdin).Decode(&job); err != nil {
		return err
	}
	sent := sendLoad(phones, job)
	<-time.After(100 * time.Millisecond) // the last packets in transit
	return enc.Encode(tally(phones, sent))
}

func sendLoad(phones []*loadPhone, job generatorJob) int {
	b := make([]byte, 172)
	sent, began := 0, time.Now()
	tick := time.NewTicker(500 * time.Microsecond)
	defer tick.Stop()
	for time.Since(began).Seconds() < job.Seconds {
		due := int(time.Since(began).Seconds() * 50 * float64(len(phones)))
		for ; sent < due; sent++ {
			i, n := sent%len(phones), sent/len(phones)
			rtp.Header{PT: 0, Seq: uint16(n), TS: uint32(160 * n), SSRC: uint32(i)}.Put(b)
			binary.LittleEndian.PutUint64(b[12:], uint64(time.Now().UnixNano()))
			phones[i].socket.send(b, job.To[i])
		}
		<-tick.C
	}
	return sent
}

type loadPhone struct {
	socket packetSocket
	delays []uint32 // µs
}

func (p *loadPhone) receive(b []byte, _ netip.AddrPort, _ int64) {
	if len(b) == 172 {
		d := time.Now().UnixNano() - int64(binary.LittleEndian.Uint64(b[12:]))
		p.delays = append(p.delays, uint32(d/1000))
	}
}

func tally(phones []*loadPhone, sent int) generatorResult {
	var all []uint32
	for _, p := range phones {
		all = append(all, p.delays...)
	}
	slices.Sort(all)
	res := generatorResult{Sent: sent, Received: len(all)}
	if n := len(all); n > 0 {
		res.P50Micros, res.P99Micros = float64(all[n/2]), float64(all[n*99/100])
	}
	return res
}

// startGenerator returns the phones' addresses and a function that runs the load.
func startGenerator(b *testing.B, calls int) ([]netip.AddrPort, func(generatorJob) generatorResult) {
	b.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", generatorEnv, calls), "GOMAXPROCS=2")
	cmd.Stderr = os.Stderr
	in, _ := cmd.StdinPipe()
	out, _ := cmd.StdoutPipe()
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	dec := json.NewDecoder(bufio.NewReader(out))
	var hello generatorResult
	if err := dec.Decode(&hello); err != nil {
		b.Fatal(err)
	}
	return hello.Phones, func(j generatorJob) generatorResult {
		if err := json.NewEncoder(in).Encode(j); err != nil {
			b.Fatal(err)
		}
		var res generatorResult
		if err := dec.Decode(&res); err != nil {
			b.Fatal(err)
		}
		return res
	}
}

// BenchmarkRelay runs calls for five seconds each and reports their cost:
//
//	go test ./internal/protocol/media -run '^$' -bench Relay -benchtime 1x
func BenchmarkRelay(b *testing.B) {
	b.Run("direct/calls=500", func(b *testing.B) { benchDirect(b, 500) })
	for _, calls := range []int{100, 200, 500} {
		b.Run(fmt.Sprintf("portable/calls=%d", calls), func(b *testing.B) { benchRelay(b, calls, newUDPLoop, false) })
		b.Run(fmt.Sprintf("epoll/calls=%d", calls), func(b *testing.B) { benchRelay(b, calls, newLoop, false) })
		b.Run(fmt.Sprintf("epoll-recorded/calls=%d", calls), func(b *testing.B) { benchRelay(b, calls, newLoop, true) })
	}
}

// benchDirect measures the generator alone: each phone sends to its partner.
func benchDirect(b *testing.B, calls int) {
	for b.Loop() {
		phones, run := startGenerator(b, calls)
		to := make([]netip.AddrPort, len(phones))
		for i := range to {
			to[i] = phones[i^1]
		}
		report(b, run(generatorJob{To: to, Seconds: 5}))
	}
}

func report(b *testing.B, r generatorResult) {
	b.ReportMetric(r.P50Micros, "p50-µs")
	b.ReportMetric(r.P99Micros, "p99-µs")
	b.ReportMetric(float64(r.Sent-r.Received), "lost")
	b.ReportMetric(0, "ns/op")
}

func benchRelay(b *testing.B, calls int, loop func(func() int64) (packetLoop, error), recorded bool) {
	for b.Loop() {
		dir := b.TempDir()
		phones, run := startGenerator(b, calls)
		e, err := newEngine(Config{Bind: loopback}, loop)
		if err != nil {
			b.Fatal(err)
		}
		before := resident(b)
		to, recs := benchCalls(b, e, phones, dir, recorded)
		var after float64
		var wg sync.WaitGroup
		var cpu time.Duration
		var packets atomic.Uint64
		wg.Go(func() { // measure the three seconds in the middle
			<-time.After(time.Second)
			c0, p0 := cpuTime(b), relayed(e)
			<-time.After(3 * time.Second)
			cpu = cpuTime(b) - c0
			packets.Store(relayed(e) - p0)
			after = resident(b)
		})
		res := run(generatorJob{To: to, Seconds: 5})
		wg.Wait()
		report(b, res)
		b.ReportMetric(float64(cpu.Microseconds())/float64(packets.Load()), "cpu-µs/packet")
		b.ReportMetric(100*cpu.Seconds()/3/float64(calls), "%core/call")
		b.ReportMetric((after-before)/float64(calls), "KiB/call")
		for _, r := range recs {
			if st := r.Stats(); st.Dropped+st.Late > 0 && testing.Verbose() {
				b.Logf("recorder %+v", st)
			}
			if _, err := r.Close(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		e.Close()
	}
}

func benchCalls(
	b *testing.B, e *Engine, phones []netip.AddrPort, dir string, recorded bool,
) (to []netip.AddrPort, recs []*record.Recorder) {
	for i := 0; i < len(phones); i += 2 {
		x := openStream(b, e)
		y, err := e.OpenPeer(x)
		if err != nil {
			b.Fatal(err)
		}
		x.SetRemote(Remote{Addr: phones[i], Formats: g711Formats(codec.PCMU, 101)})
		y.SetRemote(Remote{Addr: phones[i+1], Formats: g711Formats(codec.PCMU, 101)})
		Bridge(x, y)
		to = append(to, x.Local(), y.Local())
		if recorded {
			r, err := e.Record(record.Config{Path: filepath.Join(dir, fmt.Sprintf("%d.wav", i)), Left: x, Right: y})
			if err != nil {
				b.Fatal(err)
			}
			recs = append(recs, r)
		}
	}
	return to, recs
}

func relayed(e *Engine) (n uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for s := range e.streams {
		n += s.Stats().Sent
	}
	return n
}

// resident returns the resident memory of this process in KiB after a garbage collection.
func resident(b *testing.B) float64 {
	runtime.GC()
	debug.FreeOSMemory()
	f, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Skip(err)
	}
	for line := range strings.Lines(string(f)) {
		var kib float64
		if n, _ := fmt.Sscanf(line, "VmRSS: %f kB", &kib); n == 1 {
			return kib
		}
	}
	b.Fatal("no VmRSS")
	return 0
}

// BenchmarkRecordClose starts and finishes short recordings, 32 at a time: the disk load of many simultaneous
// hang-ups.
func BenchmarkRecordClose(b *testing.B) {
	e := testEngine(b, Config{}, newLoop)
	dir := b.TempDir()
	var n atomic.Uint64
	b.SetParallelism(16)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			r, err := e.Record(record.Config{Path: filepath.Join(dir, fmt.Sprintf("%d.wav", n.Add(1)))})
			if err != nil {
				b.Error(err)
				return
			}
			if _, err := r.Close(b.Context()); err != nil {
				b.Error(err)
			}
		}
	})
}
