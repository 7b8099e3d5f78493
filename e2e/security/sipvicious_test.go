package security

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// attacker runs SIPVicious from an address of its own.
type attacker struct {
	s        *rig.Server
	ip       string
	disguise bool // the tools hide their User-Agent
}

// viciousWrapper runs a tool of SIPVicious from the address and under the name in its first arguments. Half of the
// tools ignore their own option for the address.
const viciousWrapper = `
import sys, socket
sys.path.insert(0, '/usr/share/sipvicious')
address, name, tool = sys.argv.pop(1), sys.argv.pop(1), sys.argv.pop(1)
bind = socket.socket.bind
socket.socket.bind = lambda self, at: bind(self, (address, at[1]))
import sipvicious.libs.svhelper as h
d = list(h.makeRequest.__defaults__)
d[d.index('friendly-scanner')] = name
h.makeRequest.__defaults__ = tuple(d)
__import__('sipvicious.' + tool, fromlist=['main']).main()
`

// run runs a tool against the server and returns its output.
func (a attacker) run(tool string, args ...string) string {
	a.s.T.Helper()
	host, port, _ := net.SplitHostPort(a.s.SIP)
	name := "friendly-scanner"
	if a.disguise {
		name = "Desk Phone 4"
	}
	args = append([]string{"-c", viciousWrapper, a.ip, name, tool, "-x", a.ip, "-p", port, "-t", "0.005"}, append(args, host)...)
	ctx, cancel := context.WithTimeout(context.Background(), limit.Hang(0))
	defer cancel()
	c := exec.CommandContext(ctx, "python3", args...)
	c.Dir = a.s.T.TempDir()
	c.Env = append(os.Environ(), "HOME="+c.Dir)
	out, err := c.CombinedOutput()
	if ctx.Err() != nil || err != nil && len(out) == 0 {
		a.s.T.Fatalf("%s: %v\n%s", tool, err, out)
	}
	return string(out)
}

// answered reports whether the server answers an address.
func (a attacker) answered() bool {
	a.s.T.Helper()
	d := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(a.ip)}}
	c, err := d.Dial("udp", a.s.SIP)
	if err != nil {
		a.s.T.Fatal(err)
	}
	defer c.Close()
	id := time.Now().UnixNano()
	fmt.Fprintf(c, "OPTIONS sip:x SIP/2.0\r\nVia: SIP/2.0/UDP %s;branch=z9hG4bK%d;rport\r\nMax-Forwards: 70\r\nFrom: <sip:a@b>;tag=1\r\n"+
		"To: <sip:x@b>\r\nCall-ID: %d\r\nCSeq: 1 OPTIONS\r\nContent-Length: 0\r\n\r\n", c.LocalAddr(), id, id)
	c.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
	n, _ := c.Read(make([]byte, 2000))
	return n > 0
}

// dictionary writes a dictionary.
func dictionary(t *testing.T, all ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "words")
	if err := os.WriteFile(path, []byte(strings.Join(all, "\n")+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestSIPVicious_FindsNothingAndIsBanned(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 90*time.Second, "SIPVicious scans and guesses for most of a minute")
	if _, err := exec.LookPath("svwar"); err != nil {
		t.Fatal("sipvicious is not installed: scripts/setup test")
	}
	s := rig.Start(t, rig.Options{Env: fixture.NoSpeech})
	office := fixture.NewOrg(s)
	ada, bob := office.AddUser("Ada"), office.AddUser("Bob")
	real := []string{ada.SIP.Username, bob.SIP.Username, ada.Extension, bob.Extension}
	names := append([]string{"nobody"}, real...)
	for i := range 400 {
		names = append(names, fmt.Sprint("x", 100+i))
	}
	var guesses []string
	for i := range 400 {
		guesses = append(guesses, fmt.Sprint("guess", i))
	}
	for i, c := range []struct {
		tool     string
		disguise bool
		stays    bool // it gives up, or must send so few requests that they are not detected
		args     []string
	}{
		{tool: "svmap"},
		{tool: "svwar", args: []string{"-m", "REGISTER", "-d", dictionary(t, names...)}},
		{tool: "svcrack", args: []string{"-u", ada.SIP.Username, "-d", dictionary(t, guesses...)}},
		{tool: "svmap", disguise: true, stays: true},
		{tool: "svwar", disguise: true, stays: true, args: []string{"-m", "REGISTER", "-d", dictionary(t, names...)}},
		{tool: "svwar", disguise: true, stays: true, args: []string{"-m", "INVITE", "-d", dictionary(t, names...)}},
		{tool: "svwar", disguise: true, args: []string{"-m", "OPTIONS", "-d", dictionary(t, names...)}},
		{tool: "svcrack", disguise: true, args: []string{"-u", ada.SIP.Username, "-d", dictionary(t, guesses...)}},
	} {
		a := attacker{s, fmt.Sprintf("127.2.0.%d", i+1), c.disguise}
		t.Run(fmt.Sprint(i, " ", c.tool), func(t *testing.T) {
			out := a.run(c.tool, c.args...)
			for _, name := range real {
				if strings.Contains(out, "| "+name+" ") {
					t.Errorf("it found %s:\n%s", name, out)
				}
			}
			if strings.Contains(out, "| guess") {
				t.Errorf("it found a password:\n%s", out)
			}
			if !c.stays && a.answered() {
				t.Errorf("it is not banned:\n%s", out)
			}
		})
	}
	phone := attacker{s: s, ip: "127.0.0.1"}
	if !phone.answered() {
		t.Error("others are not served")
	}
	port := office.RegisterSipp(bob.SIP)
	callee := s.Sipp(rig.Script{Scenario: "answer", Port: port})
	call := s.Sipp(rig.Script{Scenario: "call", Login: &ada.SIP, Number: bob.Extension})
	call.Wait()
	callee.Wait()
}
