package crash_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"soniq/e2e/rig"
	"soniq/internal/protocol/media/codec"
	"soniq/internal/protocol/media/dsp"
)

// callers is a sipp whose callers call the same number one after the other.
type callers struct {
	t       *testing.T
	dir     string
	command *exec.Cmd
	exited  chan struct{}
	out     bytes.Buffer
}

// crowd configures callers.
type crowd struct {
	ip, number        string
	first             int // the number of the first caller is +1212 and these seven digits, the next ones count up
	rate              int // calls per second
	shortest, longest time.Duration
	play              bool // they speak, in RTP
}

const most = 20000 // calls of a crowd

func startCallers(t *testing.T, s *rig.Server, c crowd) *callers {
	t.Helper()
	p := &callers{t: t, dir: t.TempDir(), exited: make(chan struct{})}
	port, audio := rig.FreePort(t), rig.FreePort(t)
	args := []string{"-sf", p.scenario(c), "-inf", p.numbers(c), "-i", c.ip, "-mi", c.ip, "-p", strconv.Itoa(port), "-s", c.number,
		"-mp", strconv.Itoa(audio), "-r", strconv.Itoa(c.rate), "-m", strconv.Itoa(most), "-l", "1000", "-nostdin", "-trace_logs",
		"-max_invite_retrans", "4", "-max_non_invite_retrans", "4", "-buff_size", "4194304", s.SIP}
	p.start(args)
	return p
}

func (p *callers) start(args []string) {
	p.t.Helper()
	path, err := exec.LookPath("sipp")
	if err != nil {
		p.t.Skip("sipp is not installed")
	}
	p.command = exec.Command(path, args...)
	p.command.Dir, p.command.Stdout, p.command.Stderr = p.dir, &p.out, &p.out
	if err := rig.Launch(p.command); err != nil {
		p.t.Fatal(err)
	}
	go func() {
		_ = p.command.Wait() // sipp fails because of the calls that crashes cut off
		close(p.exited)
	}()
	p.t.Cleanup(func() {
		_ = p.command.Process.Kill()
		<-p.exited
	})
}

func (p *callers) scenario(c crowd) string {
	text, err := os.ReadFile(filepath.Join("testdata", "caller.xml"))
	if err != nil {
		p.t.Fatal(err)
	}
	play, port := "", "[media_port]"
	if c.play {
		file := filepath.Join(p.dir, "voice.ulaw")
		p.write(file, codec.PCMU.Encode(nil, dsp.Tone(440, -10, 10*time.Second, 8000)))
		play, port = `  <nop><action><exec rtp_stream="`+file+`,-1,0"/></action></nop>`, "[rtpstream_audio_port]"
	}
	filled := strings.NewReplacer("@MEDIA@", port, "@PLAY@", play, "@SHORTEST@", fmt.Sprint(c.shortest.Milliseconds()),
		"@LONGEST@", fmt.Sprint(c.longest.Milliseconds())).Replace(string(text))
	path := filepath.Join(p.dir, "caller.xml")
	p.write(path, []byte(filled))
	return path
}

func (p *callers) numbers(c crowd) string {
	var b strings.Builder
	b.WriteString("SEQUENTIAL\n")
	for i := range most {
		fmt.Fprintf(&b, "+1212%07d;\n", c.first+i)
	}
	path := filepath.Join(p.dir, "numbers.csv")
	p.write(path, []byte(b.String()))
	return path
}

func (p *callers) write(path string, b []byte) {
	p.t.Helper()
	if err := os.WriteFile(path, b, 0o600); err != nil {
		p.t.Fatal(err)
	}
}

// stop ends new calls and waits until the calls in progress have ended.
func (p *callers) stop() {
	p.t.Helper()
	_ = p.command.Process.Signal(syscall.SIGUSR1)
	select {
	case <-p.exited:
	case <-time.After(30 * time.Second):
		_ = p.command.Process.Kill()
		<-p.exited
		p.t.Logf("sipp did not end by itself: %.500s", p.out.String())
	}
}

var answeredLine = regexp.MustCompile(`ANSWERED (\+\d+)`)

// answered returns the callers that received a 200.
func (p *callers) answered() []string {
	p.t.Helper()
	var all []string
	files, _ := filepath.Glob(filepath.Join(p.dir, "*_logs.log"))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			p.t.Fatal(err)
		}
		for _, m := range answeredLine.FindAllSubmatch(b, -1) {
			all = append(all, string(m[1]))
		}
	}
	return all
}

// startPhone answers all calls of a user, at the port that was registered.
func startPhone(t *testing.T, s *rig.Server, l rig.Login) {
	t.Helper()
	registration := s.Sipp(rig.Script{Scenario: "register", Login: &l})
	registration.Wait()
	file, err := filepath.Abs(filepath.Join("testdata", "phone.xml"))
	if err != nil {
		t.Fatal(err)
	}
	p := &callers{t: t, dir: t.TempDir(), exited: make(chan struct{})}
	p.start([]string{"-sf", file, "-i", "127.0.0.1", "-p", strconv.Itoa(registration.Port), "-mp", strconv.Itoa(rig.FreePort(t)), "-nostdin",
		"-max_non_invite_retrans", "4", "-buff_size", "4194304"})
}
