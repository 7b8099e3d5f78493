package main

import (
	"embed"
	"encoding/csv"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

//go:embed sipp/*.xml
var scenarios embed.FS

// run holds the result of a number of calls made by sipp.
type run struct {
	Made, Good, Refused, Failed, Retransmitted int
	Rate                                       float64 // calls per second, from the first to the last
}

// lost returns the share of calls that failed or were refused, in percent.
func (r run) lost() float64 { return 100 * float64(r.Failed+r.Refused) / float64(max(r.Made, 1)) }

// callee starts the sipp that answers.
func callee(dir string) (*process, error) {
	file, err := scenario(dir, "answer")
	if err != nil {
		return nil, err
	}
	p, err := start(dir, "sipp", "-sf", file, "-i", "127.0.0.1", "-p", strconv.Itoa(calleePort), "-mi", "127.0.0.1", "-mp", "16000",
		"-nostdin", "-buff_size", "4194304", "-trace_err", "-error_file", "callee.log")
	if err != nil {
		return nil, err
	}
	return p, until(10*time.Second, "sipp's port", func() bool { return inUse(fmt.Sprintf("127.0.0.1:%d", calleePort)) })
}

func scenario(dir, name string) (string, error) {
	b, err := scenarios.ReadFile("sipp/" + name + ".xml")
	if err != nil {
		return "", err
	}
	file := filepath.Join(dir, name+".xml")
	return file, os.WriteFile(file, b, 0o600)
}

// makeCalls makes calls at a rate, each of the given length, and waits for their end.
func makeCalls(dir, to string, rate, total int, talk time.Duration) (run, error) {
	file, err := scenario(dir, "call")
	if err != nil {
		return run{}, err
	}
	_ = os.Remove(filepath.Join(dir, "stat.csv"))
	args := []string{"-sf", file, "-i", carrierIP, "-p", "5080", "-mi", carrierIP, "-mp", "17000", "-s", did, "-r", strconv.Itoa(rate),
		"-m", strconv.Itoa(total), "-l", "20000", "-d", strconv.Itoa(int(talk.Milliseconds())), "-nostdin", "-buff_size", "4194304",
		"-recv_timeout", "15000", "-timeout", "120s", "-trace_stat", "-stf", "stat.csv", "-fd", "1", "-trace_err", "-error_file",
		"caller.log"}
	p, err := start(dir, "sipp", append(args, to)...)
	if err != nil {
		return run{}, err
	}
	_ = p.wait(150 * time.Second) // its exit code reports failed calls, which the figures contain too
	return readRun(filepath.Join(dir, "stat.csv"))
}

func readRun(path string) (run, error) {
	f, err := os.Open(path)
	if err != nil {
		return run{}, err
	}
	defer f.Close()
	in := csv.NewReader(f)
	in.Comma, in.FieldsPerRecord, in.LazyQuotes = ';', -1, true
	lines, err := in.ReadAll()
	if err != nil || len(lines) < 2 {
		return run{}, fmt.Errorf("sipp's figures in %s: %d lines, %v", path, len(lines), err)
	}
	number := func(line []string, name string) int {
		if i := slices.Index(lines[0], name); i >= 0 && i < len(line) {
			n, _ := strconv.Atoi(line[i])
			return n
		}
		return 0
	}
	last := lines[len(lines)-1]
	r := run{Made: number(last, "TotalCallCreated"), Refused: number(last, "refused(C)"), Failed: number(last, "FailedCall(C)"),
		Retransmitted: number(last, "Retransmissions(C)")}
	r.Good = number(last, "SuccessfulCall(C)") - r.Refused // sipp counts the end of a refused call as a success
	for i, line := range lines[1:] {                       // time until the last call was made
		if number(line, "TotalCallCreated") == r.Made && i > 0 {
			r.Rate = float64(r.Made) / float64(i)
			break
		}
	}
	return r, nil
}
