package sip_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

// processCPUTime returns the CPU time of this process so far.
func processCPUTime() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkRelayedCalls drives sipp through the relay, callers and callees on the same machine, and reports this
// process's CPU per call (both legs). The environment variable RATE sets the calls per second, 1,000 by default. One
// iteration is one call, so run it with -benchtime=8000x.
func BenchmarkRelayedCalls(b *testing.B) {
	rate := 1000
	if v := os.Getenv("RATE"); v != "" {
		rate, _ = strconv.Atoi(v)
	}
	if b.N < 100 {
		return
	}
	far := freePortBlock(b)
	r := newTestRelay(b, sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{}}, fmt.Sprintf("127.0.0.1:%d", far))
	big := []string{"-l", "20000", "-buff_size", "4194304"}
	uas := startSIPp(b, "uas_plain", far, append(big, "-m", strconv.Itoa(b.N))...)
	waitForUDPPort(b, far)
	before := processCPUTime()
	uac := startSIPp(b, "uac_plain", freePortBlock(b), append(big, r.Addr().String(), "-s", "1000", "-m", strconv.Itoa(b.N), "-d", "500", "-r", strconv.Itoa(rate))...)
	uac.wait(b)
	used := processCPUTime() - before
	uas.cmd.Process.Kill()
	uas.cmd.Wait()
	st := r.Stats()
	if b.Failed() {
		b.Logf("%+v", st)
	}
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	b.ReportMetric(used.Seconds()*1e3/float64(b.N), "cpu-ms/call")
	b.ReportMetric(float64(st.Received+st.Sent)/float64(b.N), "msgs/call")
	b.ReportMetric(float64(st.Retransmissions), "retrans")
	b.ReportMetric(float64(st.Rejected), "503s")
	b.ReportMetric(float64(mem.HeapAlloc)/1e6, "heap-MB")
}

// BenchmarkHeldCalls keeps calls up and reports the memory of one dialog: one leg of a call, including its
// transactions.
func BenchmarkHeldCalls(b *testing.B) {
	many := sip.Config{Limits: sip.Limits{InvitesPerSecond: 1 << 20, Calls: 1 << 20}}
	pa, pb := newTestServer(b, many), newTestServer(b, many)
	go func() {
		for in := range pb.calls {
			in.Listen(func(sip.Event) {})
			in.Answer(testAnswerSDP)
		}
	}()
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	before := heap()
	answered := make(eventLog, b.N)
	for range b.N {
		_, err := pa.Server.Invite(context.Background(), sip.Outgoing{URI: pb.uri("bob"), SDP: testOfferSDP}, func(e sip.Event) {
			if _, ok := e.(sip.Answered); ok {
				answered <- e
			}
		})
		if err != nil {
			b.Fatal(err)
		}
		wantEvent[sip.Answered](b, answered)
	}
	b.ReportMetric((heap()-before)/float64(2*b.N)/1024, "KiB/dialog")
	b.ReportMetric(float64(pa.Stats().Dialogs+pb.Stats().Dialogs)/float64(b.N), "dialogs/call")
}
