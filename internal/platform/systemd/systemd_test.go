package systemd

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// listen opens the socket of a service manager, and returns the messages that arrive.
func listen(t *testing.T) (socket string, messages <-chan string) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	all := make(chan string, 100)
	go func() {
		defer close(all)
		for buffer := make([]byte, 4096); ; {
			n, err := c.Read(buffer)
			if err != nil {
				return
			}
			all <- string(buffer[:n])
		}
	}()
	return socket, all
}

// health works while sick is false.
type health struct{ sick, hangs atomic.Bool }

// Alive implements Health.
func (h *health) Alive(ctx context.Context) error {
	if h.hangs.Load() {
		<-ctx.Done()
		return ctx.Err()
	}
	if h.sick.Load() {
		return errors.New("sick")
	}
	return nil
}

// https://github.com/caddyserver/caddy/issues/755
func TestWatch_OnlyWhileHealthy(t *testing.T) {
	socket, messages := listen(t)
	t.Setenv(socketVariable, socket)
	t.Setenv(intervalVariable, "100000")
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	m := FromEnvironment(log)
	if os.Getenv(socketVariable)+os.Getenv(intervalVariable) != "" {
		t.Error("programs that the service starts inherit the variables")
	}
	h := &health{}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); m.Watch(ctx, h) }()
	for range 3 {
		if got := <-messages; got != "WATCHDOG=1" {
			t.Fatalf("told %q", got)
		}
	}
	for _, unhealthy := range []*atomic.Bool{&h.sick, &h.hangs} {
		unhealthy.Store(true)
		settled := time.After(time.Second)
		last := 0
		for waiting := true; waiting; {
			select {
			case <-messages:
				last++
			case <-settled:
				waiting = false
			}
		}
		if last > 1 { // one may have been on its way
			t.Errorf("%d signs of life of a service that does not work", last)
		}
		unhealthy.Store(false)
		if got := <-messages; got != "WATCHDOG=1" {
			t.Fatalf("told %q after the recovery", got)
		}
	}
	cancel()
	<-ended
}

// https://github.com/caddyserver/caddy/issues/755
func TestMessages_OfServiceManager(t *testing.T) {
	socket, messages := listen(t)
	t.Setenv(socketVariable, socket)
	t.Setenv(intervalVariable, "1000000")
	t.Setenv(processVariable, "1") // the watchdog is for another process
	m := FromEnvironment(slog.New(slog.NewTextHandler(io.Discard, nil)))
	m.Watch(context.Background(), nil) // returns at once
	m.Ready("ready")
	m.Reloading()
	m.Stopping(90*time.Second, "stopping")
	for _, want := range []string{"READY=1\nSTATUS=ready", "RELOADING=1\nMONOTONIC_USEC=", "STOPPING=1\nEXTEND_TIMEOUT_USEC=90000000\nSTATUS=stopping"} {
		if got := <-messages; !strings.HasPrefix(got, want) {
			t.Errorf("told %q, want %q", got, want)
		}
	}
	FromEnvironment(nil).Ready("without a service manager")
}
