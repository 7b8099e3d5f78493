package rig

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// Telephones and carriers need to know their ports before they open them, and open them again. Each test program
// therefore has a block of ports of its own, so that programs which run at the same time do not collide. The blocks
// lie below the ports that the system chooses from.
const (
	blocks    = 36
	blockSize = 500
	firstPort = 14000
	audioSize = 300 // of the ports for the audio of many calls
	audioPort = 2600
)

// block returns the number of this process's block. The process holds the lock until it ends.
var block = sync.OnceValue(func() int {
	for n := range blocks {
		f, err := lockFile(fmt.Sprintf("ports-%d", n))
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			locked = f
			return n
		}
		_ = f.Close()
	}
	return os.Getpid() % blocks
})

// lockFile opens a file that test programs of this user lock. The path does not depend on their folder for temporary
// files.
func lockFile(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join("/tmp", fmt.Sprintf("soniq-e2e-%d-%s.lock", os.Getuid(), name)), os.O_CREATE|os.O_RDWR, 0o600)
}

var (
	locked *os.File //nolint:unused // keeps the lock
	given  atomic.Int64
	taken  sync.Map // first ports given to running tests: a test may open its port later, or close and open it again
)

// FreePort returns a port that is free on every loopback address, for UDP and TCP. The three ports above it are free
// too: audio takes the next one for RTCP, and sipp the two after it for video.
func FreePort(t testing.TB) int {
	t.Helper()
	return freeFour(t, func(n int) int { return firstPort + block()*blockSize + 4*n%blockSize })
}

// audioPorts returns the first of many ports for the audio of many calls. A program that finds one of them in use
// takes the next.
func audioPorts(t testing.TB) int {
	t.Helper()
	return freeFour(t, func(n int) int { return audioPort + block()*audioSize + 40*n%audioSize })
}

func freeFour(t testing.TB, candidate func(n int) int) int {
	t.Helper()
	for try := range 1000 {
		port := candidate(int(given.Add(1)))
		if _, held := taken.LoadOrStore(port, true); !held {
			t.Cleanup(func() { taken.Delete(port) })
		} else if try < 500 { // some tests need more ports than the block has, one after the other
			continue
		}
		if free(port) && free(port+1) && free(port+2) && free(port+3) {
			return port
		}
	}
	t.Fatal("no free port")
	return 0
}

func free(port int) bool {
	address := ":" + strconv.Itoa(port)
	l, err := net.Listen("tcp", address)
	if err != nil {
		return false
	}
	defer l.Close()
	u, err := net.ListenPacket("udp", address)
	if err != nil {
		return false
	}
	return u.Close() == nil
}
