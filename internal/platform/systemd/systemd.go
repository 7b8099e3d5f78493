// Package systemd tells the service manager how far the process is, and that it works (sd_notify(3), systemd.service(5)).
package systemd

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// The variables by which systemd tells a service where and how often it listens.
const (
	socketVariable   = "NOTIFY_SOCKET"
	intervalVariable = "WATCHDOG_USEC"
	processVariable  = "WATCHDOG_PID"
)

// Manager sends messages to the service manager. Without one, as in a terminal, it sends nothing.
type Manager struct {
	socket   string        // "" if there is no service manager
	watchdog time.Duration // how long it waits for a sign of life; 0: for none
	log      *slog.Logger
}

// FromEnvironment returns the service manager that started this process. It removes the variables, so that programs which soniq starts do
// not speak in its name.
func FromEnvironment(log *slog.Logger) *Manager {
	m := &Manager{socket: os.Getenv(socketVariable), log: log}
	micros, err := strconv.ParseInt(os.Getenv(intervalVariable), 10, 64)
	if pid := os.Getenv(processVariable); err == nil && micros > 0 && (pid == "" || pid == strconv.Itoa(os.Getpid())) {
		m.watchdog = time.Duration(micros) * time.Microsecond
	}
	for _, name := range []string{socketVariable, intervalVariable, processVariable} {
		_ = os.Unsetenv(name)
	}
	return m
}

// Ready tells that the service has started, or that it has read its configuration again.
func (m *Manager) Ready(status string) { m.send("READY=1", "STATUS="+status) }

// Reloading tells that the service reads its configuration again. Ready ends it.
func (m *Manager) Reloading() {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		m.log.Warn("no reload reported to the service manager", "err", err)
		return
	}
	m.send("RELOADING=1", "MONOTONIC_USEC="+strconv.FormatInt(now.Nano()/1000, 10))
}

// Stopping tells that the service ends, and how long that may take, so that it is not killed before.
func (m *Manager) Stopping(most time.Duration, status string) {
	m.send("STOPPING=1", "EXTEND_TIMEOUT_USEC="+strconv.FormatInt(most.Microseconds(), 10), "STATUS="+status)
}

// Health tells whether a service works. Alive returns an error once the context has ended.
type Health interface {
	Alive(ctx context.Context) error
}

// Watch notifies the watchdog at half of its interval until the context ends, each time only after h has answered that the service works.
// If none comes, the service manager restarts the service.
func (m *Manager) Watch(ctx context.Context, h Health) {
	if m.socket == "" || m.watchdog == 0 {
		return
	}
	interval := m.watchdog / 2
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		asking, cancel := context.WithTimeout(ctx, interval)
		err := h.Alive(asking)
		cancel()
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			m.log.Error("no sign of life for the watchdog of the service manager", "err", err)
		default:
			m.send("WATCHDOG=1")
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// send sends lines to the service manager. A failure is only logged: the service itself works.
func (m *Manager) send(lines ...string) {
	if m.socket == "" {
		return
	}
	if err := m.write(strings.Join(lines, "\n")); err != nil {
		m.log.Warn("the service manager was not told", "message", lines[0], "err", err)
	}
}

func (m *Manager) write(text string) error {
	// Go turns @ at the beginning into the zero octet of abstract sockets (unix(7)).
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: m.socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := c.Write([]byte(text)); err != nil {
		return fmt.Errorf("write to %s: %w", m.socket, err)
	}
	return nil
}
