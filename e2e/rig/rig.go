// Package rig starts the real binary for tests, and uses it through the interfaces that customers use.
package rig

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"soniq/e2e/limit"
)

// Main runs the tests of a package. All parallel tests start at once: Admit holds each back until processors are
// free. Then it ends the shared servers and removes the binary that was built.
func Main(m *testing.M) {
	flag.Parse()
	named := false
	flag.Visit(func(f *flag.Flag) { named = named || f.Name == "test.parallel" })
	if !named {
		_ = flag.Set("test.parallel", "64")
	}
	code := m.Run()
	if !stopShared() && code == 0 {
		code = 1
	}
	runDir.remove()
	if path, err := Build(); err == nil && os.Getenv("SONIQ_E2E_BINARY") == "" {
		_ = os.RemoveAll(filepath.Dir(path))
	}
	os.Exit(code)
}

// Root returns the folder of the module.
func Root() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// Options configure a server under test.
type Options struct {
	Data  string            // "" for a fresh folder
	DB    string            // "" for SQLite; or postgres://…
	Flags []string          // further flags of serve
	Env   map[string]string // further environment
	Upset bool              // the test makes the server log errors, which otherwise fail it
	// Binary is started instead of the binary built for all tests, unless it is "".
	Binary string
	// Shared and Either start a server for this test alone, because the test uses something common to all organisations, such as a number
	Alone bool
	Load  Load // processor slots that the test needs; 0: Calls without speech recognition, else Speech
	raced bool // the server runs with the race detector
}

// load returns the processor slots that a test with these options needs.
func (o Options) load() Load {
	switch {
	case o.Load != 0:
		return o.Load
	case o.Env["SONIQ_TRANSCRIBER"] == "off" || strings.Contains(strings.Join(o.Flags, " ")+" ", "--transcriber off "):
		return Calls
	default:
		return Speech
	}
}

// Server is a running soniq.
type Server struct {
	T    testing.TB
	HTTP string // host:port
	SIP  string // host:port, UDP and TCP
	SIPS string // host:port, TLS; "" unless it listens there
	SMPP string // host:port; "" unless it accepts SMPP there
	WSS  string // address of SIP over secure WebSocket; "" unless it listens for HTTPS
	Data string
	DB   string

	options Options
	shared  bool // used by other tests too, so it must keep running
	command *exec.Cmd
	exited  chan struct{}
	log     *log
}

// log holds the output of the server.
type log struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
}

func (l *log) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *log) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var (
	readyLine = regexp.MustCompile(`soniq is ready: http=(\S+) sip=(\S+)`)
	httpsPort = regexp.MustCompile(` https=(\S+)`)
	sipsPort  = regexp.MustCompile(` sips=(\S+)`)
	smppPort  = regexp.MustCompile(` smpp=(\S+)`)
)

// Start starts a server on free loopback ports and waits until it is ready. It is stopped at the end of the test, and its log
// is shown when the test failed.
func Start(t testing.TB, o Options) *Server {
	t.Helper()
	if o.Data == "" {
		o.Data = t.TempDir()
	}
	Admit(t, o.load())
	o.raced = raced(t.Name(), o.DB)
	s := &Server{T: t, Data: o.Data, DB: o.DB, options: o, log: &log{}}
	t.Cleanup(func() {
		s.Stop()
		if t.Failed() {
			t.Logf("log of the server:\n%s", tail(s.log.String(), 200))
		}
		s.check(t, s.log.String())
	})
	s.Start()
	return s
}

// Start starts the server again, on the same data and ports of its own.
func (s *Server) Start() {
	s.T.Helper()
	if err := s.TryStart(); err != nil {
		s.T.Fatal(err)
	}
}

// TryStart calls Start and returns an error if the server does not start.
func (s *Server) TryStart() error {
	binary, err := s.binary()
	if err != nil {
		return err
	}
	args := []string{"serve", "--data", s.Data, "--http", "127.0.0.1:0", "--sip", "127.0.0.1:0", "--rtp-ports", "0-0", "--trunk-probe", "0",
		"--allow-targets", "127.0.0.0/8,192.0.2.8/29,192.0.2.32/27,192.0.2.64/26", // carriers that do not exist
		"--rate-reads", "0", "--rate-writes", "0", "--rate-burst", "0", "--rate-searches", "0",
		"--rate-attempts", "0"}
	if s.DB != "" {
		args = append(args, "--db", s.DB)
	}
	s.command = exec.Command(binary, append(args, s.options.Flags...)...)
	s.command.Env = os.Environ()
	for k, v := range s.options.Env {
		s.command.Env = append(s.command.Env, k+"="+v)
	}
	s.command.Stderr = s.log
	out, err := s.command.StdoutPipe()
	if err != nil {
		return err
	}
	if err := Launch(s.command); err != nil {
		return err
	}
	ready := make(chan []string, 1)
	s.exited = make(chan struct{})
	go s.follow(out, ready)
	select {
	case found := <-ready:
		s.HTTP, s.SIP = found[1], found[2]
		return nil
	case <-s.exited:
		return fmt.Errorf("the server ended before it was ready:\n%s", tail(s.log.String(), 40))
	case <-time.After(limit.Hang(0)):
		_ = s.command.Process.Kill()
		<-s.exited
		return errors.New("the server was not ready in time")
	}
}

// follow reads the output of the server until it ends.
func (s *Server) follow(out io.Reader, ready chan<- []string) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		_, _ = fmt.Fprintln(s.log, lines.Text())
		if found := readyLine.FindStringSubmatch(lines.Text()); found != nil {
			if door := httpsPort.FindStringSubmatch(lines.Text()); door != nil {
				s.WSS = "wss://" + door[1] + "/ws/sip"
			}
			if door := sipsPort.FindStringSubmatch(lines.Text()); door != nil {
				s.SIPS = door[1]
			}
			if door := smppPort.FindStringSubmatch(lines.Text()); door != nil {
				s.SMPP = door[1]
			}
			ready <- found
		}
	}
	_ = s.command.Wait()
	if s.T != nil {
		admissions.used(s.T.Name(), s.command.ProcessState.UserTime()+s.command.ProcessState.SystemTime())
	}
	close(s.exited)
}

// Stop ends the server in order (SIGTERM) and waits.
func (s *Server) Stop() { s.signal(syscall.SIGTERM) }

// Kill ends the server as a crash does (SIGKILL) and waits.
func (s *Server) Kill() { s.signal(syscall.SIGKILL) }

func (s *Server) signal(sig syscall.Signal) {
	if s.shared {
		s.T.Fatal("a shared server must go on for other tests: use Start")
	}
	if err := s.end(sig); err != nil {
		s.T.Error(err)
	}
}

// end sends a signal to the process, if it runs, and waits until it has ended.
func (s *Server) end(sig syscall.Signal) error {
	if s.command == nil || s.command.Process == nil {
		return nil
	}
	defer func() { s.command = nil }()
	_ = s.command.Process.Signal(sig)
	select {
	case <-s.exited:
		return nil
	case <-time.After(limit.Hang(0)):
		_ = s.command.Process.Kill()
		<-s.exited
		return fmt.Errorf("the server did not end within %s of %s", limit.Hang(0), sig)
	}
}

// Terminate asks the server to end in order, and does not wait.
func (s *Server) Terminate() {
	s.T.Helper()
	if s.shared {
		s.T.Fatal("a shared server must go on for other tests: use Start")
	}
	if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
		s.T.Fatal(err)
	}
}

// Wait waits until the server has ended, which normally takes usual, and returns its exit code.
func (s *Server) Wait(usual time.Duration) int {
	s.T.Helper()
	select {
	case <-s.exited:
		code := s.command.ProcessState.ExitCode()
		s.command = nil
		return code
	case <-time.After(limit.Hang(usual)):
		s.T.Fatalf("the server did not end within %s", limit.Hang(usual))
		return -1
	}
}

// host returns the address at which it listens. Telephones beside it share the address.
func (s *Server) host() string {
	s.T.Helper()
	host, _, err := net.SplitHostPort(s.SIP)
	if err != nil {
		s.T.Fatal(err)
	}
	return host
}

// PID returns the process ID of the server.
func (s *Server) PID() int { return s.command.Process.Pid }

// Log returns the output of the server so far.
func (s *Server) Log() string { return s.log.String() }

// Exited returns a channel that is closed when the process has ended.
func (s *Server) Exited() <-chan struct{} { return s.exited }

// Command runs another soniq command on the same data and returns its output.
func (s *Server) Command(args ...string) string {
	s.T.Helper()
	out, err := s.TryCommand(args...)
	if err != nil {
		s.T.Fatalf("soniq %s: %v", strings.Join(args, " "), err)
	}
	return strings.TrimSpace(out)
}

// TryCommand calls Command for commands that may fail. The error contains the standard error of the command.
func (s *Server) TryCommand(args ...string) (string, error) {
	binary, err := CommandBinary()
	if err != nil {
		return "", err
	}
	args = append(args, "--data", s.Data)
	if s.DB != "" {
		args = append(args, "--db", s.DB)
	}
	var out, wrong bytes.Buffer
	c := exec.Command(binary, args...)
	c.Stdout, c.Stderr = &out, &wrong
	if err := c.Run(); err != nil {
		return out.String(), fmt.Errorf("%w: %s", err, wrong.String())
	}
	return out.String(), nil
}

// lines returns the lines that contain a text.
func lines(s, text string) string {
	var found []string
	for line := range strings.SplitSeq(s, "\n") {
		if strings.Contains(line, text) {
			found = append(found, line)
		}
	}
	return strings.Join(found, "\n")
}

func tail(s string, lines int) string {
	all := strings.Split(s, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}
