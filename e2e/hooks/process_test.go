package hooks_test

import (
	"os/exec"
	"syscall"
)

// stop ends a program and those it started.
func stop(c *exec.Cmd) {
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	_ = c.Wait()
}

// apart gives a program a group of its own, so that it can be stopped with those it starts.
func apart(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }
