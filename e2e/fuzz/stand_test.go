// Package fuzz sends invalid input to a running server: the binary, with its switch, its media and its database. It
// uses no internals of the server. The input is mutated from valid input at random, and a seed repeats the same
// input.
//
// FUZZTIME sets the duration of each test, SONIQ_FUZZ_SEED repeats a run.
package fuzz

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// stand is a server under fuzzing.
type stand struct {
	*rig.Client
	pid   int
	seed  uint64
	until time.Time
	idle  residue

	rounds  atomic.Uint64
	origins atomic.Uint64
	looked  atomic.Int64 // last time the figures were read, Unix nanoseconds

	mu     sync.Mutex // guards recent
	recent []string   // most recent inputs
}

// reportInputs reports the most recent inputs after a failure. It writes all of them to a file and logs only the last ones,
// short, so that the failure stays visible above them.
func (f *stand) reportInputs() {
	if !f.T.Failed() {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	path := filepath.Join(os.TempDir(), fmt.Sprintf("soniq-fuzz-%d.txt", f.seed))
	if err := os.WriteFile(path, []byte(strings.Join(f.recent, "\n")+"\n"), 0o600); err != nil {
		f.T.Error(err)
	}
	f.T.Logf("SONIQ_FUZZ_SEED=%d, round %d; what was sent last is in %s:", f.seed, f.rounds.Load(), path)
	for _, sent := range f.recent[max(0, len(f.recent)-5):] {
		f.T.Logf("%.100s", sent)
	}
}

// residue counts the resources of a server.
type residue struct{ Calls, Goroutines, Descriptors, MB int }

// Limits for the growth of a server's resources by the end, and for its memory at any time. Memory levels off at some
// 400 MB, and with the race detector at four to five times as much.
const (
	moreGoroutines, moreDescriptors = 30, 30
	mostMB                          = 3000
)

func (r residue) like(idle residue) bool {
	return r.Calls == 0 && r.Goroutines <= idle.Goroutines+moreGoroutines && r.Descriptors <= idle.Descriptors+moreDescriptors
}

// newStand starts a server with an organisation.
func newStand(t *testing.T) *stand {
	t.Helper()
	limit.Budget(t, 4*time.Hour, "fuzzes for as long as FUZZTIME says")
	s := rig.Start(t, rig.Options{Load: rig.Waits, Env: map[string]string{"SONIQ_TRANSCRIBER": "off"},
		Flags: []string{"--log-level", "error", "--web-origins", "*", "--call-rate", "100000", "--media-timeout", "5s"}})
	f := &stand{Client: s.Org("live"), pid: s.PID(), seed: uint64(time.Now().UnixNano())}
	if v, err := strconv.ParseUint(os.Getenv("SONIQ_FUZZ_SEED"), 10, 64); err == nil {
		f.seed = v
	}
	t.Logf("SONIQ_FUZZ_SEED=%d", f.seed)
	t.Cleanup(f.reportInputs)
	return f
}

// begin starts the fuzzing time; preparation before it does not count.
func (f *stand) begin() {
	f.T.Helper()
	length := 3 * time.Second
	if v := os.Getenv("FUZZTIME"); v != "" {
		var err error
		if length, err = time.ParseDuration(v); err != nil {
			f.T.Fatalf("FUZZTIME: %v", err)
		}
	}
	f.idle = f.residue()
	f.until = time.Now().Add(length)
}

// next returns the mutator of the next round, or nil when the time is up. It is safe for concurrent use.
func (f *stand) next(seeds [][]byte, words []string) *mutator {
	if time.Now().After(f.until) || f.T.Failed() {
		return nil
	}
	return f.round(f.rounds.Add(1), seeds, words)
}

func (f *stand) round(n uint64, seeds [][]byte, words []string) *mutator {
	return &mutator{rand.New(rand.NewPCG(f.seed, n)), seeds, words}
}

// sent records an input, so that the input of a failure can be found.
func (f *stand) sent(what string, b []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.recent = append(f.recent, fmt.Sprintf("%s %q", what, b[:min(len(b), 3000)]))
	if len(f.recent) > 40 {
		f.recent = f.recent[20:]
	}
}

// origin returns an unused source address, because the server blocks sources that have sent invalid requests.
func (f *stand) origin() net.IP {
	n := f.origins.Add(1)
	return net.IPv4(127, 16+byte(n>>16)%200, byte(n>>8), byte(n))
}

// alive fails unless the server is the same process, answers, and has neither panicked nor grown too large. It reads
// the figures once a second.
func (f *stand) alive() {
	f.T.Helper()
	select {
	case <-f.Server.Exited():
		f.T.Fatal("the server has ended")
	default:
	}
	f.answers()
	now := time.Now().UnixNano()
	if last := f.looked.Load(); now-last < int64(time.Second) || !f.looked.CompareAndSwap(last, now) {
		return
	}
	if n := f.metric("soniq_sip_panics_total"); n > 0 {
		f.T.Fatalf("%d panics", n)
	}
	if r := f.residue(); r.MB > mostMB {
		f.T.Fatalf("the server has grown to %+v", r)
	}
}

// answers sends OPTIONS to the server from an address of its own, and repeats it as telephones do, until there is a
// response.
func (f *stand) answers() {
	f.T.Helper()
	at, err := net.ResolveUDPAddr("udp", f.Server.SIP)
	if err != nil {
		f.T.Fatal(err)
	}
	conn, err := net.DialUDP("udp", &net.UDPAddr{IP: f.origin()}, at)
	if err != nil {
		f.T.Fatal(err)
	}
	defer conn.Close()
	answer := make([]byte, 4000)
	for range 20 {
		fmt.Fprintf(conn, "OPTIONS sip:x SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=z9hG4bK%d;rport\r\nMax-Forwards: 70\r\nFrom: <sip:a@b>;tag=1\r\n"+
			"To: <sip:x@b>\r\nCall-ID: %s\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n", conn.LocalAddr(), f.seed, conn.LocalAddr())
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		if n, err := conn.Read(answer); err == nil && strings.HasPrefix(string(answer[:n]), "SIP/2.0 200") {
			return
		}
	}
	f.T.Fatal("the server answers no OPTIONS")
}

// ends fails unless the server is the same process as before, uses no more resources, and has not panicked.
func (f *stand) ends() {
	f.T.Helper()
	f.looked.Store(0)
	f.alive()
	if f.Server.PID() != f.pid {
		f.T.Errorf("the server is process %d, and was %d", f.Server.PID(), f.pid)
	}
	r, end := f.residue(), time.Now().Add(90*time.Second)
	for tick := time.NewTicker(250 * time.Millisecond); !r.like(f.idle) && time.Now().Before(end); r = f.residue() {
		<-tick.C
		if r.Calls > f.idle.Calls {
			f.hangUpHeld()
		}
	}
	f.T.Logf("%d rounds; before %+v, after %+v; %d messages received, %d malformed, %d dropped; %d calls came, %d were answered", f.rounds.Load(), f.idle, r,
		f.metric("soniq_sip_received_total"), f.metric("soniq_sip_malformed_total"), f.metric("soniq_sip_dropped_total"),
		f.metric("soniq_calls_total"), f.metric("soniq_calls_answered_total"))
	if !r.like(f.idle) {
		f.T.Errorf("the server still holds %+v; before it was %+v%s", r, f.idle, f.held())
	}
}

// hangUpHeld hangs up the calls that a party has put on hold. A held call has no RTP, so that only its session timer would
// end it, after half an hour.
func (f *stand) hangUpHeld() {
	f.T.Helper()
	for _, id := range f.liveCalls() {
		trace := string(f.Do("GET", "/calls/"+id+"/trace", nil).Body)
		if strings.Contains(trace, "a=inactive") || strings.Contains(trace, "a=sendonly") {
			f.Do("POST", "/calls/"+id+"/end", map[string]any{})
		}
	}
}

// liveCalls returns the IDs of the calls in progress.
func (f *stand) liveCalls() (ids []string) {
	f.T.Helper()
	var live struct{ Data []struct{ ID string } }
	f.Want(200, "GET", "/calls/live", nil, &live)
	for _, c := range live.Data {
		ids = append(ids, c.ID)
	}
	return ids
}

// held returns the timelines and the SIP messages of the calls in progress.
func (f *stand) held() (told string) {
	for _, id := range f.liveCalls() {
		told += fmt.Sprintf("\n%s\n%s\n%s", id, f.Do("GET", "/calls/"+id+"/events?limit=200", nil).Body, f.Do("GET", "/calls/"+id+"/trace", nil).Body)
	}
	return told
}

func (f *stand) residue() residue {
	return residue{f.metric("soniq_calls_active"), f.metric("go_goroutines"), f.metric("process_open_fds"), f.metric("process_resident_memory_bytes") >> 20}
}

// metric returns a Prometheus metric of the server.
func (f *stand) metric(name string) int {
	f.T.Helper()
	a, err := http.Get("http://" + f.Server.HTTP + "/metrics")
	if err != nil {
		f.T.Fatal(err)
	}
	defer a.Body.Close()
	found := -1
	for in := bufio.NewScanner(a.Body); in.Scan(); {
		if value, ok := strings.CutPrefix(in.Text(), name+" "); ok {
			n, err := strconv.ParseFloat(value, 64)
			if err != nil {
				f.T.Fatal(err)
			}
			found = int(n)
		}
	}
	if found < 0 {
		f.T.Fatalf("there is no metric %s", name)
	}
	return found
}
