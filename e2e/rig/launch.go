package rig

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
)

// Launch starts a program that dies with the tests. The kernel sends the death signal when the thread ends that started the
// program, not the process, and Go ends threads when it likes: so one thread, which never ends, starts them all.
func Launch(c *exec.Cmd) error {
	launcher.Do(func() { go launch() })
	if c.SysProcAttr == nil {
		c.SysProcAttr = &syscall.SysProcAttr{}
	}
	c.SysProcAttr.Pdeathsig = syscall.SIGKILL
	done := make(chan error)
	launches <- func() { done <- c.Start() }
	return <-done
}

var (
	launcher sync.Once
	launches = make(chan func())
)

func launch() {
	runtime.LockOSThread() // for ever
	for start := range launches {
		start()
	}
}
