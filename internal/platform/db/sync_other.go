//go:build !linux

package db

import "os"

func syncData(f *os.File) error { return f.Sync() }
