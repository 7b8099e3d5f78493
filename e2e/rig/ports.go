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

// Telephones and carriers need to know their ports before they open them, and open them again. So that test programs which
// run at the same time do not take each other's, each has a block of its own, below the ports the system chooses from.
const (
	blocks    = 36
	blockSize = 500
	firstPort = 14000
	audioSize = 300 // of the ports for the audio of many calls
	audioPort = 2600
)

// block is the number of this process's block. The lock lasts as long as the process.
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

// lockFile opens a file that test programs of this user on this machine lock, wherever they keep their temporary files.
func lockFile(name string) (*os.File, error) {
	return os.OpenFile(filepath.Join("/tmp", fmt.Sprintf("soniq-e2e-%d-%s.lock", os.Getuid(), name)), os.O_CREATE|os.O_RDWR, 0o600)
}

var (
	locked *os.File // keeps the lock
	given  atomic.Int64
	taken  sync.Map // first ports that a test which goes on was given: who has one may open it only later, or again
)

// FreePort is a port of every loopback address that nobody uses, for UDP and TCP. The three above are free too: audio takes
// the one above for RTCP, and sipp the next two for pictures.
func FreePort(t testing.TB) int {
	t.Helper()
	return freeFour(t, func(n int) int { return firstPort + block()*blockSize + 4*n%blockSize })
}

// audioPorts is the first of many ports for the audio of many calls; who takes one that is not free takes the next.
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
		} else if try < 500 { // there are tests that want more than all, one after the other
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
