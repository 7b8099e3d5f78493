// Package crash_test kills the running binary under load and checks that no data is lost.
package crash_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// kills returns how often the server is killed: a few times in make test, more with SONIQ_SOAK.
func kills() int {
	if os.Getenv("SONIQ_SOAK") != "" {
		return 20
	}
	return 4
}

// rate returns the calls a second: half of them in make test, all with SONIQ_SOAK. A server that lacks processor time
// records late, which says nothing about a crash.
func rate(full int) int {
	if os.Getenv("SONIQ_SOAK") != "" {
		return full
	}
	return full / 2
}

// TestCrash_LosesNothing kills the server at random moments during calls, recordings, webhooks and REST writes, and
// starts it again on the same data. Everything acknowledged must be there, exactly once.
func TestCrash_LosesNothing(t *testing.T) {
	limit.Budget(t, 120*time.Second, "the server is killed four times under traffic")
	web, sip := rig.FreePort(t), rig.FreePort(t)
	flags := []string{"--http", fmt.Sprintf("127.0.0.1:%d", web), "--sip", fmt.Sprintf("127.0.0.1:%d", sip), "--transcriber", "off"}
	rig.Each(t, rig.Options{Load: rig.All, Flags: flags}, func(t *testing.T, s *rig.Server) {
		l := newLoop(t, s)
		crowds := l.call()
		writes := startWriter(t, l.c)
		for range kills() {
			wait(time.Duration(300+rand.IntN(1200)) * time.Millisecond)
			l.kill()
		}
		wait(time.Second)
		for _, p := range crowds {
			p.stop()
			l.answered = append(l.answered, p.answered()...)
		}
		writes.check()
		l.settle()
		l.check()
	})
}

// wait waits while the load goes on.
func wait(d time.Duration) { <-time.After(d) }

// loop is a server under load.
type loop struct {
	t     *testing.T
	s     *rig.Server
	c     *rig.Client
	disk  *disk
	hooks *hooks

	number   string
	carrier  string // address the callers come from
	killed   []time.Time
	starts   []time.Duration
	answered []string // connected callers
}

func newLoop(t *testing.T, s *rig.Server) *loop {
	l := &loop{t: t, s: s, c: s.Org("live"), number: "+12025550150", carrier: "127.3.0.1", disk: watchDisk(t, t.TempDir())}
	l.hooks = startHooks(l.c)
	user := l.c.AddUser("Agent")
	startPhone(t, s, user.SIP)
	var trunk struct{ ID string }
	l.c.Want(201, "POST", "/trunks", map[string]any{"name": "carrier", "host": l.carrier, "inbound": map[string]any{"allowed_ips": []string{l.carrier}}}, &trunk)
	l.c.Want(201, "POST", "/numbers", map[string]any{"number": l.number, "trunk_id": trunk.ID, "user_id": user.ID}, nil)
	return l
}

// call starts two crowds of callers: many that hang up soon, and some that send audio.
func (l *loop) call() []*callers {
	return []*callers{
		startCallers(l.t, l.s, crowd{ip: l.carrier, number: l.number, first: 2000000, rate: rate(12), shortest: 50 * time.Millisecond,
			longest: 2 * time.Second}),
		startCallers(l.t, l.s, crowd{ip: l.carrier, number: l.number, first: 3000000, rate: rate(4), shortest: 2 * time.Second,
			longest: 5 * time.Second, play: true}),
	}
}

// kill kills the server and starts it again. The time of the kill is that of the signal: the wait for the end of the process may take
// seconds on a busy machine.
func (l *loop) kill() {
	l.t.Helper()
	l.killed = append(l.killed, time.Now())
	l.s.Kill()
	start := time.Now()
	l.s.Start()
	l.starts = append(l.starts, time.Since(start))
}

// settle waits until no call is in progress, no recording is being made and every event has been delivered.
func (l *loop) settle() {
	l.t.Helper()
	rig.Until(l.t, "end of the last call", 40*time.Second, func() bool {
		var live struct{ Data []any }
		l.c.Want(200, "GET", "/calls/live", nil, &live)
		return len(live.Data) == 0
	})
	rig.Until(l.t, "end of the last recording", 20*time.Second, func() bool {
		var open struct{ Data []any }
		l.c.Want(200, "GET", "/recordings?status=recording,processing,paused", nil, &open)
		return len(open.Data) == 0
	})
	ended := 0
	for range list[record](l.t, l.c, "/cdr?limit=200") {
		ended++
	}
	rig.Until(l.t, fmt.Sprintf("%d times call.ended", ended), 60*time.Second, func() bool { return l.hooks.count("call.ended") >= ended })
	rig.Until(l.t, "delivery of every event", 60*time.Second, func() bool {
		for d := range list[delivery](l.t, l.c, "/webhooks/"+l.hooks.ID+"/deliveries?limit=200") {
			if d.Status != "succeeded" {
				return false
			}
		}
		return true
	})
}
