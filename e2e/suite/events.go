package main

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
)

// testEvent is a line of `go test -json`, see `go doc test2json`.
type testEvent struct {
	Action  string
	Package string
	Test    string
	Elapsed float64
	Output  string
}

// testName identifies a test or subtest; Test is empty for the package itself.
type testName struct{ Package, Test string }

// root returns the top-level test that n belongs to.
func (n testName) root() testName {
	name, _, _ := strings.Cut(n.Test, "/")
	return testName{n.Package, name}
}

// outcome is the last result of a test.
type outcome struct {
	action  string // pass, fail or skip
	seconds float64
	output  []string
}

// readEvents calls take for each line of in. A line that is no event, such as a compiler error, becomes output of no package.
func readEvents(in io.Reader, take func(testEvent)) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadString('\n')
		if line != "" {
			var e testEvent
			if json.Unmarshal([]byte(line), &e) != nil || e.Action == "" {
				e = testEvent{Action: "build-output", Output: line}
			}
			take(e)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
