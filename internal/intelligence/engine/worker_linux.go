package engine

import "syscall"

// workerAttributes puts a worker into a process group of its own, so that a key pressed in the server's terminal
// does not reach it and lowering its priority touches nobody else.
func workerAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
