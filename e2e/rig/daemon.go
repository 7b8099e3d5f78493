package rig

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"soniq/e2e/limit"
)

// Daemon is a third-party server on a free loopback port with a folder of its own. It ends with the test.
type Daemon struct {
	T       testing.TB
	Address string // host:port

	command *exec.Cmd
	exited  chan struct{}
	out     *log
}

// daemon starts a program that listens at an address, and waits until it does. Its limit of open files is that of a
// usual machine, because some programs allocate memory for the highest possible number of files.
func daemon(t testing.TB, address, name string, args ...string) *Daemon {
	t.Helper()
	d := &Daemon{T: t, Address: address, exited: make(chan struct{}), out: &log{}}
	d.command = exec.Command("sh", append([]string{"-c", `ulimit -n 1024; exec "$0" "$@"`, name}, args...)...)
	d.command.Stdout, d.command.Stderr = d.out, d.out
	if err := Launch(d.command); err != nil {
		t.Fatal(err)
	}
	go func() {
		_ = d.command.Wait()
		close(d.exited)
	}()
	t.Cleanup(d.End)
	Until(t, name+" to listen", time.Minute, func() bool {
		select {
		case <-d.exited:
			t.Fatalf("%s ended: %s", name, d.out)
		default:
		}
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	})
	return d
}

// End kills the program and waits until it has ended.
func (d *Daemon) End() {
	_ = d.command.Process.Kill()
	<-d.exited
}

// Freeze stops the program with SIGSTOP. The kernel still accepts connections for it, but it sends no response until
// Thaw.
func (d *Daemon) Freeze() {
	d.T.Helper()
	if err := d.command.Process.Signal(syscall.SIGSTOP); err != nil {
		d.T.Fatal(err)
	}
	Until(d.T, "it to stand still", time.Second, func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", d.command.Process.Pid))
		return err == nil && bytes.Contains(b, []byte(") T "))
	})
}

// Thaw continues the program after Freeze.
func (d *Daemon) Thaw() { _ = d.command.Process.Signal(syscall.SIGCONT) }

// Log returns the output of the program.
func (d *Daemon) Log() string { return d.out.String() }

// run runs a program to its end.
func run(t testing.TB, in string, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), limit.Hang(0))
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Stdin = bytes.NewBufferString(in)
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// loopback returns a free address.
func loopback(t testing.TB) string {
	t.Helper()
	return fmt.Sprintf("127.0.0.1:%d", FreePort(t))
}

// serve answers at a loopback address until the test ends.
func serve(t testing.TB, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}
