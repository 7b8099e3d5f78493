package rig

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// NAT is a home network behind a router with NAT: two network namespaces of the kernel. The server must listen on
// Outside; telephones in it have the address Inside. Each connection leaves by a random port of the router (address
// and port-dependent mapping, RFC 4787 §4.1, the hardest case). The router drops a mapping after a time without
// packets.
type NAT struct {
	T       testing.TB
	Outside string // address of this machine that the router reaches
	Router  string // address that the server sees for the telephones
	Inside  string

	router, home string // namespaces
}

var nats atomic.Int64

// NewNAT makes a NAT that drops a mapping after a time, in whole seconds. It is removed when the test ends. It needs
// root.
func NewNAT(t testing.TB, forgets time.Duration) *NAT {
	t.Helper()
	for _, tool := range []string{"ip", "nft"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Fatalf("%s is not installed: scripts/setup test installs it", tool)
		}
	}
	if !mayMakeNetworks() {
		t.Skip("a network behind a router needs CAP_NET_ADMIN and CAP_SYS_ADMIN, which this process does not have: run as root")
	}
	removeLeftNetworks(t)
	k := block()*20 + int(nats.Add(1))%20
	name := fmt.Sprintf("soniq-%d-%d", os.Getpid(), k)
	n := &NAT{T: t, router: name + "-router", home: name + "-home", Outside: fmt.Sprintf("10.213.%d.1", k),
		Router: fmt.Sprintf("10.213.%d.2", k), Inside: "192.168.77.2"}
	t.Cleanup(func() { // the virtual cables are removed with them
		removeNetwork(n.home)
		removeNetwork(n.router)
	})
	n.lay(fmt.Sprintf("sq%d-%d", os.Getpid(), k), int(forgets/time.Second))
	return n
}

// lay makes both networks and the virtual cables: this machine, router, home.
func (n *NAT) lay(cable string, forgets int) {
	n.T.Helper()
	run := func(command string) {
		n.T.Helper()
		words := strings.Fields(command)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			n.T.Fatalf("%s: %v: %s", command, err, out)
		}
	}
	run("ip netns add " + n.router)
	run("ip netns add " + n.home)
	run("ip link add " + cable + " type veth peer name outside netns " + n.router)
	run("ip address add " + n.Outside + "/24 dev " + cable)
	run("ip link set " + cable + " up")
	run("ip -n " + n.router + " link add inside type veth peer name home netns " + n.home)
	for _, at := range []struct{ network, device, address string }{
		{n.router, "outside", n.Router}, {n.router, "inside", "192.168.77.1"}, {n.home, "home", n.Inside}, {n.home, "lo", ""}} {
		if at.address != "" {
			run("ip -n " + at.network + " address add " + at.address + "/24 dev " + at.device)
		}
		run("ip -n " + at.network + " link set " + at.device + " up")
	}
	run("ip -n " + n.home + " route add default via 192.168.77.1")
	n.route()
	for _, name := range []string{"nf_conntrack_udp_timeout", "nf_conntrack_udp_timeout_stream"} {
		n.set("net/netfilter/"+name, forgets)
	}
	n.set("net/ipv4/ip_forward", 1)
}

// route makes the router masquerade the home network and drop inbound packets that belong to no connection from
// inside.
func (n *NAT) route() {
	n.T.Helper()
	rules := exec.Command("ip", "netns", "exec", n.router, "nft", "-f", "-")
	rules.Stdin = strings.NewReader(`
table ip home {
	chain hide {
		type nat hook postrouting priority 100
		oifname "outside" meta l4proto { tcp, udp } masquerade to :40000-49999 random
	}
	chain guard {
		type filter hook forward priority 0; policy drop;
		iifname "inside" accept
		ct state established,related accept
	}
}
`)
	if out, err := rules.CombinedOutput(); err != nil {
		n.T.Fatalf("nft: %v: %s", err, out)
	}
}

// set changes a setting of the router's kernel.
func (n *NAT) set(name string, value int) {
	n.T.Helper()
	err := inNetwork(n.router, func() error {
		return os.WriteFile("/proc/thread-self/root/proc/sys/"+name, []byte(strconv.Itoa(value)), 0o644)
	})
	if err != nil {
		n.T.Fatalf("%s: %v", name, err)
	}
}

// command returns a command that runs in the home network.
func (n *NAT) command(name string, args ...string) *exec.Cmd {
	return exec.Command("ip", append([]string{"netns", "exec", n.home, name}, args...)...)
}

// dial connects from the home network.
func (n *NAT) dial(address string) (conn net.Conn, err error) {
	err = inNetwork(n.home, func() error {
		conn, err = net.Dial("tcp", address)
		return err
	})
	return conn, err
}

// inNetwork runs do in a network namespace. The thread returns to its own namespace afterwards. If the thread ended
// instead, the kernel would send the death signal to the telephones that it started.
func inNetwork(name string, do func() error) error {
	runtime.LockOSThread()
	own, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer own.Close()
	there, err := os.Open(filepath.Join("/run/netns", name))
	if err != nil {
		runtime.UnlockOSThread()
		return err
	}
	defer there.Close()
	if err = unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err == nil {
		err = do()
		if back := unix.Setns(int(own.Fd()), unix.CLONE_NEWNET); back != nil {
			return back // the thread stays locked, so that no other goroutine runs on it
		}
	}
	runtime.UnlockOSThread()
	return err
}

// mayMakeNetworks reports whether the kernel lets this process make network namespaces.
func mayMakeNetworks() bool {
	name := fmt.Sprintf("soniq-%d-may", os.Getpid())
	err := exec.Command("ip", "netns", "add", name).Run()
	removeNetwork(name)
	return err == nil
}

func removeNetwork(name string) { _ = exec.Command("ip", "netns", "delete", name).Run() }

// removeLeftNetworks removes the networks of test programs that were killed.
func removeLeftNetworks(t testing.TB) {
	t.Helper()
	found, err := filepath.Glob("/run/netns/soniq-*-*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range found {
		name := filepath.Base(path)
		if _, err := os.Stat("/proc/" + strings.Split(name, "-")[1]); err != nil {
			removeNetwork(name)
		}
	}
}
