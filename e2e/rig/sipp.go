package rig

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"text/template"
	"time"

	"soniq/e2e/limit"
)

// Script configures a run of a scenario of e2e/sipp.
type Script struct {
	Scenario string // file name without .xml
	IP       string // "" for 127.0.0.1
	Port     int    // 0 for a free one
	Login    *Login // account with which it registers and answers challenges
	From     string // user in From and Contact; "" for the log-in's, or peer
	Number   string // called
	Calls    int    // 0 for one
	Rate     int    // calls per second
	Talk     time.Duration
	TCP      bool
	Expires  int  // seconds a registration lasts; 0 for 300
	Quiet    bool // keeps no messages; the scenario answer ignores unexpected ones
	Limit    time.Duration

	LateOffer bool     // the INVITE has no SDP
	Formats   string   // payload types offered or answered beside events; "" for 0, PCMU
	Play      string   // raw mu-law file that it sends as audio
	Event     string   // event that a NOTIFY must name, "" for any; or that it watches, "" for dialog
	Headers   []string // further header lines of the INVITE
	Status    int      // status that it expects, or with which it refuses
	Hold      string   // SDP direction with which it requests or accepts a hold
	Ring      int      // milliseconds before the answer
	NoEvents  bool     // offers and answers no telephone-event
	Echo      bool     // sends received audio back
	Picture   bool     // its INFO requests a video picture instead of carrying a digit
	Ponder    int      // milliseconds before it accepts a hold
	Refer     string   // target of its REFER, or of its redirection
	Reason    string   // Reason of its CANCEL; "" for none
	Early     string   // SDP direction of its 183, or 0.0.0.0 for that address; "" for sendrecv
}

// script holds the values of a Script for the scenario templates.
type script struct {
	Script
	Round  int // 1, or 2 with credentials: CSeq of the INVITE
	Last   int // CSeq of the BYE
	Media  string
	Twelve [12]struct{}
	Told   [12]struct{} // upper limit of notifications that a watcher receives

	Attempts []int // CSeqs of a REGISTER and its repetition with credentials

	Direction string // of the SDP, or 0.0.0.0; "" for sendrecv
}

// WithEarly returns the script of the 183.
func (s script) WithEarly() script {
	s.Direction = s.Early
	return s
}

// First returns the script of the INVITE without credentials.
func (s script) First() script {
	s.Round = 1
	return s
}

func (s Script) filled() script {
	x := script{Script: s, Round: 1, Media: "[media_port]", Attempts: []int{1, 2}}
	if s.Login != nil {
		x.Round = 2
	}
	x.Last = x.Round + 3
	x.Expires = cmp.Or(x.Expires, 300)
	x.Formats = either(x.Formats, "0")
	if s.Play != "" {
		x.Media = "[rtpstream_audio_port]"
	}
	return x
}

// Sipp is a running sipp.
type Sipp struct {
	T    testing.TB
	Port int

	script  Script
	dir     string
	command *exec.Cmd
	out     bytes.Buffer
	exited  chan error
}

// Sipp starts a scenario against the server. A calling scenario begins at once; a called scenario listens when Sipp
// returns.
func (s *Server) Sipp(x Script) *Sipp {
	s.T.Helper()
	path, err := exec.LookPath("sipp")
	if err != nil {
		s.T.Skip("sipp is not installed")
	}
	x.IP = either(x.IP, "127.0.0.1")
	if x.From == "" && x.Login != nil {
		x.From = x.Login.Username
	}
	x.From = either(x.From, "peer")
	if x.Port == 0 {
		x.Port = FreePort(s.T)
	}
	p := &Sipp{T: s.T, Port: x.Port, script: x, dir: s.T.TempDir(), exited: make(chan error, 1)}
	file := filepath.Join(p.dir, x.Scenario+".xml")
	if err := os.WriteFile(file, []byte(scenario(s.T, x)), 0o600); err != nil {
		s.T.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit.Hang(max(x.Limit, x.Talk)))
	s.T.Cleanup(cancel)
	p.command = exec.CommandContext(ctx, path, append(p.args(file), s.SIP)...)
	p.command.Dir, p.command.Stdout, p.command.Stderr = p.dir, &p.out, &p.out
	if err := Launch(p.command); err != nil {
		s.T.Fatalf("start sipp: %v", err)
	}
	go func() { p.exited <- p.command.Wait() }()
	if strings.HasPrefix(x.Scenario, "answer") || x.Scenario == "refuse" || x.Scenario == "cancelled" {
		p.bound()
	}
	return p
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// scenario returns the text of a scenario with its parts and values filled in.
func scenario(t testing.TB, x Script) string {
	t.Helper()
	dir := filepath.Join(Root(), "e2e", "sipp")
	parsed, err := template.New(x.Scenario+".xml").Funcs(template.FuncMap{"add": func(a, b int) int { return a + b }}).
		ParseFiles(filepath.Join(dir, "parts.xml"), filepath.Join(dir, x.Scenario+".xml"))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := parsed.Execute(&b, x.filled()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func (p *Sipp) args(file string) []string {
	x := p.script
	rtp := FreePort(p.T)
	if x.Play != "" {
		rtp = audioPorts(p.T)
	}
	args := []string{"-sf", file, "-i", x.IP, "-p", strconv.Itoa(x.Port), "-mi", x.IP, "-mp", strconv.Itoa(rtp),
		"-m", strconv.Itoa(max(x.Calls, 1)), "-nostdin", "-trace_err", "-buff_size", "4194304"}
	if x.Rate > 0 {
		args = append(args, "-r", strconv.Itoa(x.Rate), "-l", strconv.Itoa(max(x.Calls, 1)))
	}
	if x.Number != "" {
		args = append(args, "-s", x.Number)
	}
	if x.Login != nil {
		args = append(args, "-au", x.Login.Username, "-ap", x.Login.Password)
	}
	if x.Talk > 0 {
		args = append(args, "-d", strconv.Itoa(int(x.Talk.Milliseconds())))
	}
	if x.Echo {
		args = append(args, "-rtp_echo")
	}
	if x.TCP {
		args = append(args, "-t", "t1")
	}
	switch {
	case x.Quiet && x.Scenario == "answer": // under load an INVITE is repeated now and then, which sipp does not expect
		args = append(args, "-default_behaviors", "all,-abortunexp")
	case !x.Quiet:
		args = append(args, "-trace_msg")
	}
	return args
}

// boundPort reports whether a socket of this machine is bound to a port. It reads the kernel's table: an attempt to bind the port would
// fail the program that is about to.
func boundPort(tcp bool, port int) bool {
	tables := []string{"/proc/net/udp", "/proc/net/udp6"}
	if tcp {
		tables = []string{"/proc/net/tcp", "/proc/net/tcp6"}
	}
	suffix := fmt.Sprintf(":%04X", port)
	for _, name := range tables {
		b, _ := os.ReadFile(name) // a machine without IPv6 has no table of it
		for line := range strings.Lines(string(b)) {
			if columns := strings.Fields(line); len(columns) > 1 && strings.HasSuffix(columns[1], suffix) {
				return true
			}
		}
	}
	return false
}

// bound waits until sipp listens.
func (p *Sipp) bound() {
	p.T.Helper()
	Until(p.T, "sipp's port", 20*time.Second, func() bool {
		select {
		case err := <-p.exited:
			p.exited <- err
			p.T.Fatalf("sipp ended at once: %v", p.End())
		default:
		}
		return boundPort(p.script.TCP, p.Port)
	})
}

// Wait waits until the scenario has ended, and fails the test unless it succeeded.
func (p *Sipp) Wait() {
	p.T.Helper()
	if err := p.End(); err != nil {
		p.T.Fatal(err)
	}
}

// End waits until the scenario has ended, and returns an error if it failed.
func (p *Sipp) End() error {
	err := <-p.exited
	p.exited <- err
	if err == nil {
		return nil
	}
	text := ""
	for _, log := range p.files("*errors.log") {
		b, _ := os.ReadFile(log)
		text += string(b)
	}
	return fmt.Errorf("sipp %s: %w\n%s\n%s", p.script.Scenario, err, head(text, 60), tail(p.out.String(), 30))
}

func head(s string, lines int) string {
	all := strings.Split(s, "\n")
	return strings.Join(all[:min(lines, len(all))], "\n")
}

func (p *Sipp) files(pattern string) []string {
	found, _ := filepath.Glob(filepath.Join(p.dir, pattern))
	return found
}

// Message is a SIP message from the log of sipp.
type Message struct {
	Received bool
	Text     string // with \n
}

var messageLine = regexp.MustCompile(`(?m)^(?:UDP|TCP) message (sent|received)[^\n]*\n\n`)

// Messages returns the messages of the scenario in their order.
func (p *Sipp) Messages() []Message {
	p.T.Helper()
	var all []Message
	for _, file := range p.files("*messages.log") {
		b, err := os.ReadFile(file)
		if err != nil {
			p.T.Fatal(err)
		}
		text := strings.ReplaceAll(string(b), "\r", "")
		places := messageLine.FindAllStringSubmatchIndex(text, -1)
		for i, at := range places {
			end := len(text)
			if i+1 < len(places) {
				end = places[i+1][0]
			}
			body, _, _ := strings.Cut(text[at[1]:end], "\n-----------------------------------------------")
			all = append(all, Message{text[at[2]:at[3]] == "received", body})
		}
	}
	return all
}

// Received returns the n-th received message that begins with start, from 0.
func (p *Sipp) Received(start string, n int) string {
	p.T.Helper()
	for _, m := range p.Messages() {
		if m.Received && strings.HasPrefix(m.Text, start) {
			if n == 0 {
				return m.Text
			}
			n--
		}
	}
	p.T.Fatalf("sipp %s received no %q", p.script.Scenario, start)
	return ""
}

// Field returns the value of a header field of a message.
func Field(message, name string) string {
	for line := range strings.SplitSeq(message, "\n") {
		if n, v, ok := strings.Cut(line, ":"); ok && strings.EqualFold(n, name) {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
