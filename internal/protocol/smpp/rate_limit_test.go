package smpp

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

func TestSubmit_RateLimit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := pipeClient(t, respondWith(func(int) Status { return OK }), func(c *Config) { c.PerSecond = 10 })
		c.WaitBound(t.Context())
		began := time.Now()
		done := make(chan error)
		for range 51 {
			go func() {
				_, err := c.Submit(t.Context(), newMessage("x"))
				done <- err
			}()
		}
		for range 51 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if d := time.Since(began); d != 5*time.Second {
			t.Errorf("51 messages in %s", d)
		}
	})
}

func TestSubmit_ThrottlingBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := pipeClient(t, respondWith(func(n int) Status {
			return []Status{0, Throttled, QueueFull, Throttled, OK, OK, Throttled}[min(n, 6)]
		}), nil)
		c.WaitBound(t.Context())
		began := time.Now()
		for i, want := range []struct{ at, pause time.Duration }{{0, 1}, {1, 2}, {3, 4}, {7, 0}, {7, 0}, {7, 1}} {
			_, err := c.Submit(t.Context(), newMessage("x"))
			if at := time.Since(began); at != want.at*time.Second {
				t.Errorf("message %d was sent after %s", i, at)
			}
			if want.pause > 0 && (asError(t, err).Outcome != Retryable || asError(t, err).Wait != want.pause*time.Second) ||
				want.pause == 0 && err != nil {
				t.Errorf("message %d: %+v", i, err)
			}
		}
		short, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := c.Submit(short, newMessage("x")); OutcomeOf(err) != Retryable {
			t.Errorf("who cannot wait: %v", err)
		}
	})
}

func TestServer_Throttles(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		conn, _ := pipeServer(t, "fast", func(c *ServerConfig) {
			handlerOf(c).authenticate = func(context.Context, Login) (Account, error) { return Account{ID: "fast", PerSecond: 2}, nil }
		})
		var all []Status
		for i := range 6 {
			if i == 4 {
				time.Sleep(500 * time.Millisecond)
			}
			all = append(all, requestPDU(t, conn, PDU{Command: SubmitSM, Sequence: uint32(i),
				Body: newMessage("x").message(Part{})}).Status)
		}
		if want := []Status{OK, OK, Throttled, Throttled, OK, Throttled}; !slices.Equal(all, want) {
			t.Errorf("%v", all)
		}
	})
}

func TestServer_InboxLimit(t *testing.T) {
	t.Parallel()
	for waiting, most := range map[int]int{0: inboxSize, 5: 5} {
		checkInboxLimit(t, waiting, most)
	}
}

func checkInboxLimit(t *testing.T, waiting, most int) {
	synctest.Test(t, func(t *testing.T) {
		conn, _ := pipeServer(t, "fast", func(c *ServerConfig) {
			handlerOf(c).authenticate = func(context.Context, Login) (Account, error) {
				return Account{ID: "fast", MaxPending: waiting}, nil
			}
			handlerOf(c).message = func(ctx context.Context, _ Incoming) error { time.Sleep(10 * time.Second); return nil }
			c.IdleTimeout = time.Hour
		})
		const sent = inboxSize + 20
		go func() {
			for i := range sent {
				b, _ := PDU{Command: SubmitSM, Sequence: uint32(i), Body: newMessage("x").message(Part{})}.Encode()
				conn.Write(b)
			}
		}()
		taken, throttled := 0, 0
		for range sent {
			switch p, err := read(conn); {
			case err != nil:
				t.Fatal(err)
			case p.Status == Throttled:
				throttled++
			case p.Status == OK:
				taken++
			}
		}
		if taken < most || taken > most+1 || taken+throttled != sent {
			t.Errorf("%d taken, %d throttled", taken, throttled)
		}
	})
}
