package smppserver

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf16"

	"soniq/e2e/rig"
)

// kannel is an SMS gateway that is an SMPP application of the organisation. Its bearerbox speaks SMPP, its smsbox
// HTTP.
type kannel struct {
	t       *testing.T
	sendURL string
	dir     string
	hooks   *httptest.Server

	mu   sync.Mutex // guards the fields below
	got  []url.Values
	dlrs []url.Values
}

// startKannel starts a kannel that binds to a server. Lines in more are added to its configuration for the server.
func startKannel(t *testing.T, smpp, systemID, password string, more ...string) *kannel {
	t.Helper()
	k := &kannel{t: t, dir: t.TempDir()}
	k.hooks = httptest.NewServer(http.HandlerFunc(k.hear))
	t.Cleanup(k.hooks.Close)
	ports := [3]int{rig.FreePort(t), rig.FreePort(t), rig.FreePort(t)}
	k.sendURL = fmt.Sprintf("http://127.0.0.1:%d/cgi-bin/sendsms", ports[2])
	host, port, _ := strings.Cut(smpp, ":")
	k.write("kannel.conf", fmt.Sprintf(`group = core
admin-port = %d
admin-password = admin
smsbox-port = %d
admin-allow-ip = 127.0.0.1
box-allow-ip = 127.0.0.1
log-level = 0
sms-resend-freq = 1
sms-resend-retry = -1
dlr-storage = internal

group = smsc
smsc = smpp
smsc-id = soniq
host = %s
port = %s
smsc-username = %s
smsc-password = %s
system-type = ""
transceiver-mode = true
interface-version = 34
reconnect-delay = 1
enquire-link-interval = 5
wait-ack = 30
%s

group = smsbox
bearerbox-host = 127.0.0.1
sendsms-port = %d
log-level = 0

group = sendsms-user
username = soniq
password = soniq
concatenation = true
max-messages = 10
user-allow-ip = 127.0.0.1

group = sms-service
keyword = default
catch-all = true
max-messages = 0
concatenation = true
get-url = "%s/mo?from=%%p&to=%%P&text=%%b&coding=%%c&charset=%%C"
`, ports[0], ports[1], host, port, systemID, password, strings.Join(more, "\n"), ports[2], k.hooks.URL))
	k.run("bearerbox")
	rig.Until(t, "the bearerbox", 20*time.Second, func() bool {
		c, err := net.Dial("tcp", fmt.Sprint("127.0.0.1:", ports[1]))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	k.run("smsbox")
	// The smsbox opens its port before it has read its users, and a request meanwhile makes it crash.
	rig.Until(t, "the smsbox", 20*time.Second, func() bool {
		log, _ := os.ReadFile(filepath.Join(k.dir, "smsbox.log"))
		return strings.Contains(string(log), "Connected to bearerbox")
	})
	return k
}

// write writes a file of kannel.
func (k *kannel) write(name, text string) {
	k.t.Helper()
	if err := os.WriteFile(filepath.Join(k.dir, name), []byte(text), 0o600); err != nil {
		k.t.Fatal(err)
	}
}

// complaints returns the lines of a log that report something unusual.
func complaints(log string) string {
	var all []string
	for line := range strings.Lines(log) {
		if strings.Contains(line, "WARNING") || strings.Contains(line, "ERROR") || strings.Contains(line, "PANIC") {
			all = append(all, line)
		}
	}
	return strings.Join(all, "")
}

// run starts one program of kannel until the test ends.
func (k *kannel) run(program string) {
	k.t.Helper()
	log, err := os.Create(filepath.Join(k.dir, program+".log"))
	if err != nil {
		k.t.Fatal(err)
	}
	c := exec.Command("/usr/sbin/"+program, "-v", "1", filepath.Join(k.dir, "kannel.conf"))
	c.Dir, c.Stdout, c.Stderr = k.dir, log, log
	if err := rig.Launch(c); err != nil {
		k.t.Fatalf("%v: scripts/setup test installs kannel", err)
	}
	ended := make(chan struct{})
	go func() { _ = c.Wait(); close(ended) }()
	k.t.Cleanup(func() {
		_ = c.Process.Kill()
		<-ended
		log.Close()
		if k.t.Failed() {
			text, _ := os.ReadFile(log.Name())
			k.t.Logf("%s complained:\n%s", program, complaints(string(text)))
		}
	})
}

// hear receives messages and reports from kannel.
func (k *kannel) hear(_ http.ResponseWriter, r *http.Request) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if r.URL.Path == "/dlr" {
		k.dlrs = append(k.dlrs, r.URL.Query())
		return
	}
	k.got = append(k.got, r.URL.Query())
}

// send submits a message to kannel, which sends its reports under an identifier.
func (k *kannel) send(id, from, to, text string) {
	k.t.Helper()
	q := url.Values{"username": {"soniq"}, "password": {"soniq"}, "from": {from}, "to": {to}, "text": {text}, "charset": {"UTF-8"}, "dlr-mask": {"31"},
		"dlr-url": {k.hooks.URL + "/dlr?type=%d&id=" + url.QueryEscape(id)}}
	if strings.IndexFunc(text, func(r rune) bool { return r > 0xff }) >= 0 {
		q.Set("coding", "2")
	}
	r, err := http.Get(k.sendURL + "?" + q.Encode())
	if err != nil {
		k.t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != 202 {
		k.t.Fatalf("kannel answers %s", r.Status)
	}
}

// reports returns the types of the reports under an identifier, in their order: 1 delivered, 2 failed, 8 accepted, 16
// refused.
func (k *kannel) reports(id string) (types []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, d := range k.dlrs {
		if d.Get("id") == id {
			types = append(types, d.Get("type"))
		}
	}
	return types
}

// texts returns the messages received from a number.
func (k *kannel) texts(from string) (all []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, m := range k.got {
		if m.Get("from") == from {
			all = append(all, words(m.Get("text"), m.Get("coding")))
		}
	}
	return all
}

// words decodes a text from kannel: UTF-16 if coding is 2.
func words(text, coding string) string {
	if coding != "2" {
		return text
	}
	units := make([]uint16, len(text)/2)
	for i := range units {
		units[i] = uint16(text[2*i])<<8 | uint16(text[2*i+1])
	}
	return string(utf16.Decode(units))
}
