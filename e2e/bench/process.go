package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// process is a measured program or a load generator. It ends with this program.
type process struct {
	name    string
	command *exec.Cmd
	exited  chan error
	lines   chan string // lines of standard output; dropped while no goroutine reads them
}

// start starts a program whose output goes to a file of the folder.
func start(dir, name string, args ...string) (*process, error) {
	out, err := os.Create(filepath.Join(dir, filepath.Base(name)+".out"))
	if err != nil {
		return nil, err
	}
	p := &process{name: filepath.Base(name), command: exec.Command(name, args...), exited: make(chan error, 1),
		lines: make(chan string, 2000)}
	p.command.Dir, p.command.Stderr = dir, out
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	pipe, err := p.command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	started := make(chan error, 1)
	go p.follow(pipe, out, started)
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	return p, nil
}

// follow keeps the thread that started the program, because the death signal comes when that thread ends.
func (p *process) follow(pipe io.Reader, out *os.File, started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer out.Close()
	err := p.command.Start()
	started <- err
	if err != nil {
		return
	}
	for in := bufio.NewScanner(pipe); in.Scan(); {
		_, _ = fmt.Fprintln(out, in.Text())
		select {
		case p.lines <- in.Text():
		default:
		}
	}
	p.exited <- p.command.Wait()
}

// stop ends the program with SIGTERM, and with SIGKILL after ten seconds.
func (p *process) stop() {
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(10 * time.Second):
		for _, pid := range family(p.command.Process.Pid) { // processes that it started would outlive it
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		<-p.exited
	}
}

// ended reports whether the program has ended.
func (p *process) ended() bool {
	select {
	case err := <-p.exited:
		p.exited <- err
		return true
	default:
		return false
	}
}

// wait waits until the program has ended by itself.
func (p *process) wait(limit time.Duration) error {
	select {
	case err := <-p.exited:
		p.exited <- err
		return err
	case <-time.After(limit):
		return fmt.Errorf("%s did not end within %s", p.name, limit)
	}
}

// cpu returns the user and system time that processes and their children used.
func cpu(all ...*process) time.Duration {
	var sum time.Duration
	for _, p := range all {
		for _, pid := range family(p.command.Process.Pid) {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			_, rest, _ := strings.Cut(string(b), ") ")
			if f := strings.Fields(rest); len(f) > 12 {
				user, _ := strconv.Atoi(f[11])
				system, _ := strconv.Atoi(f[12])
				sum += time.Duration(user+system) * 10 * time.Millisecond // USER_HZ is 100 on every Linux
			}
		}
	}
	return sum
}

// memory returns the memory of processes and their children in KiB. Shared pages count by their share (PSS).
func memory(all ...*process) (kib int) {
	for _, p := range all {
		for _, pid := range family(p.command.Process.Pid) {
			b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
			for line := range strings.Lines(string(b)) {
				var n int
				if k, _ := fmt.Sscanf(line, "Pss: %d kB", &n); k == 1 {
					kib += n
				}
			}
		}
	}
	return kib
}

func family(pid int) []int {
	all := []int{pid}
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, t := range tasks {
		b, _ := os.ReadFile(t)
		for _, child := range strings.Fields(string(b)) {
			n, _ := strconv.Atoi(child)
			all = append(all, family(n)...)
		}
	}
	return all
}

// load returns the load averages of the machine, as uptime prints them.
func load() string {
	b, _ := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(b)); len(f) > 0 {
		return f[0]
	}
	return "?"
}

// until polls ok until it returns true.
func until(limit time.Duration, what string, ok func() bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return errors.New(what + ": not within " + limit.String())
		}
	}
	return nil
}
