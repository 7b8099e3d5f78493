package main

import (
	"fmt"
	"strings"
	"time"
)

// progressInterval is the time between two lines of progress.
const progressInterval = 20 * time.Second

// follow prints progress until the returned function is called.
func (s *suite) follow() (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(progressInterval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				s.printf("%s", s.progress())
			}
		}
	}()
	return func() { close(done) }
}

// progress returns the progress of each part, in one line.
func (s *suite) progress() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, p := range s.parts {
		all = append(all, p.progress())
	}
	return strings.Join(all, " · ")
}

func (p *part) progress() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	text := p.name
	if p.expected > 0 {
		text = fmt.Sprintf("%s %d of %d tests", p.name, p.done, p.expected)
	}
	failed := 0
	for n, o := range p.outcomes {
		if o.action == "fail" && n.Test != "" && n == n.root() {
			failed++
		}
	}
	if failed > 0 {
		text += fmt.Sprintf(", %d failed", failed)
	}
	if p.ended && failed == 0 {
		text = p.name + " done"
	}
	return text
}
