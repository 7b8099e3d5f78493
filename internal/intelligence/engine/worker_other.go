//go:build !linux

package engine

import "syscall"

// workerAttributes is empty where the fields differ.
func workerAttributes() *syscall.SysProcAttr { return nil }
