package setup

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"soniq/e2e/limit"
)

// patience is the time for which a test waits for an expected event.
var patience = limit.Hang(time.Minute)

var longAgo = time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)

var locks = []string{"root/var/lib/dpkg/lock-frontend", "root/var/lib/dpkg/lock", "root/var/lib/apt/lists/lock", "root/var/cache/apt/archives/lock"}

// proofs lists files that prove that the Debian packages of the tests are installed.
var proofs = map[string]string{
	"libopus0": "root/usr/lib/any/libopus.so.0", "libpocketsphinx3": "root/usr/lib/any/libpocketsphinx.so.3", "libflite1": "root/usr/lib/any/libflite.so.1",
	"pocketsphinx-en-us": "root/usr/share/pocketsphinx/model/en-us/en-us.lm.bin",
	"gcc":                "bin/gcc", "libc6-dev": "root/usr/include/stdio.h", "sip-tester": "bin/sipp", "sipvicious": "bin/svmap", "openssl": "bin/openssl",
	"baresip-core": "bin/baresip", "linphone-cli": "bin/linphonec", "kamailio": "root/usr/sbin/kamailio", "sox": "bin/sox", "flite": "bin/flite",
	"kannel": "root/usr/sbin/bearerbox", "chromium": "bin/chromium", "curl": "bin/curl", "python3": "bin/python3", "iproute2": "bin/ip",
	"nftables": "root/usr/sbin/nft", "slapd": "root/usr/sbin/slapd", "ldap-utils": "bin/ldapsearch", "radicale": "bin/radicale", "tryton-server": "bin/trytond",
	"tryton-modules-party": "root/usr/lib/python3/dist-packages/trytond/modules/party/__init__.py",
	"python3-phonenumbers": "root/usr/lib/python3/dist-packages/phonenumbers/__init__.py",
	"firefox-esr":          "bin/firefox-esr",
	"postgresql":           "root/usr/lib/postgresql/15/bin/initdb", "nodejs": "bin/node", "npm": "bin/npm",
}

// installsModels is an apt-get that installs the packages of the set-up "models".
const installsModels = `
cd "$SONIQ_SETUP_ROOT"
mkdir -p usr/lib/any usr/share/pocketsphinx/model/en-us usr/share/wordnet
touch usr/lib/any/libopus.so.0 usr/lib/any/libpocketsphinx.so.3 usr/lib/any/libflite.so.1
touch usr/share/pocketsphinx/model/en-us/en-us.lm.bin usr/share/wordnet/data.noun
printf '#!/bin/sh\n' >usr/sbin/flite
chmod +x usr/sbin/flite
`

// waits makes a command report its start, and wait until the test lets it continue.
const waits = `
touch "$MACHINE/started"
until [ -e "$MACHINE/go" ]; do /bin/sleep 0.01; done
`

// machine is a folder with a copy of the scripts, the system's files (root), and the only available commands (bin).
// One process runs on it, called apt-get: the one of the tests, which can hold locks.
type machine struct {
	t   *testing.T
	dir string
}

func newMachine(t *testing.T) *machine {
	if runtime.GOOS != "linux" {
		t.Skip("scripts/setup installs packages on Linux only")
	}
	t.Helper()
	t.Parallel()
	m := &machine{t, t.TempDir()}
	for _, name := range []string{"setup", "packages.sh", "npm-retry", "viewer", "console"} {
		b, err := os.ReadFile(filepath.Join("../../scripts", name))
		if err != nil {
			t.Fatal(err)
		}
		m.write("scripts/"+name, string(b))
	}
	for _, lock := range locks {
		m.write(lock, "")
	}
	m.write("root/var/cache/apt/pkgcache.bin", "")
	m.write("root/usr/sbin/README", "")
	m.write("e2e/node/package-lock.json", "{}")
	m.write("internal/api/console/app/package.json", "{}")
	m.write("internal/api/console/app/package-lock.json", "{}")
	m.write("tmp/README", "")
	m.process(os.Getpid(), "apt-get", "apt-get upgrade")
	m.link("/proc/locks", "root/proc/locks")
	for _, name := range strings.Fields("awk bash cat chmod dirname env find flock grep head mkdir mktemp rm sed sh sha256sum sort stat touch true uname") {
		real, err := exec.LookPath(name)
		if err != nil {
			t.Fatal(err)
		}
		m.link(real, "bin/"+name)
	}
	m.silent("go", "echo go1.26.0")
	m.silent("id", "echo 0")
	m.silent("sleep", "exec /bin/sleep 0.01") // a second is shortened
	m.command("dpkg", "")
	return m
}

func (m *machine) path(name string) string { return filepath.Join(m.dir, name) }

func (m *machine) write(name, content string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.path(name), []byte(content), 0o755); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) link(to, name string) {
	m.t.Helper()
	if err := os.MkdirAll(filepath.Dir(m.path(name)), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.Symlink(to, m.path(name)); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) remove(name string) {
	m.t.Helper()
	if err := os.RemoveAll(m.path(name)); err != nil {
		m.t.Fatal(err)
	}
}

// silent makes a command whose runs are not recorded.
func (m *machine) silent(name, body string) {
	m.write("bin/"+name, "#!/bin/bash\n"+body+"\n")
}

// command makes a command whose runs are recorded. In its body, count sets n to the number of its runs so far, and
// all commands of the system are available. An apt-get that updates its lists always succeeds, and queries of dpkg
// are not recorded.
func (m *machine) command(name, body string) {
	m.silent(name, `[ "$1" = --audit ] || echo "${0##*/} $*" >>"$MACHINE/calls"
[ "${0##*/}" = sudo ] || PATH=/usr/bin:/bin
case " $* " in *" update ") exit ;; esac
count() { echo >>"$0.count"; n=$(wc -l <"$0.count"); }
`+body)
}

// everything makes the files and commands that prove that all packages of the tests are installed.
func (m *machine) everything() {
	for _, file := range proofs {
		m.write(file, "#!/bin/sh\n")
	}
}

// calls returns the runs of recorded commands.
func (m *machine) calls() []string {
	b, err := os.ReadFile(m.path("calls"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n")
}

// ran checks how often a command ran; for apt-get, how often it installed.
func (m *machine) ran(command string, times int) {
	m.t.Helper()
	n := 0
	for _, c := range m.calls() {
		if strings.HasPrefix(c, command+" ") && !strings.HasSuffix(c, " update") {
			n++
		}
	}
	if n != times {
		m.t.Fatalf("%s ran %d times, want %d: %q", command, n, times, m.calls())
	}
}

// noGuard checks that servers may be started again.
func (m *machine) noGuard() {
	m.t.Helper()
	if _, err := os.Stat(m.path("root/usr/sbin/policy-rc.d")); err == nil {
		m.t.Fatal("policy-rc.d is still there")
	}
}

// hold takes a lock as apt and dpkg do.
func (m *machine) hold(lock string) (release func()) {
	m.t.Helper()
	f, err := os.OpenFile(m.path(lock), os.O_RDWR, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() { f.Close() })
	if err := syscall.FcntlFlock(f.Fd(), syscall.F_SETLK, &syscall.Flock_t{Type: syscall.F_WRLCK}); err != nil {
		m.t.Fatal(err)
	}
	return func() { f.Close() }
}

func (m *machine) inode(name string) uint64 {
	m.t.Helper()
	var s syscall.Stat_t
	if err := syscall.Stat(m.path(name), &s); err != nil {
		m.t.Fatal(err)
	}
	return s.Ino
}

// process adds a process to the machine.
func (m *machine) process(pid int, name, command string) {
	m.write(fmt.Sprintf("root/proc/%d/comm", pid), name+"\n")
	m.write(fmt.Sprintf("root/proc/%d/cmdline", pid), strings.ReplaceAll(command, " ", "\x00"))
}

// waitFor waits until a command made a file.
func (m *machine) waitFor(name string) {
	m.t.Helper()
	//nolint:forbidigo // polls a condition that publishes no event
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(m.path(name)); err == nil {
			return
		}
	}
	m.t.Fatalf("%s was not made", name)
}

// run is a set-up in progress.
type run struct {
	t       *testing.T
	command *exec.Cmd
	mu      sync.Mutex
	lines   []string // of standard error
	more    chan struct{}
	read    chan struct{}
	cancel  context.CancelFunc
}

func (m *machine) setup(want string, env ...string) *run {
	m.t.Helper()
	return m.start(env, m.path("scripts/setup"), want)
}

func (m *machine) start(env []string, name string, args ...string) *run {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	// A background program may be started with SIGINT and SIGHUP ignored. A shell cannot trap a signal that was
	// ignored at its start.
	c := exec.CommandContext(ctx, "env", append([]string{"--default-signal=HUP,INT,TERM", name}, args...)...)
	c.Dir = m.dir
	c.Env = append([]string{"PATH=" + m.path("bin"), "MACHINE=" + m.dir, "SONIQ_SETUP_ROOT=" + m.path("root")}, env...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	pipe, err := c.StderrPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		m.t.Fatal(err)
	}
	s := &run{t: m.t, command: c, more: make(chan struct{}, 1000), read: make(chan struct{}), cancel: cancel}
	m.t.Cleanup(cancel)
	go func() {
		defer close(s.read)
		for lines := bufio.NewScanner(pipe); lines.Scan(); {
			s.mu.Lock()
			s.lines = append(s.lines, lines.Text())
			s.mu.Unlock()
			s.more <- struct{}{}
		}
	}()
	return s
}

// says waits for a text on standard error.
func (s *run) says(words string) {
	s.t.Helper()
	for ended := false; ; {
		s.mu.Lock()
		said := strings.Join(s.lines, "\n")
		s.mu.Unlock()
		if strings.Contains(said, words) {
			return
		}
		if ended {
			s.t.Fatalf("it did not say %q, but %q", words, said)
		}
		select {
		case <-s.more:
		case <-s.read:
			ended = true
		}
	}
}

// fails waits for the end and checks the exit status.
func (s *run) fails(status int) {
	s.t.Helper()
	<-s.read
	_ = s.command.Wait()
	if got := s.command.ProcessState.ExitCode(); got != status {
		s.t.Fatalf("exit status %d (%v), want %d; it said %q", got, s.command.ProcessState, status, s.lines)
	}
}

func (s *run) succeeds() {
	s.t.Helper()
	s.fails(0)
}

// kill kills the set-up and all its processes with SIGKILL.
func (s *run) kill() {
	s.cancel()
	<-s.read
	_ = s.command.Wait()
}

// endsWith checks the text of the last line.
func (s *run) endsWith(words ...string) {
	s.t.Helper()
	for _, w := range words {
		if len(s.lines) == 0 || !strings.Contains(s.lines[len(s.lines)-1], w) {
			s.t.Fatalf("it does not end with %q: %q", w, s.lines)
		}
	}
}

func (s *run) isOneLine(words string) {
	s.t.Helper()
	s.endsWith(words)
	if len(s.lines) != 1 {
		s.t.Fatalf("not one line: %q", s.lines)
	}
}
