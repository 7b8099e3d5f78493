package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// measureHooks runs the benchmarks of the webhook package.
func (b *bench) measureHooks() error {
	b.title("Webhooks", "Go benchmarks of the package: events committed one by one, received on loopback in the same process")
	return b.runGoTest(nil, "-run", "^$", "-bench", "Delivery|FirstAttempt", "-benchtime", "5000x", "./internal/api/webhook")
}

// measureMemory runs the measurement of the memory package.
func (b *bench) measureMemory() error {
	for _, n := range b.passages {
		b.title(fmt.Sprintf("Memory, %d passages", n),
			"search by meaning and words, and the memory of one caller, in the package itself, one at a time")
		if err := b.runGoTest([]string{fmt.Sprintf("SONIQ_EVAL_PASSAGES=%d", n)}, "-run", "MeasureSearch$", "-v", "-timeout", "60m",
			"./internal/intelligence/memory"); err != nil {
			return err
		}
	}
	return nil
}

// runGoTest runs go test and prints the lines with figures.
func (b *bench) runGoTest(env []string, args ...string) error {
	c := exec.Command("go", append([]string{"test", "-count", "1"}, args...)...)
	c.Env, c.Stderr = append(os.Environ(), env...), os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "Benchmark") || strings.Contains(line, "_test.go:") || strings.Contains(line, "FAIL") {
			_, figures, found := strings.Cut(line, "_test.go:")
			if !found {
				figures = line
			}
			fmt.Println("- " + figures)
		}
	}
	return c.Wait()
}
