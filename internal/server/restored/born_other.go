//go:build !linux

package restored

func born(string) int64 { return 0 }
