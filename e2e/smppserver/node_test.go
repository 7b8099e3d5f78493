package smppserver

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/rig"
)

// nodeESME is an application made with npm's smpp.
type nodeESME struct {
	mu   sync.Mutex // guards said
	said []nodeSaid
}

// nodeSaid is one line of output of the application.
type nodeSaid struct {
	Bound     *int
	Submitted *int
	Status    int
	ID        string
	Receipt   string
	Stat      string
	Message   string
	From, To  string
	Closed    bool
}

// startNodeESME starts an application that binds and submits.
func (x *texting) startNodeESME(systemID, password string, orders ...map[string]any) *nodeESME {
	x.t.Helper()
	n := &nodeESME{}
	_, port, _ := net.SplitHostPort(x.Server.SMPP)
	list, _ := json.Marshal(orders)
	c := exec.Command("node", "esme.js", port, systemID, password, string(list))
	c.Dir = filepath.Join(rig.Root(), "e2e", "node")
	out, err := c.StdoutPipe()
	if err == nil {
		err = rig.Launch(c)
	}
	if err != nil {
		x.t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			var s nodeSaid
			if json.Unmarshal(lines.Bytes(), &s) == nil {
				n.mu.Lock()
				n.said = append(n.said, s)
				n.mu.Unlock()
			}
		}
		_ = c.Wait()
	}()
	x.t.Cleanup(func() { _ = c.Process.Kill(); <-ended })
	return n
}

// all returns the lines for which of is true.
func (n *nodeESME) all(of func(nodeSaid) bool) (all []nodeSaid) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, s := range n.said {
		if of(s) {
			all = append(all, s)
		}
	}
	return all
}

// wait waits until n lines match of.
func (n *nodeESME) wait(t *testing.T, what string, count int, of func(nodeSaid) bool) []nodeSaid {
	t.Helper()
	rig.Until(t, fmt.Sprint(count, " ", what), 60*time.Second, func() bool { return len(n.all(of)) >= count })
	return n.all(of)
}

func isBound(s nodeSaid) bool     { return s.Bound != nil }
func isSubmitted(s nodeSaid) bool { return s.Submitted != nil }
func isReceipt(s nodeSaid) bool   { return s.Receipt != "" }
func isMessage(s nodeSaid) bool   { return s.Message != "" }
func isClosed(s nodeSaid) bool    { return s.Closed }

// npm's smpp sends GSM 7 bit as data_coding 1, and does not support plus signs.
func TestNodeSMPP_EveryCoding(t *testing.T) {
	eachTexting(t, 4, func(t *testing.T, x *texting) {
		a := x.application(map[string]any{})
		texts := []string{"Grüße @ Häuser_1: 5 $ [€] {ñ}", "Привет 🚀", long, "bare numbers"}
		n := x.startNodeESME(a.SystemID, a.Password,
			map[string]any{"from": x.numbers[0], "to": "+12025550115", "text": texts[0]}, map[string]any{"from": x.numbers[1], "to": "+12025550115", "text": texts[1]},
			map[string]any{"from": x.numbers[2], "to": "+12025550115", "text": texts[2], "payload": true},
			map[string]any{"from": x.numbers[3], "to": "+12025550112", "text": texts[3], "bare": true})
		ids := map[int]string{}
		for _, s := range n.wait(t, "answers", 4, isSubmitted) {
			if ids[*s.Submitted] = s.ID; s.Status != 0 {
				t.Errorf("message %d was answered %#x", *s.Submitted, s.Status)
			}
		}
		for i, want := range texts {
			var m text
			x.Want(200, "GET", "/sms/"+ids[i], nil, &m)
			if m.Body != want {
				t.Errorf("written as %q, not %q", m.Body, want)
			}
		}
		stats := map[string]string{}
		for _, r := range n.wait(t, "receipts", 4, isReceipt) {
			stats[r.Receipt] = r.Stat
		}
		if stats[ids[0]] != "DELIVRD" || stats[ids[3]] != "UNDELIV" || len(stats) != 4 {
			t.Errorf("receipts: %v", stats)
		}
		var came []string
		for _, m := range n.wait(t, "replies", 3, isMessage) {
			came = append(came, m.Message)
		}
		slices.Sort(came)
		want := slices.Sorted(slices.Values(texts[:3]))
		if !slices.Equal(came, want) {
			t.Errorf("replies: %q", came)
		}
	})
}

func TestBind_GuessersBanned(t *testing.T) {
	eachTexting(t, 1, func(t *testing.T, x *texting) {
		a := x.application(map[string]any{})
		if s := x.startNodeESME(a.SystemID, "wrong").wait(t, "answer", 1, isBound); *s[0].Bound != 0x0d {
			t.Errorf("a wrong password is answered %#x", *s[0].Bound)
		}
		if s := x.startNodeESME("nobody", a.Password).wait(t, "answer", 1, isBound); *s[0].Bound != 0x0d {
			t.Errorf("an unknown name is answered %#x", *s[0].Bound)
		}
		inside := x.startNodeESME(a.SystemID, a.Password)
		inside.wait(t, "bind", 1, isBound)
		for range 8 {
			x.startNodeESME(a.SystemID, "wrong").wait(t, "answer", 1, isBound)
		}
		late := x.startNodeESME(a.SystemID, a.Password)
		late.wait(t, "end", 1, isClosed)
		if s := late.all(isBound); len(s) > 0 {
			t.Errorf("who is banned is answered %#x", *s[0].Bound)
		}
		x.Want(201, "POST", "/sandbox/sms/inbound", map[string]any{"from": "+12025550199", "to": x.numbers[0], "body": "still there"}, nil)
		if m := inside.wait(t, "message", 1, isMessage); m[0].Message != "still there" || !strings.HasSuffix(m[0].From, "12025550199") {
			t.Errorf("came %+v", m)
		}
	})
}
