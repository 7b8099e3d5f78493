package main

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// recordsFile contains the time and resources of each end-to-end test of the last run, see limit.Record.
const recordsFile = "build/test-records.jsonl"

// newRecords removes the records of the previous run and returns the path for those of this run.
func newRecords() (path string, err error) {
	if err := os.MkdirAll("build", 0o755); err != nil {
		return "", err
	}
	if err := os.Remove(recordsFile); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	return filepath.Abs(recordsFile)
}

// resultsFile lists every test and subtest of the last run: outcome, seconds, part, package, name.
const resultsFile = "build/test-results.tsv"

// writeResults writes the results of this run to resultsFile.
func (s *suite) writeResults() error {
	f, err := os.Create(resultsFile)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	for _, p := range s.parts {
		for _, n := range p.names() {
			if o := p.outcomes[n]; n.Test != "" {
				fmt.Fprintf(w, "%s\t%.2f\t%s\t%s\t%s\n", o.action, o.seconds, p.name, n.Package, n.Test)
			}
		}
	}
	return errors.Join(w.Flush(), f.Close())
}
