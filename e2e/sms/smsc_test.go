package sms

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"soniq/e2e/fixture"
	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// smsc is an SMS centre made with npm's smpp, in a process of its own.
type smsc struct {
	t    testing.TB
	port int
	*exec.Cmd
	in   io.WriteCloser
	over chan struct{}

	mu   sync.Mutex // guards seen
	seen []smscEvent
}

// smscEvent is an event that an SMS centre reports.
type smscEvent struct {
	Port                     int
	Event, ID, From, To      string
	Text                     string
	Coding, Wants, Reference int
	Total, Part, Status      int
}

// newSMSC starts an SMS centre on a free port.
func newSMSC(t testing.TB) *smsc {
	t.Helper()
	c := &smsc{t: t}
	c.start()
	t.Cleanup(func() { c.stop() })
	return c
}

// start starts the centre, again on the port it had.
func (c *smsc) start() {
	c.t.Helper()
	folder := filepath.Join(rig.Root(), "e2e", "node")
	if _, err := os.Stat(filepath.Join(folder, "node_modules", "smpp")); err != nil {
		c.t.Skip("needs npm ci in e2e/node; scripts/setup test does it")
	}
	c.Cmd = exec.Command("node", "centre.js", fmt.Sprint(c.port))
	c.Cmd.Dir, c.Cmd.Stderr = folder, os.Stderr
	in, err := c.StdinPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		c.t.Fatal(err)
	}
	if err := rig.Launch(c.Cmd); err != nil {
		c.t.Fatal(err)
	}
	c.in, c.over = in, make(chan struct{})
	port := make(chan int, 1)
	go c.follow(out, port, c.over)
	select {
	case c.port = <-port:
	case <-time.After(limit.Hang(0)):
		c.t.Fatal("the centre did not start")
	}
}

// follow reads the events of the centre.
func (c *smsc) follow(out io.Reader, port chan int, over chan struct{}) {
	defer close(over)
	s := bufio.NewScanner(out)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var x smscEvent
		if json.Unmarshal(s.Bytes(), &x) != nil {
			continue
		}
		if x.Port != 0 {
			port <- x.Port
			continue
		}
		c.mu.Lock()
		c.seen = append(c.seen, x)
		c.mu.Unlock()
	}
}

// stop kills the centre.
func (c *smsc) stop() {
	_ = c.Process.Kill()
	<-c.over
	_ = c.Wait()
}

// order sends a command to the centre.
func (c *smsc) order(o map[string]any) {
	c.t.Helper()
	b, err := json.Marshal(o)
	if err != nil {
		c.t.Fatal(err)
	}
	if _, err := c.in.Write(append(b, '\n')); err != nil {
		c.t.Fatal(err)
	}
}

// all returns the events of a kind, to a number unless that is "".
func (c *smsc) all(event, to string) (all []smscEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.seen {
		if x.Event == event && (to == "" || "+"+x.To == to) {
			all = append(all, x)
		}
	}
	return all
}

// wait waits until n events of a kind have come.
func (c *smsc) wait(event string, n int) []smscEvent {
	c.t.Helper()
	rig.Until(c.t, fmt.Sprintf("%d × %s at the centre", n, event), 60*time.Second, func() bool { return len(c.all(event, "")) >= n })
	return c.all(event, "")
}

// smsOrg is an organisation with a number that sends through an SMS centre.
type smsOrg struct {
	*fixture.Org
	centre  *smsc
	from    string
	carrier string
}

// connectSMSC adds a number for messages to an organisation, and an SMS centre as its carrier.
func connectSMSC(o *fixture.Org, c *smsc, settings, more map[string]any) *smsOrg {
	o.T.Helper()
	x := &smsOrg{Org: o, centre: c, from: "+12025550143"}
	way := o.AddCarrier("", nil)
	o.Want(201, "POST", "/numbers", map[string]any{"number": x.from, "trunk_id": way.Trunk, "sms_enabled": true}, nil)
	all := map[string]any{"host": "127.0.0.1", "port": c.port, "system_id": "soniq", "password": "secret"}
	for name, v := range settings {
		all[name] = v
	}
	body := map[string]any{"provider": "smpp", "name": "Centre", "settings": all, "rate_per_second": 1000, "number_rate_per_second": 1000}
	for name, v := range more {
		body[name] = v
	}
	var made struct{ ID string }
	o.Want(201, "POST", "/sms/carriers", body, &made)
	x.carrier = made.ID
	return x
}

// smsMessage is a message as the API shows it.
type smsMessage struct {
	ID, Status, Encoding string
	Segments             int
	Error                *struct {
		Code        string
		CarrierCode *string `json:"carrier_code"`
	}
}

// send sends a message.
func (x *smsOrg) send(to, body string) smsMessage {
	x.T.Helper()
	var m smsMessage
	x.Want(201, "POST", "/sms", map[string]any{"from": x.from, "to": to, "body": body}, &m)
	return m
}

// waitCarrier waits until the carrier is in a state.
func (x *smsOrg) waitCarrier(status string) {
	x.T.Helper()
	var c struct{ Status string }
	rig.Until(x.T, "a carrier that is "+status, 60*time.Second, func() bool {
		x.Want(200, "GET", "/sms/carriers/"+x.carrier, nil, &c)
		return c.Status == status
	})
}
