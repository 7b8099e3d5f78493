// Package setup tests scripts/setup on simulated machines: folders with the files and the commands that the script
// uses.
package setup

import (
	"fmt"
	"maps"
	"math/bits"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestSetup_WaitsForEachLockOfThePackageManager(t *testing.T) {
	for _, lock := range locks {
		t.Run(filepath.Base(filepath.Dir(lock))+"/"+filepath.Base(lock), func(t *testing.T) {
			m := newMachine(t)
			m.command("apt-get", installsModels)
			release := m.hold(lock)
			s := m.setup("models")
			s.says(fmt.Sprintf("waiting for apt-get (process %d) to finish installing packages", os.Getpid()))
			if calls := m.calls(); calls != nil {
				t.Fatalf("commands ran while the lock was held: %q", calls)
			}
			release()
			s.succeeds()
			m.ran("apt-get", 1)
		})
	}
}

func TestSetup_SeesALockThatIsListedWithAnotherDevice(t *testing.T) {
	m := newMachine(t)
	m.command("apt-get", installsModels)
	m.process(77, "dpkg", "dpkg --configure -a")
	m.link(m.path(locks[1]), "root/proc/77/fd/3")
	m.remove("root/proc/locks")
	m.write("root/proc/locks", fmt.Sprintf("1: POSIX  ADVISORY  WRITE 77 00:fff:%d 0 EOF\n", m.inode(locks[1])))
	s := m.setup("models")
	s.says("waiting for dpkg (process 77)")
	m.remove("root/proc/locks")
	s.succeeds()
}

func TestSetup_SaysWhatItWaitsForAndEndsAtTheLimit(t *testing.T) {
	m := newMachine(t)
	m.command("apt-get", installsModels)
	m.hold(locks[0])
	s := m.setup("models", "SONIQ_SETUP_WAIT=35")
	s.fails(1)
	if len(s.lines) != 3 || !strings.HasPrefix(s.lines[0], "waiting for ") || !strings.HasPrefix(s.lines[1], "still waiting for ") || !strings.Contains(s.lines[1], "30 s") {
		t.Fatalf("not told once, after 30 s, and at the end: %q", s.lines)
	}
	s.endsWith("has not finished installing packages within 35 seconds", "scripts/setup models again", "SONIQ_SETUP_WAIT")
	m.ran("apt-get", 0)
}

func TestSetup_TakesALockThatOnlyAptSeesForNoFailure(t *testing.T) {
	m := newMachine(t)
	m.command("apt-get", `count; if [ $n -le 6 ]; then echo "E: Could not get lock /var/lib/apt/lists/lock. It is held by process 7 (apt)"; exit 100; fi`+"\n"+installsModels)
	s := m.setup("models")
	s.succeeds()
	s.says("waiting for another program to finish installing packages (Could not get lock")
}

func TestSetup_WaitsForAProgramThatLeavesPackagesHalfInstalled(t *testing.T) {
	m := newMachine(t)
	m.remove(fmt.Sprintf("root/proc/%d", os.Getpid()))
	m.process(4242, "unattended-upgr", "unattended-upgrade")
	m.process(4243, "unattended-upgr", "python3 unattended-upgrade-shutdown --wait-for-signal")
	m.process(4244, "apt-get", "") // ended, but not reaped
	m.command("dpkg", `echo "The following packages have been unpacked but not yet configured"`)
	m.command("apt-get", installsModels)
	s := m.setup("models")
	s.says("waiting for unattended-upgr (process 4242)")
	m.ran("apt-get", 0)
	m.remove("root/proc/4242")
	s.succeeds() // it does not wait for the others
}

func TestSetup_DoesNotWaitForTheCloudInitThatStartedIt(t *testing.T) {
	m := newMachine(t)
	m.command("dpkg", `echo "The following packages have been unpacked but not yet configured"`)
	m.command("apt-get", installsModels)
	m.process(os.Getpid(), "cloud-init", "cloud-init")
	s := m.start(nil, "bash", "-c", fmt.Sprintf(`mkdir -p $SONIQ_SETUP_ROOT/proc/$$; printf 'Name:\tx\nPPid:\t%d\n' >$SONIQ_SETUP_ROOT/proc/$$/status; exec scripts/setup models`, os.Getpid()))
	s.succeeds()
	if len(s.lines) != 0 {
		t.Fatalf("it waited: %q", s.lines)
	}
}

func TestSetup_TriesAgainAfterFailuresThatPass(t *testing.T) {
	for name, line := range map[string]string{
		"unmet":       "E: Unmet dependencies. Try 'apt --fix-broken install' with no packages (or specify a solution).",
		"interrupted": "E: dpkg was interrupted, you must manually run 'dpkg --configure -a' to correct the problem.",
		"sum":         "E: Failed to fetch http://archive/x.deb  Hash Sum mismatch",
		"network":     "E: Failed to fetch http://archive/x.deb  Temporary failure resolving 'archive'",
		"unknown":     "E: Unable to locate package wordnet-base",
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.remove(fmt.Sprintf("root/proc/%d", os.Getpid()))
			m.command("apt-get", `count; if [ $n = 1 ]; then echo "`+line+`"; exit 100; fi`+"\n"+installsModels)
			s := m.setup("models")
			s.succeeds()
			if len(s.lines) != 1 || !strings.Contains(s.lines[0], "trying again in 2 s, attempt 2 of 4") {
				t.Fatalf("it does not say once that it tries again: %q", s.lines)
			}
			repairs := slices.Contains(m.calls(), "dpkg --configure -a --force-confdef --force-confold")
			if want := name == "unmet" || name == "interrupted"; repairs != want {
				t.Fatalf("dpkg --configure -a ran: %v, want %v; commands: %q", repairs, want, m.calls())
			}
			if !strings.Contains(m.calls()[len(m.calls())-2], " update") {
				t.Fatalf("the lists of packages were not fetched again: %q", m.calls())
			}
		})
	}
}

func TestSetup_InstallsWhatAnotherInstallationLeftOut(t *testing.T) {
	m := newMachine(t)
	m.remove(fmt.Sprintf("root/proc/%d", os.Getpid()))
	m.command("apt-get", `case "$*" in *" --fix-broken --no-remove install") touch $0.fixed; exit ;; esac
[ -e $0.fixed ] || { echo "E: Unmet dependencies."; exit 100; }`+installsModels)
	s := m.setup("models")
	s.succeeds()
	if len(s.lines) != 3 {
		t.Fatalf("it does not try several times before: %q", s.lines)
	}
}

func TestSetup_SaysWhatAptCountsAsInstalledAndIsNotThere(t *testing.T) {
	m := newMachine(t)
	m.command("apt-get", installsModels+"rm usr/lib/any/libopus.so.0")
	s := m.setup("models")
	s.succeeds()
	s.isOneLine(`run as root "apt-get install --reinstall libopus0"`)
}

func TestSetup_SaysInOneSentenceWhyPackagesCannotBeInstalled(t *testing.T) {
	for name, test := range map[string]struct {
		output string
		lines  int
		want   string
	}{
		"network": {"W: Failed to fetch http://archive/InRelease  Temporary failure resolving 'archive'\nE: Unable to locate package wordnet-base", 4, "check the network"},
		"unmet":   {"E: Unmet dependencies. Try 'apt --fix-broken install'", 4, `"apt-get --fix-broken install"`},
		"disk":    {"E: You don't have enough free space in /var/cache/apt/archives/.", 1, "make room"},
		"other":   {"E: Something new", 1, "remedy the cause"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.remove(fmt.Sprintf("root/proc/%d", os.Getpid()))
			m.command("apt-get", "echo \""+test.output+"\"; exit 100")
			s := m.setup("models", "TMPDIR="+m.path("tmp"))
			s.fails(1)
			s.endsWith("The packages libopus0 libpocketsphinx3", "could not be installed ("+strings.TrimRight(strings.SplitN(test.output, "\n", 2)[0][3:], ".")+")", test.want, "scripts/setup models again")
			if len(s.lines) != test.lines {
				t.Fatalf("%d lines, want %d: %q", len(s.lines), test.lines, s.lines)
			}
			m.noGuard()
		})
	}
}

func TestSetup_WithoutRootSaysWhatToRun(t *testing.T) {
	for name, sudo := range map[string]string{"no sudo": "", "sudo with a password": "exit 1"} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t)
			m.silent("id", "echo 1000")
			m.command("apt-get", installsModels)
			if sudo != "" {
				m.command("sudo", sudo)
			}
			s := m.setup("models")
			s.fails(1)
			s.isOneLine(`Packages are missing and only root may install them: run as root "apt-get install -y --no-install-recommends libopus0 libpocketsphinx3 libflite1 pocketsphinx-en-us flite wordnet-base"`)
			m.ran("sudo env", 0)
			m.ran("apt-get", 0)
			s = m.setup("demo")
			s.succeeds()
			s.endsWith("The demo goes on without them")
		})
	}
}

func TestSetup_UsesASudoThatAsksNothing(t *testing.T) {
	m := newMachine(t)
	m.silent("id", "echo 1000")
	m.command("sudo", `[ "$1" != -n ] || shift; exec "$@"`)
	m.command("apt-get", `[ -x "$SONIQ_SETUP_ROOT/usr/sbin/policy-rc.d" ] || exit 1`+"\n"+installsModels)
	m.setup("models").succeeds()
	m.ran("sudo env", 3) // the guard on, apt-get, the guard off
	m.noGuard()
}

func TestSetup_WithoutAptSaysWhatToInstall(t *testing.T) {
	m := newMachine(t)
	s := m.setup("models")
	s.fails(1)
	s.isOneLine("Debian packages: libopus0 libpocketsphinx3")
}

func TestSetup_AsksForNothingThatIsThere(t *testing.T) {
	m := newMachine(t)
	m.everything()
	m.command("apt-get", "exit 1")
	m.command("npm", `rm -rf node_modules && mkdir node_modules && touch node_modules/x`)
	m.setup("test").succeeds()
	if calls := m.calls(); len(calls) != 1 || !strings.HasPrefix(calls[0], "npm ci ") {
		t.Fatalf("a first set-up on a machine with all packages needs npm alone: %q", calls)
	}
	s := m.setup("test")
	s.succeeds()
	if calls := m.calls(); len(calls) != 1 || len(s.lines) != 0 {
		t.Fatalf("a second set-up is not silent: %q; it says %q", calls, s.lines)
	}
	m.write("e2e/node/package-lock.json", "changed")
	if err := os.Chtimes(m.path("e2e/node/package-lock.json"), longAgo, longAgo); err != nil {
		t.Fatal(err)
	}
	m.setup("test").succeeds()
	m.ran("npm ci", 2)
}

func TestSetup_AsksForThePackagesWhoseFilesAreGone(t *testing.T) {
	names := slices.Sorted(maps.Keys(proofs))
	for bit := range bits.Len(uint(len(names))) { // the answers for all bits together identify each package
		t.Run(fmt.Sprint(bit), func(t *testing.T) {
			m := newMachine(t)
			m.everything()
			m.command("apt-get", "exit 1")
			var gone []string
			for i, name := range names {
				if (i+1)>>bit&1 == 1 {
					gone = append(gone, name)
					m.remove(proofs[name])
				}
			}
			m.setup("test", "TMPDIR="+m.path("tmp")).fails(1)
			_, asked, _ := strings.Cut(m.calls()[0], "--no-install-recommends ")
			if got := slices.Sorted(slices.Values(strings.Fields(asked))); !slices.Equal(got, gone) {
				t.Fatalf("it asks for %q, want %q", got, gone)
			}
		})
	}
}

func TestSetup_TriesNpmAgainWhenTheNetworkFailed(t *testing.T) {
	m := newMachine(t)
	m.everything()
	m.command("npm", `count; [ $n -gt 1 ] || { echo "npm error code EAI_AGAIN" >&2; exit 1; }; mkdir -p node_modules`)
	s := m.setup("test")
	s.succeeds()
	s.isOneLine("npm could not fetch packages (EAI_AGAIN): trying again in 2 s")
}

func TestSetup_SaysThatNpmDoesNotReachItsRegistry(t *testing.T) {
	m := newMachine(t)
	m.everything()
	m.command("npm", `echo "npm error code ENOTFOUND" >&2; exit 1`)
	s := m.setup("test")
	s.fails(1)
	s.endsWith("The npm packages are missing", "(ENOTFOUND)", "check the network")
	m.ran("npm ci", 4)
	if _, err := os.Stat(m.path("e2e/node/node_modules/.setup")); err == nil {
		t.Fatal("a stamp says that the packages are installed")
	}
}

// npm may fail without naming a network error, for instance "Exit handler never called!" (https://github.com/npm/cli/issues/9728).
func TestSetup_TriesNpmAgainAfterAFailureWithoutCode(t *testing.T) {
	m := newMachine(t)
	m.everything()
	m.command("npm", `count; [ $n -gt 1 ] || exit 1; mkdir -p node_modules`)
	s := m.setup("test")
	s.succeeds()
	s.isOneLine("npm could not fetch packages (exit status 1, no network error named): trying again in 2 s")
}

func TestSetup_DoesNotTryNpmAgainWithAWrongLockFile(t *testing.T) {
	m := newMachine(t)
	m.everything()
	m.command("npm", `echo "npm error code EUSAGE" >&2; exit 1`)
	s := m.setup("test")
	s.fails(1)
	s.endsWith("npm ci failed (EUSAGE, see above)")
	m.ran("npm ci", 1)
}

// Without the viewer of the API reference a build goes on with one sentence, and the tests do not start.
func TestSetup_ViewerNotFetched(t *testing.T) {
	for want, status := range map[string]int{"build": 0, "test": 1} {
		t.Run(want, func(t *testing.T) {
			m := newMachine(t)
			m.everything()
			m.silent("go", `[ "$1" != run ] || { echo "no such host" >&2; exit 1; }; echo go1.26.0`)
			m.command("npm", `[ "$1" = pack ] && { echo "npm error code ENOTFOUND" >&2; exit 1; }; mkdir -p node_modules`)
			s := m.setup(want)
			if status == 0 {
				s.succeeds()
				s.endsWith("Going on without the web console") // which go does not build either
				if !strings.Contains(s.lines[len(s.lines)-3], "Going on without the viewer") {
					t.Errorf("it says %q", s.lines)
				}
				return
			}
			s.fails(status)
			s.endsWith("The viewer of the API reference could not be fetched", "check the network")
		})
	}
}

// Without the web console a build goes on with one sentence, and the tests do not start.
func TestSetup_ConsoleNotBuilt(t *testing.T) {
	for want, status := range map[string]int{"build": 0, "test": 1} {
		t.Run(want, func(t *testing.T) {
			m := newMachine(t)
			m.everything()
			m.silent("go", `case "$*" in *consolebuild*) echo "no such host" >&2; exit 1;; esac; echo go1.26.0`)
			m.command("npm", `case "$*" in *--omit=dev*) echo "npm error code ENOTFOUND" >&2; exit 1;; esac; mkdir -p node_modules`)
			s := m.setup(want)
			if status == 0 {
				s.succeeds()
				s.endsWith("Going on without the web console")
				return
			}
			s.fails(status)
			s.endsWith("The web console could not be built", "check the network")
		})
	}
}

func TestSetup_TwoTakeTurns(t *testing.T) {
	m := newMachine(t)
	m.command("apt-get", waits+installsModels)
	first := m.setup("models")
	m.waitFor("started")
	second := m.setup("models")
	second.says("waiting for another set-up of soniq")
	m.write("go", "")
	first.succeeds()
	second.succeeds()
	m.ran("apt-get", 1)
	m.noGuard()
}

func TestSetup_RemovesItsGuardOnSignals(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		t.Run(signal.String(), func(t *testing.T) {
			m := newMachine(t)
			m.command("apt-get", waits+installsModels)
			s := m.setup("models")
			m.waitFor("started")
			if _, err := os.Stat(m.path("root/usr/sbin/policy-rc.d")); err != nil {
				t.Fatal("no guard while packages are installed")
			}
			if err := s.command.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
			m.write("go", "") // apt-get is not cut off: the guard stays until it ends
			s.fails(128 + int(signal))
			m.noGuard()
		})
	}
}

func TestSetup_LeavesAGuardOfOthersAsItIs(t *testing.T) {
	m := newMachine(t)
	m.command("apt-get", installsModels)
	m.write("root/usr/sbin/policy-rc.d", "theirs")
	m.setup("models").succeeds()
	if b, _ := os.ReadFile(m.path("root/usr/sbin/policy-rc.d")); string(b) != "theirs" {
		t.Fatalf("the guard is %q", b)
	}
}

func TestSetup_RemovesAGuardThatAKilledSetupLeft(t *testing.T) {
	m := newMachine(t)
	m.command("apt-get", waits+installsModels)
	s := m.setup("models")
	m.waitFor("started")
	s.kill()
	m.remove("started")
	m.write("go", "")
	m.setup("models").succeeds()
	m.noGuard()
}
