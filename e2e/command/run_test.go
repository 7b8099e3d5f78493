// Package command_test runs the commands of the binary as users and their scripts do.
package command_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"soniq/e2e/limit"
	"soniq/e2e/rig"
)

func TestMain(m *testing.M) { rig.Main(m) }

// result is the result of a command.
type result struct {
	out, wrong string
	code       int
}

// soniq runs a command with further environment, NAME=value.
func soniq(t *testing.T, env []string, args ...string) result {
	t.Helper()
	binary, err := rig.CommandBinary()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), limit.Hang(0))
	defer cancel()
	var out, wrong bytes.Buffer
	c := exec.CommandContext(ctx, binary, args...)
	c.Dir, c.Stdout, c.Stderr, c.Env = t.TempDir(), &out, &wrong, append(os.Environ(), env...)
	err = c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("soniq %s: %v\n%s", strings.Join(args, " "), err, wrong.String())
	}
	return result{out.String(), wrong.String(), c.ProcessState.ExitCode()}
}

// says fails unless a text contains all the words.
func says(t *testing.T, text string, words ...string) {
	t.Helper()
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q does not say %q", text, w)
		}
	}
}

// refused fails unless the command failed, printed nothing to standard output, and printed the words to standard
// error.
func (r result) refused(t *testing.T, words ...string) {
	t.Helper()
	if r.code != 1 || r.out != "" || strings.Contains(r.wrong, "goroutine ") {
		t.Errorf("exit %d with %q on standard output", r.code, r.out)
	}
	says(t, r.wrong, words...)
}
