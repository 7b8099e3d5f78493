package command_test

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// running is a command that runs until it is stopped.
type running struct {
	t     *testing.T
	c     *exec.Cmd
	lines chan string // of standard output
	done  chan struct{}
	mu    sync.Mutex // guards wrong
	wrong bytes.Buffer
}

func (r *running) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.wrong.Write(b)
}

// said returns the standard error of the command so far.
func (r *running) said() string { r.mu.Lock(); defer r.mu.Unlock(); return r.wrong.String() }

// launch starts a command and returns once standard error contains the word.
func launch(t *testing.T, env []string, word string, args ...string) *running {
	t.Helper()
	binary, err := rig.CommandBinary()
	if err != nil {
		t.Fatal(err)
	}
	r := &running{t: t, c: exec.Command(binary, args...), lines: make(chan string, 1000), done: make(chan struct{})}
	r.c.Dir, r.c.Stderr, r.c.Env = t.TempDir(), r, append(os.Environ(), env...)
	out, err := r.c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := r.c.Start(); err != nil {
		t.Fatal(err)
	}
	go r.read(out)
	t.Cleanup(func() { _ = r.c.Process.Kill(); <-r.done })
	rig.Until(t, "soniq "+args[0]+" says "+word, 30*time.Second, func() bool { return strings.Contains(r.said(), word) || r.over() })
	return r
}

func (r *running) read(out io.Reader) {
	for s := bufio.NewScanner(out); s.Scan(); {
		r.lines <- s.Text()
	}
	_ = r.c.Wait()
	close(r.lines)
	close(r.done)
}

func (r *running) over() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// line returns the next line of standard output that contains the word.
func (r *running) line(word string) string {
	r.t.Helper()
	late := time.After(limit.Hang(0))
	for {
		select {
		case text, ok := <-r.lines:
			if !ok {
				r.t.Fatalf("it ended before it wrote %q: %s", word, r.said())
			}
			if strings.Contains(text, word) {
				return text
			}
		case <-late:
			r.t.Fatalf("no line with %q within a minute: %s", word, r.said())
		}
	}
}

// end interrupts it, as Ctrl-C does, and returns its exit code.
func (r *running) end() int {
	r.t.Helper()
	_ = r.c.Process.Signal(syscall.SIGINT)
	return r.wait()
}

func (r *running) wait() int {
	r.t.Helper()
	select {
	case <-r.done:
	case <-time.After(limit.Hang(0)):
		r.t.Fatalf("it did not end: %s", r.said())
	}
	return r.c.ProcessState.ExitCode()
}
