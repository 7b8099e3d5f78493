package rig

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"text/template"
	"time"

	"soniq/e2e/limit"
)

// Login holds the credentials with which a telephone registers.
type Login struct {
	Username string `json:"username"`
	Domain   string `json:"domain"`
	Password string `json:"password"`
}

// PhoneOptions configure a telephone.
type PhoneOptions struct {
	Say        string // WAV file (8 kHz, one channel) that it speaks in a call
	Transport  string // "" for udp; tcp or tls
	Authority  string // file of the certificate that must have signed the server's; for tls
	Auto       bool   // answers at once
	Codecs     string // "" for PCMU/8000,PCMA/8000
	Encrypt    string // media encryption: srtp (if the peer supports it), srtp-mand or dtls_srtp; "" for none
	Register   int    // longest interval between registrations, in seconds; 0 for 300
	Unregister bool   // does not register
	Lamp       bool   // subscribes to its mailbox (MWI, RFC 3842), and reports a NOTIFY as the event MWI_NOTIFY
	Refused    bool   // its registration is expected to fail

	Through *BadNetwork // network between it and the server; nil for none
	Behind  *NAT        // network that contains it; nil for the network of the server
}

// Phone is a baresip: a real telephone without a display.
type Phone struct {
	T    testing.TB
	Port int // of SIP

	dir     string
	command *exec.Cmd
	exited  chan struct{}
	out     *log
	conn    net.Conn

	mu     sync.Mutex // guards the fields below
	events []PhoneEvent
	more   chan struct{}
}

// PhoneEvent is an event of baresip: a type such as CALL_ESTABLISHED and its parameter.
type PhoneEvent struct {
	Event    bool   `json:"event"`
	Type     string `json:"type"`
	Param    string `json:"param"`
	Response bool   `json:"response"`
	OK       bool   `json:"ok"`
	Data     string `json:"data"`
	Token    string `json:"token"`
}

// Phone starts a telephone and registers it.
func (s *Server) Phone(l Login, o PhoneOptions) *Phone {
	s.T.Helper()
	path, err := exec.LookPath("baresip")
	if err != nil {
		s.T.Skip("baresip is not installed")
	}
	p := &Phone{T: s.T, Port: FreePort(s.T), dir: s.T.TempDir(), out: &log{}, exited: make(chan struct{}), more: make(chan struct{})}
	control, host := FreePort(s.T), s.host()
	command, dial := exec.Command, net.Dial
	if o.Behind != nil {
		host, command, dial = o.Behind.Inside, o.Behind.command, func(_, at string) (net.Conn, error) { return o.Behind.dial(at) }
	}
	p.write("config", map[string]any{"Host": host, "Listen": net.JoinHostPort(host, strconv.Itoa(p.Port)), "Control": control, "Say": o.Say,
		"Heard": p.dir, "Modules": modules(s.T), "Authority": o.Authority, "Lamp": o.Lamp,
		"DTLS": o.Encrypt == "dtls_srtp"}) // the module makes an RSA key when it starts
	p.write("accounts", nil)
	p.write("contacts", nil)
	p.command = command(path, family(host), "-f", p.dir)
	p.command.Stdout, p.command.Stderr = p.out, p.out
	if err := Launch(p.command); err != nil {
		s.T.Fatalf("start baresip: %v", err)
	}
	go func() { _ = p.command.Wait(); close(p.exited) }()
	s.T.Cleanup(p.cleanup)
	p.connect(func() (net.Conn, error) { return dial("tcp", "127.0.0.1:"+strconv.Itoa(control)) })
	p.logIn(s, l, o)
	return p
}

// write fills in a file of e2e/baresip; without values the file is empty.
func (p *Phone) write(name string, values any) {
	p.T.Helper()
	var b bytes.Buffer
	if values != nil {
		b.WriteString(filled(p.T, filepath.Join("baresip", name), values))
	}
	if err := os.WriteFile(filepath.Join(p.dir, name), b.Bytes(), 0o600); err != nil {
		p.T.Fatal(err)
	}
}

// filled returns a file of the e2e folder as a template with its values filled in.
func filled(t testing.TB, name string, values any) string {
	t.Helper()
	parsed, err := template.ParseFiles(filepath.Join(Root(), "e2e", name))
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := parsed.Execute(&b, values); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// modules returns the folder in which Debian keeps the modules of baresip.
func modules(t testing.TB) string {
	for _, pattern := range []string{"/usr/lib/baresip/modules", "/usr/lib/*/baresip/modules", "/usr/local/lib/baresip/modules"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 {
			return found[0]
		}
	}
	t.Skip("baresip's modules are not installed")
	return ""
}

// family returns the configuration with which baresip uses addresses of one family only.
func family(host string) string {
	if strings.Contains(host, ":") {
		return "-6"
	}
	return "-4"
}

func (p *Phone) connect(dial func() (net.Conn, error)) {
	p.T.Helper()
	Until(p.T, "control socket of baresip", 20*time.Second, func() (ok bool) {
		conn, err := dial()
		p.conn = conn
		return err == nil
	})
	go p.read()
}

// read reads netstrings with JSON from the control socket.
func (p *Phone) read() {
	in := bufio.NewReader(p.conn)
	for {
		length, err := in.ReadString(':')
		if err != nil {
			return
		}
		n, err := strconv.Atoi(strings.TrimSuffix(length, ":"))
		if err != nil {
			return
		}
		b := make([]byte, n+1) // and the comma
		if _, err := io.ReadFull(in, b); err != nil {
			return
		}
		var e PhoneEvent
		if json.Unmarshal(b[:n], &e) != nil {
			continue
		}
		p.mu.Lock()
		p.events = append(p.events, e)
		close(p.more)
		p.more = make(chan struct{})
		p.mu.Unlock()
	}
}

func (p *Phone) logIn(s *Server, l Login, o PhoneOptions) {
	p.T.Helper()
	values := map[string]any{"Username": l.Username, "Password": l.Password, "Server": s.SIP, "Transport": "udp", "Register": 300,
		"Answer": "manual", "Codecs": "PCMU/8000,PCMA/8000", "Encrypt": o.Encrypt, "Through": ""}
	if o.Transport != "" {
		values["Transport"] = o.Transport
	}
	if o.Transport == "tls" {
		values["Server"] = s.SIPS
	}
	if o.Auto {
		values["Answer"] = "auto"
	}
	if o.Codecs != "" {
		values["Codecs"] = o.Codecs
	}
	if o.Register != 0 {
		values["Register"] = o.Register
	}
	if o.Unregister {
		values["Register"] = 0
	}
	if o.Through != nil {
		values["Through"] = o.Through.Address()
	}
	p.Do("uanew", strings.TrimSpace(filled(p.T, "baresip/account", values)))
	switch {
	case o.Refused:
		p.Wait("REGISTER_FAIL", "")
	case !o.Unregister:
		p.Wait("REGISTER_OK", "")
	}
}

// Do sends a command to the telephone: dial, accept, hangup, hold, resume, sndcode … It returns the response.
func (p *Phone) Do(command, params string) string {
	p.T.Helper()
	p.mu.Lock()
	token := strconv.Itoa(len(p.events)) + command
	p.mu.Unlock()
	b, _ := json.Marshal(map[string]string{"command": command, "params": params, "token": token})
	if _, err := fmt.Fprintf(p.conn, "%d:%s,", len(b), b); err != nil {
		p.T.Fatalf("baresip %s: %v", command, err)
	}
	answer := p.await("answer to "+command, false, func(e PhoneEvent) bool { return e.Response && e.Token == token })
	if !answer.OK {
		p.T.Fatalf("baresip %s %s: %s", command, params, answer.Data)
	}
	return answer.Data
}

// Wait waits for an event whose parameter contains a text, and removes it and all earlier events.
func (p *Phone) Wait(kind, text string) PhoneEvent {
	p.T.Helper()
	return p.await(kind+" "+text, true, func(e PhoneEvent) bool {
		return e.Event && e.Type == kind && strings.Contains(e.Param, text)
	})
}

// WaitAll waits for one event of each kind, in any order, and removes these.
func (p *Phone) WaitAll(kinds ...string) {
	p.T.Helper()
	for _, kind := range kinds {
		p.await(kind, false, func(e PhoneEvent) bool { return e.Event && e.Type == kind })
	}
}

// await waits for a matching event and removes it. If older is true, it also removes all earlier events.
func (p *Phone) await(what string, older bool, match func(PhoneEvent) bool) PhoneEvent {
	p.T.Helper()
	deadline := time.After(limit.Hang(0))
	for {
		p.mu.Lock()
		more := p.more
		for i, e := range p.events {
			if match(e) {
				before := p.events[:i:i]
				if older {
					before = nil
				}
				p.events = append(before, p.events[i+1:]...)
				p.mu.Unlock()
				return e
			}
		}
		seen := fmt.Sprintf("%+v", p.events)
		p.mu.Unlock()
		select {
		case <-more:
		case <-p.exited:
			p.T.Fatalf("baresip ended (%v) while %s was awaited:\n%s", p.command.ProcessState, what, tail(p.out.String(), 40))
		case <-deadline:
			p.T.Fatalf("baresip: no %s within %s; there were %s\n%s", what, limit.Hang(0), seen, tail(p.out.String(), 40))
		}
	}
}

// Dial calls a number and waits until it is answered. It discards the events of earlier calls.
func (p *Phone) Dial(number string) {
	p.T.Helper()
	p.mu.Lock()
	p.events = nil
	p.mu.Unlock()
	p.Do("dial", number)
	p.Wait("CALL_ESTABLISHED", "")
}

// Listen waits until the telephone has received audio of a length in its last call. Silence that is not sent does not
// count.
func (p *Phone) Listen(d time.Duration) {
	p.T.Helper()
	Until(p.T, "audio of "+d.String(), d, func() bool {
		info, err := os.Stat(p.heard())
		return err == nil && info.Size() >= int64(d.Seconds()*8000*2)
	})
}

// heard returns the file with the audio received in the last call.
func (p *Phone) heard() string {
	found, _ := filepath.Glob(filepath.Join(p.dir, "dump-*-dec.wav"))
	if len(found) == 0 {
		return ""
	}
	return found[len(found)-1]
}

// Close switches the telephone off and returns the WAV file (8 kHz, one channel) of the audio received in its last
// call.
func (p *Phone) Close() string {
	p.T.Helper()
	p.stop()
	if p.heard() == "" {
		p.T.Fatalf("the telephone had no call")
	}
	return p.heard()
}

func (p *Phone) stop() {
	if p.conn != nil {
		_ = p.conn.Close()
	}
	_ = p.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.exited:
	case <-time.After(3 * time.Second): // it cannot unregister if the server is gone
		_ = p.command.Process.Kill()
		<-p.exited
	}
}

func (p *Phone) cleanup() {
	p.stop()
	if p.T.Failed() && verbose() {
		p.T.Logf("baresip wrote:\n%s", tail(p.out.String(), 40))
	}
}

// Mark returns how much audio the telephone has received in its last call so far, in samples.
func (p *Phone) Mark() int { return samplesIn(p.heard()) }

// Since waits until the telephone has received d of audio after a mark, and returns exactly that, at 8 kHz.
func (p *Phone) Since(mark int, d time.Duration) []int16 {
	p.T.Helper()
	return since(p.T, p.heard(), mark, 1, d)
}

// samplesIn returns the number of samples in a WAV file that is still being written.
func samplesIn(path string) int {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return max(int(info.Size()-44)/2, 0)
}

// since waits until a file contains d of audio after a mark, and returns exactly that, at 8 kHz. It returns one of
// each step samples in the file.
func since(t testing.TB, path string, mark, step int, d time.Duration) []int16 {
	t.Helper()
	n := int(d.Seconds() * 8000)
	if !Eventually(d, func() bool { return samplesIn(path) >= mark+n*step }) {
		t.Fatalf("audio of %s after sample %d: %s has %d", d, mark, path, samplesIn(path))
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	pcm := make([]int16, n)
	for i := range pcm {
		at := 44 + 2*(mark+i*step)
		pcm[i] = int16(uint16(b[at]) | uint16(b[at+1])<<8)
	}
	return pcm
}

// Vanish kills the telephone as a power cut does: it neither unregisters nor ends its calls.
func (p *Phone) Vanish() {
	_ = p.command.Process.Kill()
	<-p.exited
}
