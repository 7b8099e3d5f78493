package rig

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"
)

// Carrier is a Kamailio server at which a customer registers. A call to it from the address of its peer is routed to
// the customer.
type Carrier struct {
	*Daemon
	IP   string
	Port int
}

// CarrierOptions hold the credentials of the carrier's customer and the digest algorithm.
type CarrierOptions struct {
	IP, Peer  string // addresses: its own, and that of the peer beyond it
	Customer  Login  // its Domain is the realm
	Algorithm string // MD5 or SHA-256
}

// NewCarrier starts a carrier.
func NewCarrier(t testing.TB, o CarrierOptions) *Carrier {
	t.Helper()
	path, err := exec.LookPath("kamailio")
	if err != nil {
		path = "/usr/sbin/kamailio" // /usr/sbin is not on every user's PATH
	}
	found, _ := filepath.Glob("/usr/lib/*/kamailio/modules")
	if _, err := os.Stat(path); err != nil || len(found) == 0 {
		t.Skip("kamailio is not installed")
	}
	c := &Carrier{IP: o.IP, Port: FreePort(t)}
	address := net.JoinHostPort(c.IP, strconv.Itoa(c.Port))
	dir := t.TempDir()
	config := filepath.Join(dir, "config")
	text := filled(t, filepath.Join("kamailio", "config"), map[string]any{"Address": address, "Modules": found[0], "Algorithm": o.Algorithm,
		"Realm": o.Customer.Domain, "Username": o.Customer.Username, "Password": o.Customer.Password, "Peer": o.Peer})
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c.Daemon = daemon(t, address, path, "-DD", "-E", "-f", config, "-w", dir, "-Y", dir, "-m", "32", "-M", "4")
	t.Cleanup(func() { // SIGTERM ends its child processes, SIGKILL does not
		_ = c.command.Process.Signal(syscall.SIGTERM)
		select {
		case <-c.exited:
		case <-time.After(20 * time.Second):
			t.Errorf("kamailio does not end: %s", c.Log())
		}
	})
	return c
}
