// Command suite runs the parts of `make test` and `make quick`: static checks, unit tests and end-to-end tests. It
// runs parts that compute beside parts that wait, reports progress, runs a failed test again, and ends with the time
// of each part.
package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "suite:", err)
		os.Exit(1)
	}
}

// run executes one command of the suite. It returns an error if a part failed.
func run(ctx context.Context, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("usage: suite test|quick|e2e")
	}
	plans := map[string]func(*suite){"test": (*suite).test, "quick": (*suite).quick, "e2e": (*suite).endToEndAlone}
	plan, ok := plans[args[0]]
	if !ok {
		return fmt.Errorf("there is no command %q: use test, quick or e2e", args[0])
	}
	dir, err := os.MkdirTemp("", "soniq-suite-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	defer largePages(pageSetting)()
	s, err := newSuite(ctx, dir)
	if err != nil {
		return err
	}
	defer s.stop()
	plan(s)
	return s.report(os.Stdout)
}

// fuzzTime is the fuzzing time of each kind of network input. `make soak` uses a longer time.
const fuzzTime = "20s"

// newSuite measures the machine and prepares the environment that all parts share.
func newSuite(ctx context.Context, dir string) (*suite, error) {
	records, err := newRecords()
	if err != nil {
		return nil, err
	}
	s := &suite{dir: dir, started: time.Now(), slowness: slowness(), binary: filepath.Join(dir, "soniq"), records: records}
	s.ctx, s.stop = context.WithCancel(ctx)
	s.environment = append(os.Environ(),
		"SONIQ_E2E_BINARY="+s.binary,
		"SONIQ_E2E_PLAIN="+filepath.Join(dir, "plain"),
		"SONIQ_E2E_EVERYTHING="+filepath.Join(dir, "everything"),
		"GORACE="+cmp.Or(os.Getenv("GORACE"), raceOptions),
		"FUZZTIME="+cmp.Or(os.Getenv("FUZZTIME"), fuzzTime),
		"SONIQ_TEST_RECORDS="+s.records,
		fmt.Sprintf("SONIQ_TEST_SLOWNESS=%.2f", s.slowness))
	s.printf("this machine takes %.1f times as long as the one that limits were set on", s.slowness)
	return s, nil
}
