package call

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// Defaults for SONIQ_SOAK_CALLS, SONIQ_SOAK_RATE and SONIQ_SOAK_OVERLOAD: number of calls, calls per second, and
// calls per second in an overload.
const (
	soakCalls    = 100_000
	soakRate     = 300
	soakOverload = 3000
)

// resources counts the resources of a server: goroutines, sockets, memory.
type resources struct {
	Calls, Goroutines, Descriptors, Sockets int
	MB, Heap                                int // resident memory, and the part allocated by Go
}

func (r resources) String() string {
	return fmt.Sprintf("%d calls, %d goroutines, %d descriptors, %d UDP sockets, %d MB (heap %d)", r.Calls, r.Goroutines, r.Descriptors,
		r.Sockets, r.MB, r.Heap)
}

// Limits for the growth of a server's resources after its calls are over: connections of the test itself, and memory
// that the garbage collector has not returned yet.
const (
	moreGoroutines, moreDescriptors = 20, 20
	moreMB                          = 50
)

// within reports whether a server holds little more than when idle.
func (r resources) within(idle resources) bool {
	return r.Calls == 0 && r.Sockets <= idle.Sockets && r.Goroutines <= idle.Goroutines+moreGoroutines &&
		r.Descriptors <= idle.Descriptors+moreDescriptors && r.MB <= idle.MB+moreMB
}

func TestSoak_ShortCallsLeakNothing(t *testing.T) {
	if os.Getenv("SONIQ_SOAK_BINARY") == "" {
		t.Skip("make soak runs this, with a release build named by SONIQ_SOAK_BINARY")
	}
	limit.Budget(t, 24*time.Hour, "100,000 calls")
	f := newLoadTest(t)
	f.calls(500, 100).Wait()
	idle := f.waitIdle(resources{MB: 1 << 20, Goroutines: 1 << 20, Descriptors: 1 << 20, Sockets: 1 << 20})
	n, rate := fixture.EnvInt("SONIQ_SOAK_CALLS", soakCalls), fixture.EnvInt("SONIQ_SOAK_RATE", soakRate)
	answered, refused := f.run(n, rate)
	busy := f.resources()
	t.Logf("%d calls at %d/s: %d answered, %d refused; idle %s; at the end %s; then %s", n, rate, answered, refused, idle, busy, f.waitIdle(idle))
	if answered+refused < n || refused > n/1000 {
		t.Errorf("of %d calls %d were answered and %d refused", n, answered, refused)
	}

	steady := f.start(20, 20, 30*time.Second)
	rig.Until(t, "the calls in progress", 20*time.Second, func() bool { return f.resources().Calls >= 20 })
	rate = fixture.EnvInt("SONIQ_SOAK_OVERLOAD", soakOverload)
	answered, refused = f.run(10*rate, rate)
	busy = f.resources()
	steady.Wait()
	t.Logf("overload, %d calls at %d/s: %d answered, %d refused with 503; at the end %s; then %s", 10*rate, rate, answered, refused, busy, f.waitIdle(idle))
	if refused == 0 {
		t.Errorf("nobody was refused at %d calls a second: no overload on this machine, ask for more", rate)
	}
}

// run makes calls. It counts those that were answered, and those refused with 503. A sipp that fails is no error here.
func (f *loadTest) run(n, rate int) (answered, refused int) {
	answered, refused = -f.answered(), -f.refused()
	_ = f.calls(n, rate).End()
	return answered + f.answered(), refused + f.refused()
}

// answered returns how many calls the server has answered.
func (f *loadTest) answered() int { return f.metric("soniq_calls_answered_total") }

// refused returns how many calls the server has refused.
func (f *loadTest) refused() int {
	return f.metric("soniq_calls_turned_away_total") + f.metric("soniq_sip_rejected_total")
}

// loadTest makes many calls through a server.
type loadTest struct {
	*rig.Server
	way fixture.Carrier
}

// newLoadTest starts a server with a carrier and a registered sipp.
func newLoadTest(t *testing.T) *loadTest {
	s := rig.Start(t, rig.Options{Binary: os.Getenv("SONIQ_SOAK_BINARY"), Load: rig.All, Env: fixture.NoSpeech, Flags: []string{"--max-calls", "20000", "--call-rate", "10000", "--log-level", "error"}, Upset: true})
	company := &fixture.Org{Client: s.Org("live")}
	user := company.AddUser("Ada")
	f := &loadTest{Server: s, way: company.AddCarrier(user.ID, nil)}
	phone := s.Sipp(rig.Script{Scenario: "register", Login: &user.SIP, Expires: 3600}) // longer than the calls last
	phone.Wait()
	s.Sipp(rig.Script{Scenario: "answer", Calls: 1 << 30, Port: phone.Port, From: user.SIP.Username, Quiet: true, Limit: time.Hour})
	return f
}

// calls makes calls of a fifth of a second.
func (f *loadTest) calls(n, rate int) *rig.Sipp { return f.start(n, rate, 200*time.Millisecond) }

// start starts calls of a length at a rate.
func (f *loadTest) start(n, rate int, talk time.Duration) *rig.Sipp {
	return f.Sipp(rig.Script{Scenario: "call", Calls: n, Rate: rate, IP: f.way.IP, From: "+12125550177", Number: f.way.Number,
		Talk: talk, Quiet: true, Limit: time.Hour})
}

// waitIdle waits up to a minute until the server holds no more than when idle.
func (f *loadTest) waitIdle(idle resources) (r resources) {
	f.T.Helper()
	end := time.After(limit.Hang(0))
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for r = f.resources(); !r.within(idle); r = f.resources() {
		select {
		case <-tick.C:
		case <-end:
			f.T.Errorf("a minute later the server still holds %s; idle it was %s", r, idle)
			return r
		}
	}
	return r
}

// resources reads the resources that the server uses.
func (f *loadTest) resources() resources {
	return resources{Calls: f.metric("soniq_calls_active"), Goroutines: f.metric("go_goroutines"), Descriptors: f.metric("process_open_fds"),
		Sockets: f.sockets(), MB: f.metric("process_resident_memory_bytes") >> 20, Heap: f.metric("go_memstats_heap_alloc_bytes") >> 20}
}

// metric reads a metric of the server.
func (f *loadTest) metric(name string) int { return fixture.Metric(f.Server, name) }

// sockets counts the server's UDP sockets: those of its media, and a few of signalling.
func (f *loadTest) sockets() (n int) {
	table, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/udp", f.PID()))
	six, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/udp6", f.PID()))
	inodes := map[string]bool{}
	for line := range strings.Lines(string(table) + string(six)) {
		if fields := strings.Fields(line); len(fields) > 9 {
			inodes["socket:["+fields[9]+"]"] = true
		}
	}
	dir := fmt.Sprintf("/proc/%d/fd/", f.PID())
	all, _ := os.ReadDir(dir)
	for _, fd := range all {
		if at, err := os.Readlink(dir + fd.Name()); err == nil && inodes[at] {
			n++
		}
	}
	return n
}
