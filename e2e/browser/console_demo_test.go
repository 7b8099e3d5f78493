package browser

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"regexp"
	"syscall"
	"testing"
	"time"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

// The link that the demo prints leads to a console that shows the call of the demo, and another one while it runs.
func TestConsole_ShowsCallsOfDemo(t *testing.T) {
	t.Parallel()
	limit.Budget(t, 2*time.Minute, "the two people of the demo talk for 40 seconds")
	rig.Admit(t, rig.Waits) // beside the others
	link, enter := startDemo(t)
	p := welcome(t, regexp.MustCompile(`^http://[^/]+`).FindString(link), link, "owner of", "/console/calls", "")
	p.shows("Completed")
	if _, err := fmt.Fprintln(enter); err != nil {
		t.Fatal(err)
	}
	p.shows("Talking")
	p.checked("calls-demo")
	p.faultless()
}

// startDemo starts the demo, and returns the link to its console and its standard input.
func startDemo(t *testing.T) (link string, enter io.Writer) {
	t.Helper()
	binary, err := rig.CommandBinary()
	if err != nil {
		t.Fatal(err)
	}
	demo := exec.Command(binary, "demo", "--transcriber", "off", "--http", "127.0.0.1:0")
	out, err := demo.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if enter, err = demo.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := rig.Launch(demo); err != nil {
		t.Fatal(err)
	}
	found, over := make(chan string, 1), make(chan struct{})
	go func() {
		defer close(over)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			if m := regexp.MustCompile(`Web console +(http\S+)`).FindStringSubmatch(lines.Text()); m != nil {
				found <- m[1]
			}
		}
		_ = demo.Wait()
	}()
	t.Cleanup(func() {
		_ = demo.Process.Signal(syscall.SIGINT)
		<-over
	})
	select {
	case link = <-found:
	case <-over:
		t.Fatal("the demo ended")
	case <-time.After(limit.Hang(time.Minute)):
		t.Fatal("the demo printed no link")
	}
	return link, enter
}
