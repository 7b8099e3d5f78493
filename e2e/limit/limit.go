// Package limit sets how long tests may wait and run, scaled with the speed of the machine, and records how long they
// took.
package limit

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// hangTime is the time after which a wait for an event counts as hanging, on the machine that limits were set on.
// Events arrive within milliseconds; the limit only ends a test that would wait for ever.
const hangTime = 90 * time.Second

// Slowness returns how many times as long a computation takes here as on the machine that limits were set on, at
// least 1. The suite measures it once and passes it on as SONIQ_TEST_SLOWNESS.
var Slowness = sync.OnceValue(func() float64 {
	if f, err := strconv.ParseFloat(os.Getenv("SONIQ_TEST_SLOWNESS"), 64); err == nil {
		return max(1, f)
	}
	began := time.Now()
	block := make([]byte, 1<<20)
	for range 48 {
		sum := sha256.Sum256(block)
		copy(block, sum[:])
	}
	return max(1, float64(time.Since(began))/float64(100*time.Millisecond))
})

// Hang scales the time after which a wait counts as hanging with the speed of the machine. d is the time that the
// awaited event takes by design, such as the length of audio.
func Hang(d time.Duration) time.Duration {
	return time.Duration(float64(d+hangTime) * Slowness())
}

// usualBudget is the time that an end-to-end test may take without a reason, see Budget.
const usualBudget = 30 * time.Second

var budgets sync.Map // by the test's name

// Budget lets a test take longer than usual. The reason explains why it cannot be shorter.
func Budget(t testing.TB, d time.Duration, reason string) {
	t.Helper()
	if reason == "" {
		t.Fatal("a budget needs a reason")
	}
	budgets.Store(t.Name(), d)
}

// budget returns the budget of a test: its own, or that of its nearest parent with one.
func budget(name string) time.Duration {
	for {
		if d, ok := budgets.Load(name); ok {
			return d.(time.Duration)
		}
		end := strings.LastIndexByte(name, '/')
		if end < 0 {
			return usualBudget
		}
		name = name[:end]
	}
}

// Record holds the time that a test took, for the suite's report.
type Record struct {
	Test    string  `json:"test"`
	Waited  float64 `json:"waited"`  // seconds until it was admitted
	Seconds float64 `json:"seconds"` // after that
	Budget  float64 `json:"budget"`  // seconds it may take
	CPU     float64 `json:"cpu"`     // seconds of processor time that its own servers used
	Failed  bool    `json:"failed"`  // the test failed in this run
}

// Write records the time that a test took, if SONIQ_TEST_RECORDS is set.
func Write(test string, failed bool, waited, took, cpu time.Duration) error {
	path := os.Getenv("SONIQ_TEST_RECORDS")
	if path == "" {
		return nil
	}
	line, err := json.Marshal(Record{test, waited.Seconds(), took.Seconds(), budget(test).Seconds(), cpu.Seconds(), failed})
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.Write(append(line, '\n'))
	return err
}

// Read returns the records in a file. Lines of a process that was killed may be missing.
func Read(path string) (all []Record) {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var r Record
		if json.Unmarshal(lines.Bytes(), &r) == nil {
			all = append(all, r)
		}
	}
	return all
}
