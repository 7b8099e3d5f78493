package wiring_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"soniq/internal/platform/wiring"
)

type config struct {
	Name   string
	Out    io.Writer
	Buffer fmt.Stringer
	Log    io.Writer `wiring:"optional"`
}

func TestCheck_NamesMissingFields(t *testing.T) {
	t.Parallel()
	wiring.Check(config{Out: io.Discard, Buffer: &bytes.Buffer{}})
	for _, c := range []config{{}, {Out: (*bytes.Buffer)(nil), Buffer: (*bytes.Buffer)(nil)}} {
		if got := fmt.Sprint(panicOf(func() { wiring.Check(c) })); !strings.Contains(got, "config: Out, Buffer not set") {
			t.Errorf("panics with %q", got)
		}
	}
}

// panicOf returns what a check panics with; nil if it accepts its struct.
func panicOf(check func()) (cause any) {
	defer func() { cause = recover() }()
	check()
	return nil
}

func TestCheck_OptionalNames(t *testing.T) {
	t.Parallel()
	type outer struct {
		config
		More io.Writer
	}
	wiring.Check(outer{config: config{Out: io.Discard, Buffer: &bytes.Buffer{}}}, "More")
	for want, check := range map[string]func(){
		"outer: More not set":      func() { wiring.Check(outer{config: config{Out: io.Discard, Buffer: &bytes.Buffer{}}}) },
		"outer: Out not set":       func() { wiring.Check(outer{config: config{Buffer: &bytes.Buffer{}}}, "More") },
		"outer has no field Other": func() { wiring.Check(outer{}, "Other") },
	} {
		got := panicOf(check)
		if !strings.Contains(fmt.Sprint(got), want) {
			t.Errorf("panics with %v, want %s", got, want)
		}
	}
}
