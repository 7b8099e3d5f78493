package recovery

import (
	"net"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// The service manager is told when the server is ready, works, reads its certificate again and stops. The server is silent for its watchdog
// while it does not run.
// https://github.com/caddyserver/caddy/issues/755
func TestServiceManager_IsTold(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s := rig.Start(t, rig.Options{Env: map[string]string{"SONIQ_TRANSCRIBER": "off", "SONIQ_VOICE": "off", "NOTIFY_SOCKET": socket,
		"WATCHDOG_USEC": "500000"}})
	fixture.NewOrg(s)
	wait := func(want string) {
		t.Helper()
		if err := c.SetReadDeadline(time.Now().Add(limit.Hang(0))); err != nil {
			t.Fatal(err)
		}
		for buffer := make([]byte, 4096); ; {
			n, err := c.Read(buffer)
			if err != nil {
				t.Fatalf("no %s: %v", want, err)
			}
			if got := string(buffer[:n]); strings.HasPrefix(got, want) {
				return
			} else if !strings.HasPrefix(got, "WATCHDOG=1") {
				t.Fatalf("told %q before %s", got, want)
			}
		}
	}
	wait("READY=1\n")
	wait("WATCHDOG=1")
	wait("WATCHDOG=1")
	if err := syscall.Kill(s.PID(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	wait("RELOADING=1\nMONOTONIC_USEC=")
	wait("READY=1\n")
	wait("WATCHDOG=1")
	s.Terminate()
	wait("STOPPING=1\nEXTEND_TIMEOUT_USEC=")
	s.Wait(0)
}
