package speech

import "syscall"

// workerAttributes puts a worker into its own process group: signals of the server's terminal, such as Ctrl-C, do not
// reach it, and lowering its priority affects no other process.
func workerAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
