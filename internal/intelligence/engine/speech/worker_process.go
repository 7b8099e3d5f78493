package speech

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"sync"
	"time"

	"soniq/internal/intelligence/transcript"
)

// workerProcess is one worker process of a recogniser or synthesiser. It handles one request at a time.
type workerProcess struct {
	cmd       *exec.Cmd
	in        io.WriteCloser
	out       io.Reader
	stderr    stderrTail
	hello     workerHello // its first message
	idleTimer *time.Timer // ends it after the idle timeout
	stopOnce  sync.Once
}

// startWorker starts a process and waits for its first message.
func startWorker(ctx context.Context, cmd *exec.Cmd) (*workerProcess, error) {
	w := &workerProcess{cmd: cmd}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start recogniser: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start recogniser: %w", err)
	}
	w.in, w.out, cmd.Stderr = in, out, &w.stderr
	cmd.SysProcAttr = workerAttributes()
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start recogniser %s: %w", cmd.Path, err)
	}
	if err := w.awaitHello(ctx); err != nil {
		w.stop()
		return nil, err
	}
	return w, nil
}

func (w *workerProcess) awaitHello(ctx context.Context) error {
	h := &w.hello
	err := w.within(ctx, func() error { _, err := readMessage(w.out, h); return err })
	switch {
	case err != nil:
		return fmt.Errorf("recogniser did not start: %w", err)
	case h.Missing != "":
		return &transcript.MissingDependency{Problem: h.Missing, Remedy: h.Help}
	case h.Error != "":
		return errors.New(h.Error)
	}
	return nil
}

// transcribeSphinx sends one clip to the worker and returns its words.
func (w *workerProcess) transcribeSphinx(ctx context.Context, c transcript.Clip) ([]transcript.Word, error) {
	var a sphinxResponse
	err := w.within(ctx, func() error {
		if err := writeMessage(w.in, sphinxRequest{Rate: c.Rate, Narrow: c.NarrowBand, Phrases: c.Phrases, Terms: c.Terms},
			c.PCM); err != nil {
			return err
		}
		_, err := readMessage(w.out, &a)
		return err
	})
	if err != nil {
		return nil, err
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return a.Words, nil
}

// within runs an exchange with the process. If the context ends first, the process is killed, which ends the
// exchange.
func (w *workerProcess) within(ctx context.Context, exchange func() error) error {
	done := make(chan error, 1)
	go func() { done <- exchange() }()
	select {
	case err := <-done:
		if err != nil {
			w.stop() // the process cannot be used again, and after stop all of its stderr has been read
			return fmt.Errorf("%w%s", err, w.stderr.last())
		}
		return nil
	case <-ctx.Done():
		_ = w.cmd.Process.Kill()
		<-done
		return ctx.Err()
	}
}

// stop kills the process and waits for it. It may be called more than once.
func (w *workerProcess) stop() {
	w.stopOnce.Do(func() {
		_ = w.in.Close()
		_ = w.cmd.Process.Kill()
		_ = w.cmd.Wait()
	})
}

// stderrTail keeps the end of a process's stderr, up to where the Go runtime begins its report of a crash in C code:
// the message of the library precedes that.
type stderrTail struct {
	mu    sync.Mutex // guards the two below
	buf   bytes.Buffer
	ended bool
}

// crashReport matches the first line that the Go runtime writes after a crash in C code.
var crashReport = regexp.MustCompile(`(?m)^(SIG[A-Z]+: |fatal error: |panic: ).*$`)

func (t *stderrTail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ended {
		return len(p), nil
	}
	if t.buf.Len() > 4096 {
		t.buf.Reset()
	}
	t.buf.Write(p)
	if at := crashReport.FindIndex(t.buf.Bytes()); at != nil {
		t.ended = true
		t.buf.Truncate(at[1])
		if len(bytes.TrimSpace(t.buf.Bytes()[:at[0]])) > 0 {
			t.buf.Truncate(at[0])
		}
	}
	return len(p), nil
}

// last returns the last line, with ": " before it, to be appended to an error; "" if there is none.
func (t *stderrTail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := bytes.Split(bytes.TrimSpace(t.buf.Bytes()), []byte("\n"))
	if text := lines[len(lines)-1]; len(text) > 0 {
		return ": " + string(bytes.TrimSpace(text))
	}
	return ""
}
