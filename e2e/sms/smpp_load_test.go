package sms

import (
	"context"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/rig"
	"soniq/internal/protocol/smpp"
)

// TestSMPP_Throughput measures the messages per second from POST /sms to a centre made of npm's smpp and back as
// receipts. It also measures soniq's SMPP client alone with that centre.
func TestSMPP_Throughput(t *testing.T) {
	if os.Getenv("SONIQ_BENCH") == "" {
		t.Skip("SONIQ_BENCH=1 runs this, with nothing else on the machine")
	}
	rig.Each(t, rig.Options{Env: fixture.NoSpeech, Flags: []string{"--rate-reads", "0", "--rate-writes", "0", "--rate-burst", "0"}}, func(t *testing.T, s *rig.Server) {
		const all, writers = 2000, 16
		c := newSMSC(t)
		x := connectSMSC(fixture.NewOrg(s), c, map[string]any{"window": 50}, map[string]any{"rate_per_second": 5000, "number_rate_per_second": 5000})
		x.waitCarrier("active")
		began := time.Now()
		var work sync.WaitGroup
		for w := range writers {
			work.Go(func() {
				for i := w; i < all; i += writers {
					to := fmt.Sprintf("+1202%03d%02d%02d", 555, 30+i/70%60, 20+i%70)
					x.Want(201, "POST", "/sms", map[string]any{"from": x.from, "to": to, "body": "How many of these go in a second?"}, nil)
				}
			})
		}
		work.Wait()
		posted := time.Since(began)
		rig.Until(t, "all messages at the centre", 2*time.Minute, func() bool { return len(c.all("submit", "")) >= all })
		arrived := time.Since(began)
		rig.Until(t, "all receipts taken", 2*time.Minute, func() bool { return len(c.all("receipt_taken", "")) >= all })
		told := time.Since(began)
		load, _ := os.ReadFile("/proc/loadavg")
		t.Logf("%d messages: accepted %.0f/s, at the centre %.0f/s, with receipts %.0f/s; %s; load %s", all, all/posted.Seconds(), all/arrived.Seconds(),
			all/told.Seconds(), processorTime(t, s.PID(), all), strings.Fields(string(load))[0])
	})
	t.Run("client alone", measureClient)
}

// processorTime returns the processor time that each message has cost a process since its start.
func processorTime(t *testing.T, pid, messages int) string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	var user, system int
	fields := strings.Fields(string(b[strings.LastIndexByte(string(b), ')')+1:]))
	fmt.Sscan(fields[11], &user)
	fmt.Sscan(fields[12], &system)
	return fmt.Sprintf("%.1f ms of CPU each", float64(user+system)*10/float64(messages))
}

// ignoreAll is a client handler that accepts everything.
type ignoreAll struct{}

func (ignoreAll) Message(context.Context, smpp.Incoming) error { return nil }

func (ignoreAll) Receipt(context.Context, smpp.Receipt) error { return nil }

func (ignoreAll) StateChanged(error) {}

// measureClient measures soniq's SMPP client with that centre, without a platform.
func measureClient(t *testing.T) {
	c := newSMSC(t)
	client, err := smpp.New(smpp.Config{Address: fmt.Sprintf("127.0.0.1:%d", c.port), SystemID: "raw", Window: 50, Dialer: &net.Dialer{},
		Handler: ignoreAll{}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var run, work sync.WaitGroup
	run.Go(func() { client.Run(ctx) })
	if err := client.WaitBound(ctx); err != nil {
		t.Fatal(err)
	}
	const all, writers = 10_000, 50
	began := time.Now()
	for range writers {
		work.Go(func() {
			for range all / writers {
				if _, err := client.Submit(ctx, smpp.Outgoing{From: smpp.ParseAddress("+12025550143"),
					To: smpp.ParseAddress("+12025550170"), Text: "How many of these go in a second?"}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	t.Logf("the client alone: %.0f messages/s", all/time.Since(began).Seconds())
	cancel()
	run.Wait()
}
