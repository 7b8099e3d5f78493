//go:build !linux || !(amd64 || arm64)

package record

import "os"

func syncData(f *os.File) error   { return f.Sync() }
func syncDevice(f *os.File) error { return f.Sync() }

// deviceOf returns a different value for each file, so that each is synced.
func deviceOf(f *os.File) uint64 { return uint64(f.Fd()) }
