// Command bench measures the released binary, beside Kamailio and rtpengine if they are installed, and prints tables.
// All traffic is on loopback. Run it from the root of the module, after make build: go run ./e2e/bench
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	ours   = "ours"
	theirs = "kamailio + rtpengine"
)

// bench holds the subjects and the extent of the measurements.
type bench struct {
	binary, dir string
	platform    *platform
	peer        *peer
	rates       []int
	calls       []int
	seconds     int
	passages    []int
	cdrs        int
	sustained   map[string]int
	only        string
	keep        bool
	began       time.Time

	mu       sync.Mutex // guards verdicts
	verdicts []verdict
	starts   int // of the platform

	recordings bool // were made
}

func main() {
	b := &bench{sustained: map[string]int{}, began: time.Now()}
	var groups, rates, calls, passages string
	flag.StringVar(&b.binary, "binary", "./soniq", "the release build")
	flag.StringVar(&groups, "groups", "start,setup,place,calls,overload,idle,relay,cdr,hooks,memory", "what is measured, in this order")
	flag.StringVar(&rates, "rates", "250,500,1000,1500,2000", "calls a second, until calls fail")
	flag.StringVar(&calls, "calls", "200,500", "calls with audio")
	flag.IntVar(&b.seconds, "seconds", 8, "how long each step lasts")
	flag.StringVar(&passages, "passages", "100000", "passages in memory; 1000000 takes long")
	flag.IntVar(&b.cdrs, "cdrs", 1_000_000, "call detail records that are listed")
	flag.StringVar(&b.only, "only", "", "measure only the subjects whose name is this, as the tables have it")
	flag.BoolVar(&b.keep, "keep", false, "leave the data in its folder and name it")
	limit := flag.Duration("limit", 19*time.Minute, "how long everything may take")
	bare := flag.Bool("bare", false, "be a relay that only receives and sends, between the pairs of addresses given; the bench starts it")
	bareCalls := flag.Bool("bare-calls", false, "be what only passes on the messages of calls, to the address given, with records in the file given; the bench starts it")
	flag.Parse()
	if *bareCalls && flag.NArg() == 2 {
		fmt.Fprintln(os.Stderr, "bench:", beBareCalls(flag.Arg(0), flag.Arg(1), os.Stdout))
		os.Exit(1)
	}
	if *bare {
		fmt.Fprintln(os.Stderr, "bench:", beBare(flag.Args(), os.Stdout))
		os.Exit(1)
	}
	interrupted := make(chan os.Signal, 1)
	signal.Notify(interrupted, os.Interrupt, syscall.SIGTERM)
	go b.bound(*limit, interrupted)
	b.rates, b.calls, b.passages = numbers(rates), numbers(calls), numbers(passages)
	if err := b.locate(); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if err := b.run(strings.Split(groups, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// locate makes the path of the binary absolute, because it is started in other folders, and returns an error unless
// it runs.
func (b *bench) locate() (err error) {
	if b.binary, err = filepath.Abs(b.binary); err != nil {
		return err
	}
	if _, err = exec.Command(b.binary, "version").Output(); err != nil {
		return fmt.Errorf("%w: `make build` makes ./soniq, -binary names another", err)
	}
	return nil
}

func numbers(list string) (all []int) {
	for _, s := range strings.Split(list, ",") {
		if n, err := strconv.Atoi(s); err == nil {
			all = append(all, n)
		}
	}
	return all
}

func (b *bench) run(groups []string) (err error) {
	if b.dir, err = temporary("calls"); err != nil {
		return err
	}
	defer func() {
		if err == nil && !b.keep {
			b.clear()
			return
		}
		b.say("the data is in %s", b.dir)
	}()
	fmt.Printf("%s, load %s, %s\n", time.Now().UTC().Format("2006-01-02 15:04 UTC"), load(), machine())
	defer b.conclude()
	doing := map[string]func() error{"start": b.measureStart, "setup": b.measureSetup, "place": b.measurePlace, "calls": b.measureCalls,
		"overload": b.measureOverload,
		"idle":     b.measureIdle, "relay": b.measureRelay, "cdr": b.measureRecords, "hooks": b.measureHooks, "memory": b.measureMemory}
	for _, g := range groups {
		if doing[g] == nil {
			return fmt.Errorf("there is no group %q", g)
		}
	}
	var failed []error
	for _, g := range groups {
		if err := b.group(g, doing[g]); err != nil { // the other groups are still measured, with a server of their own
			b.close()
			failed = append(failed, fmt.Errorf("%s: %w", g, err))
			b.say("%v", failed[len(failed)-1])
		}
	}
	b.close()
	return errors.Join(failed...)
}

// group measures one group after the calls of the group before have ended.
func (b *bench) group(name string, do func() error) error {
	if err := b.prepare(name); err != nil {
		return err
	}
	if b.platform != nil {
		if err := b.platform.quiet(); err != nil {
			return err
		}
	}
	return do()
}

// prepare starts the platform and the peer for the groups with telephone calls.
func (b *bench) prepare(group string) (err error) {
	switch {
	case group != "setup" && group != "place" && group != "calls" && group != "overload" && group != "idle" && group != "relay":
		b.close()
		return nil
	case b.platform != nil:
		return nil
	}
	b.starts++
	dir := filepath.Join(b.dir, strconv.Itoa(b.starts))
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	if b.platform, err = startPlatform(b.binary, dir); err != nil {
		return err
	}
	if err := b.platform.furnish(b.binary); err != nil {
		return err
	}
	if err := b.register(); err != nil {
		return err
	}
	return b.meet(false)
}

// register registers the phone that sipp and the generator answer at.
func (b *bench) register() error {
	phone, err := newAgent(fmt.Sprintf("127.0.0.1:%d", calleePort), nil)
	if err != nil {
		return err
	}
	defer phone.close()
	return phone.register(b.platform.sip, b.platform.login.Username, b.platform.login.Password)
}

// meet starts the peer if it is installed.
func (b *bench) meet(record bool) (err error) {
	dir, err := os.MkdirTemp(b.dir, "peer-")
	if err != nil {
		return err
	}
	if b.peer, err = startPeer(dir, record); err == errNoPeer {
		b.say("%v: measured without a peer", err)
		b.peer, err = nil, nil
	}
	return err
}

func (b *bench) close() {
	if b.platform != nil {
		b.platform.stop()
		b.platform = nil
	}
	if b.peer != nil {
		b.peer.stop()
		b.peer = nil
	}
}

func (b *bench) ours() subject { return subject{ours, b.platform.sip, []*process{b.platform.process}} }

// theirs returns the peer. The subject has no processes if the peer is not installed.
func (b *bench) theirs() subject {
	if b.peer == nil {
		return subject{name: theirs}
	}
	return subject{theirs, peerAddress, []*process{b.peer.kamailio, b.peer.rtpengine}}
}

func (b *bench) say(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

func (b *bench) title(name, how string) { fmt.Printf("\n## %s\n%s\n\n", name, how) }

func (b *bench) table(head []string, rows [][]string) {
	fmt.Println("| " + strings.Join(head, " | ") + " |")
	fmt.Println("|" + strings.Repeat("---|", len(head)))
	for _, r := range rows {
		fmt.Println("| " + strings.Join(r, " | ") + " |")
	}
}

// machine returns a description of this machine.
func machine() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	cores, model := 0, "processor"
	for line := range strings.Lines(string(b)) {
		name, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(name) {
		case "processor":
			cores++
		case "model name":
			model = strings.TrimSpace(value)
		}
	}
	return fmt.Sprintf("%d cores of %s", cores, model)
}
