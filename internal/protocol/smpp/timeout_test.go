package smpp

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipeClient runs a client over pipes, with the SMSC's side given; it ends with the test.
func pipeClient(t *testing.T, peer func(net.Conn), change func(*Config)) *Client {
	t.Helper()
	config := Config{Address: "centre:2775", SystemID: "esme", Handler: &fakeClient{message: acceptAll},
		Dialer: dialFunc(func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go peer(far)
			return near, nil
		})}
	if change != nil {
		change(&config)
	}
	c, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { c.Run(ctx); close(ended) }()
	t.Cleanup(func() { cancel(); <-ended })
	return c
}

// pipeServer runs a server over a pipe. It is bound if name is not empty.
func pipeServer(t *testing.T, name string, change func(*ServerConfig)) (net.Conn, *Server) {
	t.Helper()
	config := ServerConfig{Handler: &fakeHandler{message: acceptAll,
		authenticate: func(_ context.Context, l Login) (Account, error) { return Account{ID: l.SystemID}, nil }}}
	if change != nil {
		change(&config)
	}
	s, err := NewServer(config)
	if err != nil {
		t.Fatal(err)
	}
	near, far := net.Pipe()
	ended := make(chan struct{})
	go func() { s.serve(context.Background(), far); close(ended) }()
	t.Cleanup(func() { near.Close(); <-ended })
	if name != "" {
		if p := requestPDU(t, near, PDU{Command: BindTransceiver, Sequence: 1,
			Body: &Bind{SystemID: name, InterfaceVersion: 0x50}}); p.Status != OK {
			t.Fatalf("%+v", p)
		}
	}
	return near, s
}

func sendPDU(t *testing.T, conn net.Conn, p PDU) {
	t.Helper()
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(b); err != nil {
		t.Fatal(err)
	}
}

func requestPDU(t *testing.T, conn net.Conn, p PDU) PDU {
	t.Helper()
	sendPDU(t, conn, p)
	a, err := read(conn)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func TestClient_ReconnectBackoff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var tries []time.Time
		pipeClient(t, nil, func(c *Config) {
			c.Dialer = dialFunc(func(context.Context, string, string) (net.Conn, error) {
				tries = append(tries, time.Now())
				return nil, errors.New("refused")
			})
		})
		time.Sleep(30 * time.Minute)
		synctest.Wait()
		full := time.Second
		var last []time.Duration
		for i := 1; i < len(tries); i++ {
			gap := tries[i].Sub(tries[i-1])
			if gap < full/2 || gap > full {
				t.Errorf("try %d came after %s, not after %s or half of it", i, gap, full)
			}
			if full == time.Minute {
				last = append(last, gap)
			}
			full = min(2*full, time.Minute)
		}
		if len(last) < 20 || slices.Max(last) == slices.Min(last) {
			t.Errorf("%v", last)
		}
	})
}

func TestClient_SilentServerDisconnected(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		binds := 0
		c := pipeClient(t, func(conn net.Conn) {
			p, _ := read(conn)
			binds++
			b, _ := PDU{Command: p.Command.Response(), Sequence: p.Sequence}.Encode()
			conn.Write(b)
			io.Copy(io.Discard, conn)
		}, nil)
		time.Sleep(59 * time.Second)
		if synctest.Wait(); binds != 1 || c.State() != nil {
			t.Errorf("after 59 s: %d binds, %v", binds, c.State())
		}
		time.Sleep(3 * time.Second)
		if synctest.Wait(); binds != 2 {
			t.Errorf("after a minute: %d binds", binds)
		}
	})
}

func TestClient_BindTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tries := 0
		pipeClient(t, func(conn net.Conn) { tries++; io.Copy(io.Discard, conn) }, nil)
		time.Sleep(12 * time.Second)
		if synctest.Wait(); tries != 2 {
			t.Errorf("%d tries", tries)
		}
	})
}

func TestServer_IdleClientUnbound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		conn, s := pipeServer(t, "idle", nil)
		p, err := read(conn)
		if gone := time.Since(began); err != nil || p.Command != Unbind || gone != 2*time.Minute {
			t.Errorf("%+v %v after %s", p, err, gone)
		}
		sendPDU(t, conn, PDU{Command: Unbind.Response(), Sequence: p.Sequence})
		if synctest.Wait(); s.BindCount("idle") != 0 {
			t.Error("it is still bound")
		}
		lively, s := pipeServer(t, "lively", nil)
		for range 10 {
			time.Sleep(time.Minute)
			if p := requestPDU(t, lively, PDU{Command: EnquireLink, Sequence: 7}); p.Command != EnquireLink.Response() || p.Sequence != 7 {
				t.Fatalf("%+v", p)
			}
		}
		if s.BindCount("lively") != 1 {
			t.Error("it was told to go")
		}
	})
}

func TestServer_SlowOrUnboundClientClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		conn, _ := pipeServer(t, "", nil)
		if _, err := conn.Read(make([]byte, 1)); err == nil || time.Since(began) != 10*time.Second {
			t.Errorf("without a login: %v after %s", err, time.Since(began))
		}
		conn, _ = pipeServer(t, "slow", nil)
		began = time.Now()
		go io.Copy(io.Discard, conn)
		for b, _ := (PDU{Command: EnquireLink}).Encode(); ; time.Sleep(20 * time.Second) {
			if _, err := conn.Write(b[:1]); err != nil {
				break
			}
			if b = b[1:]; len(b) == 1 {
				b = []byte{0, 0, 0}
			}
		}
		if d := time.Since(began); d > 4*time.Minute {
			t.Errorf("an octet at a time: %s", d)
		}
	})
}

// respondWith returns an SMSC's side with the statuses of a function in the responses to messages.
func respondWith(status func(n int) Status) func(net.Conn) {
	n := 0
	return func(conn net.Conn) {
		serveFake(conn, func(p PDU, answer func(PDU)) {
			n++
			answer(PDU{Command: p.Command.Response(), Status: status(n), Sequence: p.Sequence})
		})
	}
}

func TestSubmit_PeerNotReadingIsRetryable(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := pipeClient(t, func(conn net.Conn) {
			p, _ := read(conn)
			b, _ := PDU{Command: p.Command.Response(), Sequence: p.Sequence}.Encode()
			conn.Write(b)
		}, func(c *Config) { c.ResponseTimeout = 10 * time.Second })
		c.WaitBound(t.Context())
		_, err := c.Submit(t.Context(), newMessage("x"))
		if OutcomeOf(err) != Retryable || !errors.Is(err, ErrSlow) {
			t.Errorf("%v", err)
		}
		if synctest.Wait(); !errors.Is(c.State(), ErrNotBound) {
			t.Errorf("%v", c.State())
		}
	})
}

func TestParts_IncompletePassedOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		got, at := make(chan Incoming, 10), time.Now()
		parts, _ := TextSettings{}.Parts(strings.Repeat("long ", 100), 9)
		calls := 0
		pipeClient(t, func(conn net.Conn) {
			p, _ := read(conn)
			for i, send := range []PDU{{Command: p.Command.Response(), Sequence: p.Sequence},
				{Command: DeliverSM, Body: newMessage("").message(parts[0])}, {Command: DeliverSM, Body: newMessage("").message(parts[2])},
				{Command: DeliverSM, Body: newMessage("").message(parts[2])}} {
				b, _ := send.Encode()
				conn.Write(b)
				if i > 0 {
					read(conn)
				}
			}
			serveFake(conn, nil)
		}, func(c *Config) {
			clientOf(c).message = func(_ context.Context, in Incoming) error {
				got <- in
				if calls++; calls == 1 {
					return errors.New("not now")
				}
				return nil
			}
		})
		for range 2 { // the first one is refused
			in := <-got
			if len(parts) != 4 || in.Parts != 4 || in.Missing != 2 || !strings.HasPrefix(in.Text, "long long") ||
				strings.Count(in.Text, "…") != 1 {
				t.Errorf("%d parts: %+v", len(parts), in)
			}
			if d := time.Since(at); d < 5*time.Minute || d > 8*time.Minute {
				t.Errorf("after %s", d)
			}
		}
		time.Sleep(time.Hour)
		if len(got) != 0 {
			t.Errorf("%d more", len(got))
		}
	})
}

func TestClient_ShutdownWaitsForResponses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		config := Config{Address: "centre:2775", SystemID: "esme", Handler: &fakeClient{message: acceptAll}}
		config.Dialer = dialFunc(func(context.Context, string, string) (net.Conn, error) {
			near, far := net.Pipe()
			go serveFake(far, func(p PDU, answer func(PDU)) { // unbind gets its response at once
				time.AfterFunc(2*time.Second, func() { answer(PDU{Command: p.Command.Response(), Sequence: p.Sequence}) })
			})
			return near, nil
		})
		c, err := New(config)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() { c.Run(ctx); close(ended) }()
		c.WaitBound(t.Context())
		sent := make(chan error, 1)
		go func() {
			_, err := c.Submit(t.Context(), newMessage("x"))
			sent <- err
		}()
		synctest.Wait()
		cancel()
		if err := <-sent; err != nil {
			t.Errorf("%v", err)
		}
		<-ended
	})
}
