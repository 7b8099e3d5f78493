package sip_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"soniq/internal/protocol/sip"
)

// sippProcess is a sipp that runs one scenario in a folder of its own.
type sippProcess struct {
	cmd *exec.Cmd
	dir string
	out *strings.Builder
}

func startSIPp(t testing.TB, scenario string, port int, args ...string) *sippProcess {
	t.Helper()
	path, err := exec.LookPath("sipp")
	if err != nil {
		t.Skip("sipp is not installed")
	}
	file, _ := filepath.Abs(filepath.Join("testdata", "sipp", scenario+".xml"))
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	t.Cleanup(cancel)
	args = append([]string{"-sf", file, "-i", "127.0.0.1", "-p", strconv.Itoa(port), "-nostdin", "-trace_err", "-mp", strconv.Itoa(port + 2)}, args...)
	r := &sippProcess{cmd: exec.CommandContext(ctx, path, args...), dir: t.TempDir(), out: &strings.Builder{}}
	r.cmd.Dir, r.cmd.Stdout, r.cmd.Stderr = r.dir, r.out, r.out
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *sippProcess) wait(t testing.TB) {
	t.Helper()
	if err := r.cmd.Wait(); err != nil {
		logs, _ := filepath.Glob(filepath.Join(r.dir, "*errors.log"))
		for _, l := range logs {
			b, _ := os.ReadFile(l)
			t.Logf("%s", b)
		}
		text := r.out.String()
		t.Errorf("sipp: %v\n%s", err, text[max(0, len(text)-1500):])
	}
}

var portBlocks atomic.Int64

// freePortBlock returns the first of eight ports that are free for UDP and TCP, below the ephemeral range of the
// kernel. sipp uses the others for media.
func freePortBlock(t testing.TB) int {
	t.Helper()
	for range 200 {
		block := (int64(os.Getpid())*37 + portBlocks.Add(1)) % 2500
		base := 10000 + int(block)*8
		if blockFree(base) {
			return base
		}
	}
	t.Fatal("no free ports")
	return 0
}

func blockFree(base int) bool {
	for port := base; port < base+8; port++ {
		at := fmt.Sprintf("127.0.0.1:%d", port)
		u, err := net.ListenPacket("udp", at)
		if err != nil {
			return false
		}
		u.Close()
		l, err := net.Listen("tcp", at)
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

// waitForUDPPort waits until a process has bound the UDP port. It reads /proc/net/udp instead of binding the port, so
// that it cannot block that process.
func waitForUDPPort(t testing.TB, port int) {
	t.Helper()
	mine := fmt.Sprintf("0100007F:%04X ", port)
	waitUntil(t, fmt.Sprintf("port %d bound", port), func() bool {
		table, err := os.ReadFile("/proc/net/udp")
		if err != nil {
			t.Skip("needs /proc/net/udp")
		}
		return strings.Contains(string(table), mine)
	})
}

func TestSIPp_Scenarios(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		uas, uac, transport string
		slow                bool
	}{
		{"uas_plain", "uac_plain", "u1", false},
		{"uas_plain", "uac_plain", "t1", false},
		{"uas_cancelled", "uac_cancel", "u1", false},
		{"uas_cancelled", "uac_cancel", "t1", false},
		{"uas_cross_cancel", "uac_cancel", "u1", false},
		{"uas_hold", "uac_hold", "u1", false},
		{"uas_hold", "uac_hold", "t1", false},
		{"uas_bye", "uac_recv_bye", "u1", false},
		{"uas_busy", "uac_expect_486", "u1", false},
		{"uas_many18x", "uac_plain", "u1", false},
		{"uas_lateoffer", "uac_lateoffer", "u1", false},
		{"uas_prack", "uac_prack", "u1", false},
		{"uas_prack", "uac_prack", "t1", false},
		{"uas_plain", "uac_refer", "u1", false},
		{"uas_plain", "uac_refer", "t1", false},
		{"uas_plain", "uac_noack", "u1", true},
	} {
		t.Run(c.uas+"/"+c.uac+"/"+c.transport, func(t *testing.T) {
			t.Parallel()
			if c.slow && testing.Short() {
				t.Skip("waits 64*T1")
			}
			far, near := freePortBlock(t), freePortBlock(t)
			r := newTestRelay(t, sip.Config{Addr: "127.0.0.1:0", Accounts: sip.AnySource{}}, fmt.Sprintf("127.0.0.1:%d", far))
			uas := startSIPp(t, c.uas, far, "-m", "1")
			waitForUDPPort(t, far)
			uac := startSIPp(t, c.uac, near, r.Addr().String(), "-s", "1000", "-m", "1", "-d", "300", "-t", c.transport)
			uac.wait(t)
			uas.wait(t)
		})
	}
}

func TestSIPp_Login(t *testing.T) {
	t.Parallel()
	book := newFakeDirectory().addAccount("alice", "pw-alice")
	far := freePortBlock(t)
	r := newTestRelay(t, sip.Config{Addr: "127.0.0.1:0", Accounts: book, Bindings: book}, fmt.Sprintf("127.0.0.1:%d", far))
	for _, transport := range []string{"u1", "t1"} {
		reg := startSIPp(t, "uac_register", freePortBlock(t), r.Addr().String(), "-s", "alice", "-au", "alice", "-ap", "pw-alice", "-m", "1", "-t", transport)
		reg.wait(t)
		all, _ := book.Load(context.Background(), "id-alice")
		if len(all) == 0 || all[len(all)-1].Source.Addr() != netip.MustParseAddr("127.0.0.1") {
			t.Fatalf("bindings after REGISTER: %+v", all)
		}
	}
	uas := startSIPp(t, "uas_plain", far, "-m", "1")
	waitForUDPPort(t, far)
	call := startSIPp(t, "uac_auth_call", freePortBlock(t), r.Addr().String(), "-s", "1000", "-au", "alice", "-ap", "pw-alice", "-m", "1", "-d", "200")
	call.wait(t)
	uas.wait(t)
}
