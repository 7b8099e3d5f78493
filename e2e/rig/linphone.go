package rig

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"soniq/e2e/limit"
)

// LinphoneOptions configure a linphonec.
type LinphoneOptions struct {
	Say  string // WAV file (8 kHz, one channel) that it speaks in a call
	Auto bool   // answers at once
	Wide bool   // speaks Opus; else PCMU

	Address string // address from which it fetches its account, in place of a login
	Trust   string // file of the certificate that must have signed that of the address

	Authority string // file of the certificate that must have signed the server's: it speaks TLS, and no audio but SRTP

	Relay *TCPRelay // through which it reaches the server by TCP; nil: it speaks UDP, or TLS
}

// Linphone is a linphonec: a second telephone implementation beside baresip. It has a transfer of its own and keeps
// recording audio while on hold.
type Linphone struct {
	T    testing.TB
	Port int // of SIP

	dir     string
	step    int // sampling rate of its recording as a multiple of 8 kHz
	command *exec.Cmd
	exited  chan struct{}
	in      io.WriteCloser

	mu   sync.Mutex // guards the fields below
	out  []byte
	read int // how much of out Wait has passed
	more chan struct{}
}

// Linphone starts a linphonec and registers it.
func (s *Server) Linphone(l Login, o LinphoneOptions) *Linphone {
	s.T.Helper()
	path, err := exec.LookPath("linphonec")
	if err != nil {
		s.T.Skip("linphonec is not installed")
	}
	p := &Linphone{T: s.T, Port: FreePort(s.T), dir: s.T.TempDir(), step: 1, exited: make(chan struct{}), more: make(chan struct{})}
	if o.Wide {
		p.step = 6
	}
	host := s.host()
	values := map[string]any{"SIP": p.Port, "Server": s.SIP, "Username": l.Username, "Password": l.Password, "Host": host,
		"IPv6": strings.Contains(host, ":"), "Authority": o.Authority, "Address": o.Address, "Trust": o.Trust, "Relay": ""}
	if o.Relay != nil {
		values["Relay"] = o.Relay.Address
	}
	if o.Authority != "" {
		values["Server"] = s.SIPS
	}
	for _, folder := range []string{".local/share/linphone", ".config/linphone"} { // linphonec does not start without them
		if err := os.MkdirAll(filepath.Join(p.dir, folder), 0o700); err != nil {
			s.T.Fatal(err)
		}
	}
	config := filepath.Join(p.dir, "config")
	if err := os.WriteFile(config, []byte(filled(s.T, filepath.Join("linphone", "config"), values)), 0o600); err != nil {
		s.T.Fatal(err)
	}
	p.start(path, config)
	if o.Address != "" { // commands before it has loaded its configuration are lost
		p.registered()
	}
	p.Do("soundcard use files")
	if o.Address == "" { // a fetched account names the codecs
		p.Do("codec disable all")
		p.Do("codec enable " + map[bool]string{false: "3", true: "0"}[o.Wide]) // PCMU, opus
	}
	p.Do("play " + o.Say)
	p.Do("record " + p.heard())
	if o.Auto {
		p.Do("autoanswer enable")
	}
	p.registered()
	return p
}

// registered waits until the telephone is registered.
func (p *Linphone) registered() {
	p.T.Helper()
	Until(p.T, "linphonec's registration", 0, func() bool {
		p.Do("status register")
		return p.Wait(`registered=(-?\d)|registered, identity`)[1] == ""
	})
}

func (p *Linphone) start(path, config string) {
	p.T.Helper()
	p.command = exec.Command(path, "-c", config, "-d", "0")
	p.command.Dir, p.command.Stdout, p.command.Stderr = p.dir, p, io.Discard
	p.command.Env = append(os.Environ(), "HOME="+p.dir, "TERM=dumb")
	var err error
	if p.in, err = p.command.StdinPipe(); err == nil {
		err = Launch(p.command)
	}
	if err != nil {
		p.T.Fatalf("start linphonec: %v", err)
	}
	go func() { _ = p.command.Wait(); close(p.exited) }()
	p.T.Cleanup(p.stop)
}

// Write receives the output of linphonec.
func (p *Linphone) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out = append(p.out, b...)
	close(p.more)
	p.more = make(chan struct{})
	return len(b), nil
}

// Do types a command: call, answer, terminate, pause, resume, transfer … (see its "help").
func (p *Linphone) Do(command string) {
	p.T.Helper()
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		p.T.Fatalf("linphonec %s: %v", command, err)
	}
}

// Wait waits until linphonec prints a match of an expression, after the match of the previous Wait, and returns its
// groups.
func (p *Linphone) Wait(expression string) []string {
	p.T.Helper()
	wanted := regexp.MustCompile(expression)
	deadline := time.After(limit.Hang(0))
	for {
		p.mu.Lock()
		more := p.more
		if at := wanted.FindSubmatchIndex(p.out[p.read:]); at != nil {
			text := string(p.out[p.read:])
			p.read += at[1]
			p.mu.Unlock()
			return wanted.FindStringSubmatch(text)
		}
		text := string(p.out)
		p.mu.Unlock()
		select {
		case <-more:
		case <-p.exited:
			p.T.Fatalf("linphonec ended while %q was awaited:\n%s", expression, tail(text, 40))
		case <-deadline:
			p.T.Fatalf("linphonec: no %q within %s:\n%s", expression, limit.Hang(0), tail(text, 40))
		}
	}
}

// Dial calls a number, waits until it is answered, and returns linphonec's number of the call.
func (p *Linphone) Dial(number string) string {
	p.T.Helper()
	p.Do("call " + number)
	return p.Wait(`Call (\d+) with \S+ connected`)[1]
}

// Mark returns how much audio the telephone has received so far, in samples.
func (p *Linphone) Mark() int { return samplesIn(p.heard()) }

// Since waits until the telephone has received d of audio after a mark, and returns exactly that, at 8 kHz.
func (p *Linphone) Since(mark int, d time.Duration) []int16 {
	p.T.Helper()
	return since(p.T, p.heard(), mark, p.step, d)
}

// heard returns the file in which it records received audio.
func (p *Linphone) heard() string { return filepath.Join(p.dir, "heard.wav") }

func (p *Linphone) stop() {
	_, _ = fmt.Fprintln(p.in, "quit")
	_ = p.in.Close()
	select {
	case <-p.exited:
	case <-time.After(5 * time.Second):
		_ = p.command.Process.Kill()
		<-p.exited
	}
	if p.T.Failed() && verbose() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.T.Logf("linphonec wrote:\n%s", tail(strings.ReplaceAll(string(p.out), "\r", ""), 60))
	}
}
