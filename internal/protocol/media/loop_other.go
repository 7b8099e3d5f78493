//go:build !linux || !(amd64 || arm64)

package media

func newLoop(clock func() int64) (packetLoop, error) { return newUDPLoop(clock) }
