package main

import (
	"bytes"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// low is the lowest priority. A command with it uses only the processor time that tests with audio leave.
const low = 19

// background is the priority of unit tests beside the end-to-end tests. At the lowest one they computed nothing for more than 5 seconds at
// a time if dozens of processes had work, and time limits of what they test ended. At this one they have seven times that share.
const background = 10

// command prepares a process in the folder dir of the module. It ends when the suite ends.
func (s *suite) command(nice int, dir string, args ...string) *exec.Cmd {
	if nice != 0 {
		args = append([]string{"nice", "-n", fmt.Sprint(nice)}, args...)
	}
	c := exec.CommandContext(s.ctx, args[0], args[1:]...)
	c.Dir, c.Env = dir, s.environment
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // processes it started end with it
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGTERM) }
	c.WaitDelay = 20 * time.Second
	return c
}

// execute runs a command whose output is reported only if it fails.
func (s *suite) execute(p *part, c *exec.Cmd) bool {
	out, err := c.CombinedOutput()
	p.addCPU(used(c))
	if err != nil && s.ctx.Err() == nil {
		p.fail(fmt.Sprintf("%s: %v\n%s", strings.Join(c.Args, " "), err, out))
	}
	return err == nil
}

// events runs a command that prints `go test -json` lines and records them.
func (s *suite) events(p *part, c *exec.Cmd) {
	var complaints bytes.Buffer
	out, err := c.StdoutPipe()
	if err != nil {
		p.fail(err.Error())
		return
	}
	c.Stderr = &complaints
	if err := c.Start(); err != nil {
		p.fail(err.Error())
		return
	}
	take := func(e testEvent) {
		if s.ctx.Err() == nil { // tests that the end of the suite stops have not failed
			p.take(e)
		}
	}
	if err := readEvents(out, take); err != nil {
		p.fail(fmt.Sprintf("read events of %s: %v", p.name, err))
		_, _ = io.Copy(io.Discard, out)
	}
	err = c.Wait()
	p.addCPU(used(c))
	if err != nil && len(p.failed()) == 0 && s.ctx.Err() == nil {
		p.fail(fmt.Sprintf("%s: %v\n%s%s", strings.Join(c.Args, " "), err, p.output(testName{}), complaints.String()))
	}
}

// used returns the processor time of a process that has ended, and of those it waited for.
func used(c *exec.Cmd) time.Duration {
	if c.ProcessState == nil {
		return 0
	}
	return c.ProcessState.UserTime() + c.ProcessState.SystemTime()
}
