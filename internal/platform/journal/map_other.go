//go:build !linux

package journal

import "os"

// mapped is nil: files are written to.
func mapped(*os.File, int) []byte { return nil }

func unmap([]byte) {}
