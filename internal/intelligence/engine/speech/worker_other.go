//go:build !linux

package speech

import "syscall"

// workerAttributes returns nil, because the fields differ on other systems.
func workerAttributes() *syscall.SysProcAttr { return nil }
